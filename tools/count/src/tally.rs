// SPDX-License-Identifier: GPL-2.0

//! What counts, and where to.
//!
//! A *run* is what happens between the controller's two markers. A *worker* is a task between its two
//! markers. An event is booked to the function that executes it if a worker executes it while a run is
//! open, outside of interrupts and of the scheduler, whose own use of locks would else be taken for the
//! worker's. Cache lines are followed for everything that happens in a run, or a
//! worker would seem to keep lines that another task took.

use std::collections::HashMap;
use std::io::{self, Write};

use crate::decode::{Marker, Traits};
use crate::lines::Lines;
use crate::symbols::Symbols;

/// What the workers did in one function. A locked operation counts as a store, not as a load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub insns: u64,
    pub locked: u64,
    pub pauses: u64,
    pub calls: u64,
    pub loads: u64,
    pub stores: u64,
    pub read_misses: u64,
    pub invalidations: u64,
    /// Times the first instruction was executed.
    pub entries: u64,
    /// Those of them by workers that only write.
    pub writer_entries: u64,
}

/// Index of a [`Tally`]: a function of the kernel image, or one instruction elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(pub u32);

/// Which fields of a tally one instruction advances when it is executed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps(u8);

impl Steps {
    const LOCKED: u8 = 1;
    const PAUSE: u8 = 2;
    const CALL: u8 = 4;
    const ENTRY: u8 = 8;

    pub fn new(traits: Traits, entry: bool) -> Self {
        let mut bits = 0;
        for (set, bit) in [
            (traits.locked, Self::LOCKED),
            (traits.pause, Self::PAUSE),
            (traits.call, Self::CALL),
            (entry, Self::ENTRY),
        ] {
            if set {
                bits |= bit;
            }
        }
        Steps(bits)
    }

    pub fn from_bits(bits: u8) -> Self {
        Steps(bits)
    }

    pub fn bits(self) -> u8 {
        self.0
    }

    fn count(self, bit: u8) -> u64 {
        u64::from(self.0 & bit != 0)
    }
}

#[derive(Clone, Copy, Default)]
struct Vcpu {
    /// The kernel's GS base there, which tells vCPUs apart.
    base: u64,
    /// The running task's address; 0 until the first task switch.
    task: u64,
    /// The running task is a worker.
    working: bool,
    /// The running task is a worker that only writes.
    writing: bool,
    /// Nesting of interrupts and exceptions.
    interrupts: u32,
    /// The running task is in `__schedule`.
    scheduling: bool,
}

impl Vcpu {
    /// Whether what is executed is booked to the function that executes it.
    fn books(&self) -> bool {
        self.working && self.interrupts == 0 && !self.scheduling
    }
}

/// A task between its markers.
#[derive(Clone, Copy)]
struct Worker {
    task: u64,
    only_writes: bool,
}

/// The whole state of the plugin.
pub struct Counter {
    pub symbols: Symbols,
    /// One a function, in the order of [`Symbols::functions`], then one an instruction elsewhere.
    tallies: Vec<Tally>,
    /// The instructions outside of the kernel image that have been translated.
    elsewhere: HashMap<u64, Slot>,
    addresses_elsewhere: Vec<u64>,
    /// In the order in which they were first seen, after one that stands for 'not known yet'.
    vcpus: Vec<Vcpu>,
    /// The one that executes. Kept up to date in a run only.
    current: usize,
    workers: Vec<Worker>,
    open: bool,
    runs: u64,
    /// Instructions of all vCPUs in the open run.
    total: u64,
    /// Those of them that workers executed in interrupts and in the scheduler.
    unbooked: u64,
    lines: Lines,
}

impl Counter {
    pub fn new(symbols: Symbols) -> Self {
        Counter {
            tallies: vec![Tally::default(); symbols.functions().len()],
            symbols,
            elsewhere: HashMap::new(),
            addresses_elsewhere: Vec::new(),
            vcpus: vec![Vcpu::default()],
            current: 0,
            workers: Vec::new(),
            open: false,
            runs: 0,
            total: 0,
            unbooked: 0,
            lines: Lines::default(),
        }
    }

    /// Where the instruction at `pc` is booked, and whether it is the first of a function of the image.
    pub fn slot(&mut self, pc: u64) -> (Slot, bool) {
        if let Some(index) = self.symbols.function_at(pc) {
            return (Slot(index as u32), self.symbols.functions()[index].0 == pc);
        }
        let next = Slot(self.tallies.len() as u32);
        let slot = *self.elsewhere.entry(pc).or_insert(next);
        if slot == next {
            self.tallies.push(Tally::default());
            self.addresses_elsewhere.push(pc);
        }
        (slot, false)
    }

