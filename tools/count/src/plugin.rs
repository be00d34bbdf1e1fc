// SPDX-License-Identifier: GPL-2.0

//! The plugin as QEMU sees it.
//!
//! QEMU installs no header for plugins, so the few functions used are declared here, as of plugin API
//! version 4 (QEMU 10.0).
//!
//! In single-threaded TCG the vCPU index that QEMU passes to callbacks is the one of the vCPU for which
//! the code was *translated*: all vCPUs share translations, so it says nothing about who executes (and
//! inline operations on scoreboards, which use it, crash). So this file ignores it and asks for the
//! kernel's GS base, where each CPU has its own per-CPU area, at the start of each block of code.

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_uint, c_void, CStr};
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::process;
use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use crate::decode::{self, Marker};
use crate::lines::MAX_VCPUS;
use crate::symbols::Symbols;
use crate::tally::{Counter, Slot, Steps};

/// `struct qemu_plugin_tb` and `struct qemu_plugin_insn`: only handled by pointer.
#[repr(C)]
struct Tb {
    _opaque: [u8; 0],
}
#[repr(C)]
struct Insn {
    _opaque: [u8; 0],
}

type PluginId = u64;
type MemInfo = u32;
type ExecCallback = extern "C" fn(vcpu: c_uint, data: *mut c_void);
type MemCallback = extern "C" fn(vcpu: c_uint, info: MemInfo, address: u64, data: *mut c_void);

/// `qemu_info_t` of a system emulator.
#[repr(C)]
pub struct Info {
    target: *const c_char,
    api_min: c_int,
    api_current: c_int,
    system_emulation: bool,
    smp_vcpus: c_int,
    max_vcpus: c_int,
}

/// `qemu_plugin_mem_value`; `low` holds any value of up to 64 bits in its low bits.
#[repr(C)]
struct MemValue {
    kind: c_int,
    low: u64,
    high: u64,
}

/// `qemu_plugin_reg_descriptor`.
#[repr(C)]
struct Register {
    handle: *mut c_void,
    name: *const c_char,
    feature: *const c_char,
}

/// The public part of glib's `GArray` and `GByteArray`.
#[repr(C)]
struct GArray<T> {
    data: *mut T,
    len: c_uint,
}

/// `QEMU_PLUGIN_CB_NO_REGS` and `QEMU_PLUGIN_CB_R_REGS`.
const NO_REGS: c_int = 0;
const READ_REGS: c_int = 1;
/// `QEMU_PLUGIN_MEM_W` and `QEMU_PLUGIN_MEM_RW`.
const MEM_W: c_int = 2;
const MEM_RW: c_int = 3;

extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(
        id: PluginId,
        callback: extern "C" fn(PluginId, *mut Tb),
    );
    fn qemu_plugin_register_vcpu_init_cb(id: PluginId, callback: extern "C" fn(PluginId, c_uint));
    fn qemu_plugin_register_vcpu_tb_exec_cb(
        tb: *mut Tb,
        callback: ExecCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_insn_exec_cb(
        insn: *mut Insn,
        callback: ExecCallback,
        flags: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_mem_cb(
        insn: *mut Insn,
        callback: MemCallback,
        flags: c_int,
        rw: c_int,
        data: *mut c_void,
    );
    fn qemu_plugin_register_atexit_cb(
        id: PluginId,
        callback: extern "C" fn(PluginId, *mut c_void),
        data: *mut c_void,
    );
    fn qemu_plugin_tb_n_insns(tb: *const Tb) -> usize;
    fn qemu_plugin_tb_get_insn(tb: *const Tb, index: usize) -> *mut Insn;
    fn qemu_plugin_insn_data(insn: *const Insn, buffer: *mut c_void, len: usize) -> usize;
    fn qemu_plugin_insn_vaddr(insn: *const Insn) -> u64;
    fn qemu_plugin_mem_is_store(info: MemInfo) -> bool;
    fn qemu_plugin_mem_size_shift(info: MemInfo) -> c_uint;
    fn qemu_plugin_mem_get_value(info: MemInfo) -> MemValue;
    fn qemu_plugin_get_registers() -> *mut GArray<Register>;
    fn qemu_plugin_read_register(handle: *mut c_void, value: *mut GArray<u8>) -> c_int;
    // Of glib, which QEMU itself is linked with.
    fn g_byte_array_new() -> *mut GArray<u8>;
    fn g_array_free(array: *mut GArray<Register>, free_data: c_int) -> *mut c_char;
}

/// The API version this file is written against; QEMU refuses the plugin if it does not support it.
#[no_mangle]
#[allow(non_upper_case_globals)]
pub static qemu_plugin_version: c_int = 4;

/// Reads the kernel's GS base: in the kernel the active one, in user mode the one that waits for `swapgs`.
struct GsBase {
    active: *mut c_void,
    waiting: *mut c_void,
    value: *mut GArray<u8>,
}

impl GsBase {
    /// To be called from a vCPU's callback; `None` if QEMU has no such registers.
    fn find() -> Option<Self> {
        let (mut active, mut waiting) = (None, None);
        // SAFETY: QEMU returns an array of its length, which the caller has to free; the names in it
        // and the handles stay valid as long as the machine.
        let value = unsafe {
            let array = qemu_plugin_get_registers();
            for register in std::slice::from_raw_parts((*array).data, (*array).len as usize) {
                match CStr::from_ptr(register.name).to_bytes() {
                    b"gs_base" => active = Some(register.handle),
                    b"k_gs_base" => waiting = Some(register.handle),
                    _ => {}
                }
            }
            g_array_free(array, 1);
            g_byte_array_new()
        };
        Some(GsBase {
            active: active?,
            waiting: waiting?,
            value,
        })
    }

    /// To be called from a callback that was registered with [`READ_REGS`].
    fn read(&self) -> u64 {
        let active = self.register(self.active);
        // Kernel addresses are the upper half.
        if active >> 63 == 1 {
            active
        } else {
            self.register(self.waiting)
        }
    }

    fn register(&self, handle: *mut c_void) -> u64 {
        // SAFETY: The handle is QEMU's and the buffer glib's; QEMU appends the value to it.
        unsafe {
            (*self.value).len = 0;
            qemu_plugin_read_register(handle, self.value);
            match (*self.value).len {
                8 => (*self.value).data.cast::<u64>().read_unaligned(),
                // Code that is not 64-bit, so not the kernel's.
                _ => 0,
            }
        }
    }
}

/// First line of the output; the reader refuses any other.
const FORMAT: &str = "klocks-count 2";

struct Plugin {
    counter: Counter,
    out: BufWriter<File>,
    /// A store of the running task has been translated, so task switches are seen.
    follows_tasks: bool,
    gs_base: Option<GsBase>,
    failed: bool,
}

impl Plugin {
    fn new(symbols: Symbols, out: File) -> Self {
        Plugin {
            counter: Counter::new(symbols),
            out: BufWriter::new(out),
            follows_tasks: false,
            gs_base: None,
            failed: false,
        }
    }

    /// Says once why no figure of this guest can be trusted. The reader of the output stops there.
    fn fail(&mut self, reason: &str) {
        if !self.failed {
            self.failed = true;
            eprintln!("klocks-count: {reason}");
            // The reader also refuses an output without its last line, so a failure here is not lost.
            let _ = writeln!(self.out, "error {reason}").and_then(|()| self.out.flush());
        }
    }

    /// Finds out which vCPU executes.
    fn arrive(&mut self) {
        if let Some(gs_base) = &self.gs_base {
            self.counter.arrive(gs_base.read());
        }
    }

    fn mark(&mut self, marker: Marker) {
        if self.failed {
            return;
        }
        if !self.follows_tasks {
            return self
                .fail("no store to current_task was seen: the symbol map is not this kernel's");
        }
        if self.gs_base.is_none() {
            return self.fail("this QEMU shows plugins no register gs_base and k_gs_base");
        }
        self.arrive();
        if let Err(reason) = self.counter.mark(marker, &mut self.out) {
            self.fail(&reason);
        }
    }

    /// Registers what is to be seen of one translated instruction.
    fn translate(&mut self, insn: *mut Insn) {
        let mut buffer = [0u8; 16];
        // SAFETY: QEMU passed `insn` for the duration of the translation callback; it writes at most
        // the given length.
        let (len, pc) = unsafe {
            (
                qemu_plugin_insn_data(insn, buffer.as_mut_ptr().cast(), buffer.len()),
                qemu_plugin_insn_vaddr(insn),
            )
        };
        let bytes = &buffer[..len.min(buffer.len())];

        match decode::marker(bytes) {
            // Markers are free: they are not counted.
            Some(Ok(marker)) => return on_execute(insn, marked, READ_REGS, marker as usize),
            Some(Err(code)) => {
                return self.fail(&format!("the guest emitted an unknown marker {code:#x}"))
            }
            None => {}
        }
        let traits = decode::traits(bytes);
        let (slot, entry) = self.counter.slot(pc);
        let data = pack(slot, Steps::new(traits, entry));
        // QEMU calls in the order of registration: the entry of an interrupt belongs to the interrupt,
        // and so does its return. The same holds for the scheduler.
        if entry && self.counter.symbols.is_interrupt_entry(pc) {
            on_execute(insn, interrupted, NO_REGS, 0);
        }
        let scheduler = self.counter.symbols.is_in_schedule(pc);
        if scheduler && entry {
            on_execute(insn, scheduling, NO_REGS, 1);
        }
        on_execute(insn, executed, NO_REGS, data);
        if scheduler && traits.ret {
            on_execute(insn, scheduling, NO_REGS, 0);
        }
        if traits.iret {
            on_execute(insn, returned, NO_REGS, 0);
        }
        // A locked operation takes its line once, for the store.
        on_access(
            insn,
            accessed,
            if traits.locked { MEM_W } else { MEM_RW },
            data,
        );
        if decode::percpu_store_target(bytes, pc) == Some(self.counter.symbols.current_task) {
            self.follows_tasks = true;
            on_access(insn, switched, MEM_W, 0);
        }
    }
}

fn pack(slot: Slot, steps: Steps) -> usize {
    (slot.0 as usize) << 8 | usize::from(steps.bits())
}

fn unpack(data: *mut c_void) -> (Slot, Steps) {
    let data = data as usize;
    (Slot((data >> 8) as u32), Steps::from_bits(data as u8))
}

fn on_execute(insn: *mut Insn, callback: ExecCallback, flags: c_int, data: usize) {
    // SAFETY: `insn` is the one being translated; `data` is a number, never dereferenced.
    unsafe { qemu_plugin_register_vcpu_insn_exec_cb(insn, callback, flags, data as *mut c_void) }
}

fn on_access(insn: *mut Insn, callback: MemCallback, rw: c_int, data: usize) {
    // SAFETY: as in `on_execute`.
    unsafe { qemu_plugin_register_vcpu_mem_cb(insn, callback, NO_REGS, rw, data as *mut c_void) }
}

/// The plugin's state. QEMU passes no pointer to all callbacks, so it has to be a global.
struct Global(UnsafeCell<Option<Plugin>>);

// SAFETY: with -icount all vCPUs run in one thread, in which translation and execution callbacks come
// one after the other; installation comes before and exit after them. A second thread begins with a
// translation, and `translated` ends QEMU then.
unsafe impl Sync for Global {}

static GLOBAL: Global = Global(UnsafeCell::new(None));

/// The thread that executes all vCPUs.
static THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Runs `f` on the plugin's state.
#[inline]
fn with(f: impl FnOnce(&mut Plugin)) {
    // SAFETY: see `Global`: callbacks do not overlap, and none of them calls `with` again.
    if let Some(plugin) = unsafe { &mut *GLOBAL.0.get() } {
        f(plugin);
    }
}

extern "C" fn translated(_id: PluginId, tb: *mut Tb) {
    let here = thread::current().id();
    if *THREAD.get_or_init(|| here) != here {
        eprintln!("klocks-count: vCPUs run in several threads: boot with -icount");
        process::abort();
    }
    with(|plugin| {
        // SAFETY: `tb` is valid during this callback.
        let insns = unsafe {
            qemu_plugin_register_vcpu_tb_exec_cb(tb, entered, READ_REGS, std::ptr::null_mut());
            qemu_plugin_tb_n_insns(tb)
        };
        for index in 0..insns {
            // SAFETY: As above; it has that many instructions.
            plugin.translate(unsafe { qemu_plugin_tb_get_insn(tb, index) });
        }
    });
}

/// A block of code is about to execute; nothing but its own instructions comes before the next one.
extern "C" fn entered(_translator: c_uint, _data: *mut c_void) {
    with(|plugin| {
        if plugin.counter.is_open() {
            plugin.arrive();
        }
    });
}

extern "C" fn executed(_translator: c_uint, data: *mut c_void) {
    let (slot, steps) = unpack(data);
    with(|plugin| plugin.counter.execute(slot, steps));
}

extern "C" fn accessed(_translator: c_uint, info: MemInfo, address: u64, data: *mut c_void) {
    let (slot, _) = unpack(data);
    // SAFETY: `info` is the one of the access being reported.
    let (store, shift) = unsafe {
        (
            qemu_plugin_mem_is_store(info),
            qemu_plugin_mem_size_shift(info),
        )
    };
    with(|plugin| plugin.counter.access(slot, address, 1 << shift, store));
}

extern "C" fn switched(_translator: c_uint, info: MemInfo, address: u64, _data: *mut c_void) {
    // SAFETY: `info` is the one of the access being reported, a store of 64 bits.
    let task = unsafe { qemu_plugin_mem_get_value(info) }.low;
    with(|plugin| {
        let base = address.wrapping_sub(plugin.counter.symbols.current_task);
        plugin.counter.switch(base, task);
    });
}

extern "C" fn interrupted(_translator: c_uint, _data: *mut c_void) {
    with(|plugin| plugin.counter.interrupt());
}

extern "C" fn returned(_translator: c_uint, _data: *mut c_void) {
    with(|plugin| plugin.counter.interrupt_return());
}

extern "C" fn scheduling(_translator: c_uint, data: *mut c_void) {
    with(|plugin| plugin.counter.scheduler(!data.is_null()));
}

extern "C" fn marked(_translator: c_uint, data: *mut c_void) {
    const MARKERS: [Marker; 5] = [
        Marker::RunOpen,
        Marker::RunClose,
        Marker::WorkBegin,
        Marker::WorkEnd,
        Marker::WorkWrites,
    ];
    let marker = MARKERS[data as usize];
    with(|plugin| plugin.mark(marker));
}

extern "C" fn started(_id: PluginId, _vcpu: c_uint) {
    with(|plugin| {
        if plugin.gs_base.is_none() {
            plugin.gs_base = GsBase::find();
        }
    });
}

extern "C" fn exited(_id: PluginId, _data: *mut c_void) {
    with(|plugin| {
        // The reader takes an output without this line for an unfinished one.
        let _ = writeln!(plugin.out, "done").and_then(|()| plugin.out.flush());
    });
}

/// Reads `map=FILE,out=FILE`: the System.map of the guest's kernel, and where the counts go. Without
/// `out` QEMU ends at once, successfully: whoever asked knows that it can count that kernel.
fn parse<'a>(arguments: &[&'a str]) -> Result<(&'a str, Option<&'a str>), String> {
    let (mut map, mut out) = (None, None);
    for argument in arguments {
        match argument.split_once('=') {
            Some(("map", path)) => map = Some(path),
            Some(("out", path)) => out = Some(path),
            _ => return Err(format!("unknown argument {argument}")),
        }
    }
    Ok((map.ok_or("needs map=FILE")?, out))
}