    pub fn is_open(&self) -> bool {
        self.open
    }

    /// The index of the vCPU with this GS base.
    fn vcpu(&mut self, base: u64) -> usize {
        let known = self.vcpus.iter().position(|vcpu| vcpu.base == base);
        known.unwrap_or_else(|| {
            self.vcpus.push(Vcpu {
                base,
                ..Vcpu::default()
            });
            self.vcpus.len() - 1
        })
    }

    /// What follows is executed by the vCPU with this GS base.
    #[inline]
    pub fn arrive(&mut self, base: u64) {
        if self.vcpus[self.current].base != base {
            self.current = self.vcpu(base);
        }
    }

    /// The index of the worker that is this task.
    fn worker(&self, task: u64) -> Option<usize> {
        self.workers.iter().position(|worker| worker.task == task)
    }

    /// The vCPU with this GS base now runs `task`. Whatever interrupt led to the switch is over for it,
    /// and it has to return from the scheduler.
    pub fn switch(&mut self, base: u64, task: u64) {
        let worker = self.worker(task).map(|index| self.workers[index]);
        let index = self.vcpu(base);
        self.vcpus[index] = Vcpu {
            base,
            task,
            working: worker.is_some(),
            writing: worker.is_some_and(|worker| worker.only_writes),
            interrupts: 0,
            scheduling: true,
        };
    }

    /// An interrupt or exception begins.
    pub fn interrupt(&mut self) {
        self.vcpus[self.current].interrupts += 1;
    }

    /// An interrupt or exception returns. Also how some system calls return, hence no underflow.
    pub fn interrupt_return(&mut self) {
        let depth = &mut self.vcpus[self.current].interrupts;
        *depth = depth.saturating_sub(1);
    }

    /// The running task enters the scheduler, or returns from it.
    pub fn scheduler(&mut self, inside: bool) {
        self.vcpus[self.current].scheduling = inside;
    }

    /// An instruction of `slot` is executed.
    #[inline]
    pub fn execute(&mut self, slot: Slot, steps: Steps) {
        if !self.open {
            return;
        }
        self.total += 1;
        let vcpu = &self.vcpus[self.current];
        if !vcpu.books() {
            self.unbooked += u64::from(vcpu.working);
            return;
        }
        let tally = &mut self.tallies[slot.0 as usize];
        tally.insns += 1;
        tally.locked += steps.count(Steps::LOCKED);
        tally.pauses += steps.count(Steps::PAUSE);
        tally.calls += steps.count(Steps::CALL);
        tally.entries += steps.count(Steps::ENTRY);
        tally.writer_entries += steps.count(Steps::ENTRY) & u64::from(vcpu.writing);
    }

    /// An instruction of `slot` loads or stores `size` bytes at `address`.
    #[inline]
    pub fn access(&mut self, slot: Slot, address: u64, size: u64, store: bool) {
        if !self.open {
            return;
        }
        let traffic = self.lines.access(self.current, address, size, store);
        if !self.vcpus[self.current].books() {
            return;
        }
        let tally = &mut self.tallies[slot.0 as usize];
        tally.loads += u64::from(!store);
        tally.stores += u64::from(store);
        tally.read_misses += traffic.read_misses;
        tally.invalidations += traffic.invalidations;
    }

    /// A marker is executed. The error says which rule of the protocol the guest broke.
    pub fn mark(&mut self, marker: Marker, out: &mut impl Write) -> Result<(), String> {
        let task = self.vcpus[self.current].task;
        match marker {
            Marker::RunOpen if self.open => Err("a run was opened inside a run".into()),
            Marker::RunOpen => {
                self.open = true;
                self.total = 0;
                self.unbooked = 0;
                self.tallies.fill(Tally::default());
                self.lines.forget();
                Ok(())
            }
            Marker::RunClose if !self.open => Err("a run was closed that was not open".into()),
            Marker::RunClose if !self.workers.is_empty() => Err(format!(
                "a run was closed with {} workers still at work",
                self.workers.len()
            )),
            Marker::RunClose => {
                self.open = false;
                self.report(out)
                    .map_err(|e| format!("the output file cannot be written: {e}"))?;
                self.runs += 1;
                Ok(())
            }
            Marker::WorkBegin if !self.open => Err("a worker began outside of a run".into()),
            Marker::WorkBegin if task == 0 => {
                Err("a worker began, but no task switch has been seen on its vCPU".into())
            }
            Marker::WorkBegin if self.worker(task).is_some() => Err("a worker began twice".into()),
            Marker::WorkBegin => {
                self.workers.push(Worker {
                    task,
                    only_writes: false,
                });
                let vcpu = &mut self.vcpus[self.current];
                vcpu.working = true;
                vcpu.writing = false;
                // These are followed in a run only, so what they were before is stale.
                vcpu.interrupts = 0;
                vcpu.scheduling = false;
                Ok(())
            }
            Marker::WorkWrites => {
                let index = self
                    .worker(task)
                    .ok_or("a task said what its work is that it had not begun")?;
                self.workers[index].only_writes = true;
                self.vcpus[self.current].writing = true;
                Ok(())
            }
            Marker::WorkEnd if self.vcpus[self.current].scheduling => {
                Err("no return from __schedule was seen: this kernel returns by a thunk".into())
            }
            Marker::WorkEnd => {
                let index = self
                    .worker(task)
                    .ok_or("a task ended work that it had not begun")?;
                self.workers.swap_remove(index);
                self.vcpus[self.current].working = false;
                Ok(())
            }
        }
    }