fn create(path: &str) -> io::Result<File> {
    let mut file = File::create(path)?;
    writeln!(file, "{FORMAT}")?;
    Ok(file)
}

fn install(id: PluginId, info: &Info, arguments: &[&str]) -> Result<(), String> {
    // SAFETY: QEMU passes a valid C string.
    let target = unsafe { CStr::from_ptr(info.target) };
    if target.to_bytes() != b"x86_64" || !info.system_emulation {
        return Err("counts x86_64 system emulation only".into());
    }
    let (map, out) = parse(arguments)?;
    let text = fs::read_to_string(map).map_err(|e| format!("cannot read {map}: {e}"))?;
    let symbols = Symbols::parse(&text)?;
    let Some(out) = out else {
        process::exit(0);
    };
    // One is taken for 'not known yet'.
    if usize::try_from(info.max_vcpus).map_or(true, |vcpus| vcpus >= MAX_VCPUS) {
        return Err(format!("counts at most {} vCPUs", MAX_VCPUS - 1));
    }
    let file = create(out).map_err(|e| format!("cannot write {out}: {e}"))?;
    // SAFETY: no callback is registered yet, so nothing else uses the state. `id` is ours; the
    // callbacks live as long as the plugin, which is never unloaded.
    unsafe {
        *GLOBAL.0.get() = Some(Plugin::new(symbols, file));
        qemu_plugin_register_vcpu_init_cb(id, started);
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, exited, std::ptr::null_mut());
    }
    Ok(())
}

/// QEMU's entry point into the plugin.
///
/// # Safety
///
/// To be called by QEMU only: `info` and the `argc` strings of `argv` are valid during the call.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: PluginId,
    info: *const Info,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    let arguments: Vec<String> = (0..usize::try_from(argc).unwrap_or(0))
        // SAFETY: the caller passes `argc` valid strings.
        .map(|i| {
            unsafe { CStr::from_ptr(*argv.add(i)) }
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    // SAFETY: the caller passes a valid `info`.
    match install(id, unsafe { &*info }, &arguments) {
        Ok(()) => 0,
        Err(reason) => {
            eprintln!("klocks-count: {reason}");
            1
        }
    }
}