    /// Prints the closed run: a line for each slot in which anything was counted.
    fn report(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(
            out,
            "run {} total {} unbooked {}",
            self.runs, self.total, self.unbooked
        )?;
        let functions = self
            .symbols
            .functions()
            .iter()
            .map(|(address, name)| (address, name.as_str()));
        let elsewhere = self
            .addresses_elsewhere
            .iter()
            .map(|address| (address, "-"));
        for ((address, name), t) in functions.chain(elsewhere).zip(&self.tallies) {
            if *t == Tally::default() {
                continue;
            }
            writeln!(
                out,
                "{address:x} {name} {} {} {} {} {} {} {} {} {} {}",
                t.insns,
                t.locked,
                t.pauses,
                t.calls,
                t.loads,
                t.stores,
                t.read_misses,
                t.invalidations,
                t.entries,
                t.writer_entries
            )?;
        }
        writeln!(out, "end {}", self.runs)?;
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: u64 = 0xffff_ffff_8100_0000;
    const OTHER: u64 = 0xffff_ffff_8100_0040;
    const MODULE: u64 = 0xffff_ffff_c000_0010;
    const TASK: u64 = 0xffff_8880_0010_0000;
    const MAP: &str = "\
ffffffff81000000 T _stext
ffffffff81000000 T lock
ffffffff81000040 t other
ffffffff81000080 t __schedule
ffffffff810000c0 T asm_sysvec_timer
ffffffff81000100 T _etext
ffffffff83000000 D current_task
";

    /// A counter with its output, driven like a guest.
    struct Guest {
        counter: Counter,
        out: Vec<u8>,
    }

    impl Guest {
        fn new() -> Self {
            let counter = Counter::new(Symbols::parse(MAP).unwrap());
            let mut guest = Guest {
                counter,
                out: Vec::new(),
            };
            for vcpu in 0..4 {
                guest.switch(vcpu, vcpu);
            }
            guest
        }

        fn on(&mut self, vcpu: usize) -> &mut Counter {
            self.counter.arrive(base(vcpu));
            &mut self.counter
        }

        /// `vcpu` goes on with the task that started on vCPU `from`.
        fn switch(&mut self, vcpu: usize, from: usize) {
            self.counter.switch(base(vcpu), task(from));
            self.on(vcpu).scheduler(false);
        }

        fn mark(&mut self, vcpu: usize, marker: Marker) {
            self.try_mark(vcpu, marker).unwrap();
        }

        fn try_mark(&mut self, vcpu: usize, marker: Marker) -> Result<(), String> {
            self.counter.arrive(base(vcpu));
            self.counter.mark(marker, &mut self.out)
        }

        fn run(&mut self, vcpu: usize, pc: u64) {
            let (slot, entry) = self.counter.slot(pc);
            self.on(vcpu)
                .execute(slot, Steps::new(Traits::default(), entry));
        }

        fn store(&mut self, vcpu: usize, pc: u64, address: u64) {
            let (slot, _) = self.counter.slot(pc);
            self.on(vcpu).access(slot, address, 8, true);
        }

        fn load(&mut self, vcpu: usize, pc: u64, address: u64) {
            let (slot, _) = self.counter.slot(pc);
            self.on(vcpu).access(slot, address, 8, false);
        }

        fn output(&self) -> &str {
            std::str::from_utf8(&self.out).unwrap()
        }
    }

    fn base(vcpu: usize) -> u64 {
        0xffff_8880_1f20_0000 + (vcpu as u64) * 0x8_0000
    }

    fn task(vcpu: usize) -> u64 {
        TASK + (vcpu as u64) * 0x1000
    }

    #[test]
    fn counts_between_the_markers_only() {
        let mut guest = Guest::new();
        guest.run(0, LOCK);
        assert!(!guest.counter.is_open());
        guest.mark(1, Marker::RunOpen);
        assert!(guest.counter.is_open());
        guest.run(0, LOCK); // in the run, not yet at work
        guest.mark(0, Marker::WorkBegin);
        guest.run(0, LOCK);
        guest.run(0, LOCK + 4);
        guest.run(0, OTHER + 8);
        guest.run(1, LOCK); // the controller
        guest.mark(0, Marker::WorkEnd);
        guest.run(0, LOCK);
        guest.mark(1, Marker::RunClose);
        guest.run(0, LOCK);
        let expected = "\
run 0 total 6 unbooked 0
ffffffff81000000 lock 2 0 0 0 0 0 0 0 1 0
ffffffff81000040 other 1 0 0 0 0 0 0 0 0 0
end 0
";
        assert_eq!(guest.output(), expected);
    }

    #[test]
    fn steps_reach_their_fields() {
        let mut guest = Guest::new();
        guest.mark(1, Marker::RunOpen);
        guest.mark(0, Marker::WorkBegin);
        let (slot, entry) = guest.counter.slot(MODULE);
        assert!(!entry);
        let all = Traits {
            locked: true,
            pause: true,
            call: true,
            ret: true,
            iret: true,
        };
        let steps = Steps::new(all, true);
        guest.on(0).execute(slot, Steps::from_bits(steps.bits()));
        guest.on(0).execute(
            slot,
            Steps::new(
                Traits {
                    call: true,
                    ..Traits::default()
                },
                false,
            ),
        );
        guest.load(0, MODULE, 0);
        guest.mark(0, Marker::WorkEnd);
        guest.mark(1, Marker::RunClose);
        let line = "\nffffffffc0000010 - 2 1 1 2 1 0 0 0 1 0\n";
        assert!(guest.output().contains(line), "{}", guest.output());
    }

    #[test]
    fn a_sleeping_worker_counts_nothing_and_may_wake_elsewhere() {
        let mut guest = Guest::new();
        guest.mark(3, Marker::RunOpen);
        guest.mark(0, Marker::WorkBegin);
        guest.switch(0, 2); // sleeps, its vCPU idles
        guest.run(0, OTHER);
        guest.switch(1, 0); // wakes on another vCPU
        guest.run(1, LOCK);
        guest.mark(1, Marker::WorkEnd);
        guest.run(1, LOCK);
        guest.mark(3, Marker::RunClose);
        assert!(
            guest.output().contains("\nffffffff81000000 lock 1 0 "),
            "{}",
            guest.output()
        );
        assert!(!guest.output().contains("other"));
    }

    #[test]
    fn interrupts_are_apart() {
        let mut guest = Guest::new();
        guest.mark(1, Marker::RunOpen);
        guest.mark(0, Marker::WorkBegin);
        guest.on(0).interrupt();
        guest.run(0, LOCK);
        guest.on(0).interrupt(); // nested, from a softirq
        guest.run(0, LOCK);
        guest.on(0).interrupt_return();
        guest.run(0, LOCK);
        guest.store(0, LOCK, 0x1000);
        guest.on(0).interrupt_return();
        guest.on(0).interrupt_return(); // a system call that returns by iret
        guest.run(0, OTHER + 8);
        // Preempted: the switch ends the interrupt for the vCPU.
        guest.on(0).interrupt();
        guest.switch(0, 2);
        guest.switch(0, 0);
        guest.run(0, OTHER + 8);
        guest.mark(0, Marker::WorkEnd);
        guest.mark(1, Marker::RunClose);
        let expected =
            "run 0 total 5 unbooked 3\nffffffff81000040 other 2 0 0 0 0 0 0 0 0 0\nend 0\n";
        assert_eq!(guest.output(), expected);
    }

    #[test]
    fn the_scheduler_is_apart() {
        let mut guest = Guest::new();
        guest.mark(3, Marker::RunOpen);
        guest.mark(0, Marker::WorkBegin);
        guest.on(0).scheduler(true);
        guest.run(0, LOCK); // a lock of the scheduler's own
        guest.store(0, LOCK, 0x1000);
        guest.counter.switch(base(0), task(2));
        guest.counter.switch(base(0), task(0));
        guest.run(0, LOCK);
        assert!(guest.try_mark(0, Marker::WorkEnd).is_err());
        guest.on(0).scheduler(false);
        guest.run(0, LOCK + 4);
        guest.mark(0, Marker::WorkEnd);
        guest.mark(3, Marker::RunClose);
        let expected =
            "run 0 total 3 unbooked 2\nffffffff81000000 lock 1 0 0 0 0 0 0 0 0 0\nend 0\n";
        assert_eq!(guest.output(), expected);
    }

    #[test]
    fn transfers_are_booked_to_the_worker_that_pays() {
        let mut guest = Guest::new();
        guest.mark(3, Marker::RunOpen);
        for vcpu in [0, 1] {
            guest.mark(vcpu, Marker::WorkBegin);
        }
        guest.store(0, LOCK, 0x1000);
        guest.store(2, OTHER, 0x1000); // no worker: moves the line, pays nothing
        guest.store(0, LOCK, 0x1000);
        guest.load(1, OTHER, 0x1000);
        for vcpu in [0, 1] {
            guest.mark(vcpu, Marker::WorkEnd);
        }
        guest.mark(3, Marker::RunClose);
        let expected = "\
run 0 total 0 unbooked 0
ffffffff81000000 lock 0 0 0 0 0 2 0 1 0 0
ffffffff81000040 other 0 0 0 0 1 0 1 0 0 0
end 0
";
        assert_eq!(guest.output(), expected);
    }

    #[test]
    fn entries_of_writers_are_told_apart() {
        let mut guest = Guest::new();
        guest.mark(3, Marker::RunOpen);
        assert!(guest.try_mark(1, Marker::WorkWrites).is_err());
        for vcpu in [0, 1] {
            guest.mark(vcpu, Marker::WorkBegin);
        }
        guest.mark(1, Marker::WorkWrites);
        for vcpu in [0, 1] {
            guest.run(vcpu, LOCK);
        }
        guest.switch(1, 0); // the reader goes on where the writer was
        guest.run(1, LOCK);
        guest.switch(1, 1);
        guest.run(1, LOCK);
        guest.run(1, LOCK + 4);
        for (vcpu, from) in [(0, 0), (1, 1)] {
            guest.switch(vcpu, from);
            guest.mark(vcpu, Marker::WorkEnd);
        }
        guest.mark(1, Marker::WorkBegin); // the same task, as another worker
        guest.run(1, LOCK);
        guest.mark(1, Marker::WorkEnd);
        guest.mark(3, Marker::RunClose);
        let line = "\nffffffff81000000 lock 6 0 0 0 0 0 0 0 5 2\n";
        assert!(guest.output().contains(line), "{}", guest.output());
    }

    #[test]
    fn runs_are_numbered_and_start_from_zero() {
        let mut guest = Guest::new();
        for _ in 0..2 {
            guest.mark(1, Marker::RunOpen);
            guest.mark(0, Marker::WorkBegin);
            guest.run(0, LOCK);
            guest.mark(0, Marker::WorkEnd);
            guest.mark(1, Marker::RunClose);
        }
        let line = "ffffffff81000000 lock 1 0 0 0 0 0 0 0 1 0";
        let run = |n| format!("run {n} total 1 unbooked 0\n{line}\nend {n}\n");
        assert_eq!(guest.output(), run(0) + &run(1));
    }

    #[test]
    fn broken_protocol_is_an_error() {
        let mut guest = Guest::new();
        assert!(guest.try_mark(0, Marker::RunClose).is_err());
        assert!(guest.try_mark(0, Marker::WorkBegin).is_err());
        guest.mark(0, Marker::RunOpen);
        assert!(guest.try_mark(0, Marker::RunOpen).is_err());
        assert!(guest.try_mark(0, Marker::WorkEnd).is_err());
        guest.mark(0, Marker::WorkBegin);
        assert!(guest.try_mark(0, Marker::WorkBegin).is_err());
        assert!(guest.try_mark(1, Marker::RunClose).is_err());
        guest.counter.switch(base(2), 0);
        assert!(guest.try_mark(2, Marker::WorkBegin).is_err());
    }
}
