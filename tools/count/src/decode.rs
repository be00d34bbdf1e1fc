// SPDX-License-Identifier: GPL-2.0

//! Classification of one x86-64 instruction from its bytes.
//!
//! The bytes are exactly one instruction (the translator found its length), so only prefixes, the opcode
//! and the ModRM byte have to be looked at.

/// What a marker instruction says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The controller is about to release the workers of a block.
    RunOpen,
    /// The controller has joined all workers of the block.
    RunClose,
    /// The next instruction of this task is the first measured one.
    WorkBegin,
    /// The last measured instruction of this task has been executed.
    WorkEnd,
    /// This task, which has begun, only writes.
    WorkWrites,
}

/// `nopl imm32(%rax,%rax,1)`: eight bytes that no compiler emits with this displacement.
const MARKER_OPCODE: [u8; 4] = [0x0f, 0x1f, 0x84, 0x00];
/// "KL" in the upper half of the displacement; the code is in bits 8 to 15.
const MARKER_MAGIC: u32 = 0x4b4c_0000;

/// What one instruction does, as far as it is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traits {
    /// A LOCK prefix, or XCHG with memory, which locks without one.
    pub locked: bool,
    pub pause: bool,
    pub call: bool,
    /// Return from a function.
    pub ret: bool,
    /// Return from an interrupt or exception.
    pub iret: bool,
}

/// Splits an instruction into what its prefixes say and the rest, which starts at the opcode.
struct Prefixes<'a> {
    lock: bool,
    repeat: bool,
    gs: bool,
    /// The REX byte, or 0. Only one directly before the opcode is a prefix.
    rex: u8,
    rest: &'a [u8],
}

impl<'a> Prefixes<'a> {
    fn split(bytes: &'a [u8]) -> Self {
        let mut p = Prefixes {
            lock: false,
            repeat: false,
            gs: false,
            rex: 0,
            rest: bytes,
        };
        while let [byte, rest @ ..] = p.rest {
            match byte {
                0xf0 => p.lock = true,
                0xf3 => p.repeat = true,
                0xf2 => p.repeat = false,
                0x65 => p.gs = true,
                0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x66 | 0x67 => {}
                0x40..=0x4f => {
                    p.rex = *byte;
                    p.rest = rest;
                    continue;
                }
                _ => break,
            }
            p.rex = 0;
            p.rest = rest;
        }
        p
    }
}

fn is_memory(modrm: u8) -> bool {
    modrm >> 6 != 3
}

/// Classifies the instruction `bytes`.
pub fn traits(bytes: &[u8]) -> Traits {
    const REX_B: u8 = 0x01;
    let p = Prefixes::split(bytes);
    let mut t = Traits {
        locked: p.lock,
        ..Traits::default()
    };
    match *p.rest {
        [0x86 | 0x87, modrm, ..] if is_memory(modrm) => t.locked = true,
        // With REX.B the same opcode is an XCHG with r8.
        [0x90] => t.pause = p.repeat && p.rex & REX_B == 0,
        [0xe8, ..] => t.call = true,
        // /2 is the near call, /3 the far one.
        [0xff, modrm, ..] => t.call = matches!(modrm >> 3 & 7, 2 | 3),
        [0xc3] | [0xc2, ..] => t.ret = true,
        [0xcf] => t.iret = true,
        _ => {}
    }
    t
}

/// The marker that `bytes` encode, if they are one. `Err` is a code of a newer protocol.
pub fn marker(bytes: &[u8]) -> Option<Result<Marker, u32>> {
    let displacement: [u8; 4] = bytes.strip_prefix(&MARKER_OPCODE)?.try_into().ok()?;
    let word = u32::from_le_bytes(displacement);
    if word & 0xffff_0000 != MARKER_MAGIC {
        return None;
    }
    Some(match word & 0xffff {
        0x0100 => Ok(Marker::RunOpen),
        0x0200 => Ok(Marker::RunClose),
        0x0300 => Ok(Marker::WorkBegin),
        0x0400 => Ok(Marker::WorkEnd),
        0x0500 => Ok(Marker::WorkWrites),
        code => Err(code),
    })
}

/// The address that `mov %reg64, %gs:disp32(%rip)` at `pc` stores to, before the GS base is added: the
/// link address of a per-CPU variable.
pub fn percpu_store_target(bytes: &[u8], pc: u64) -> Option<u64> {
    const REX_W: u8 = 0x08;
    let p = Prefixes::split(bytes);
    let [0x89, modrm, displacement @ ..] = p.rest else {
        return None;
    };
    // mod 0, r/m 5: RIP-relative.
    if !p.gs || p.rex & REX_W == 0 || modrm & 0xc7 != 0x05 {
        return None;
    }
    let displacement = i32::from_le_bytes(displacement.try_into().ok()?);
    let next = pc.wrapping_add(bytes.len() as u64);
    Some(next.wrapping_add_signed(displacement.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locked(bytes: &[u8]) -> bool {
        traits(bytes).locked
    }

    #[test]
    fn lock_prefix_in_every_place() {
        assert!(locked(&[0xf0, 0xff, 0x07])); // lock incl (%rdi)
        assert!(locked(&[0xf0, 0x48, 0x0f, 0xc1, 0x07])); // lock xadd %rax,(%rdi)
        assert!(locked(&[0x65, 0xf0, 0x48, 0xff, 0x07])); // %gs: before lock
        assert!(locked(&[0xf0, 0x65, 0x48, 0xff, 0x07])); // and after it
        assert!(locked(&[0x66, 0xf0, 0xff, 0x07])); // lock incw
        assert!(locked(&[0xf0, 0x66, 0xff, 0x07]));
        assert!(locked(&[0xf2, 0xf0, 0xff, 0x07])); // xacquire
        assert!(locked(&[0xf0, 0xf3, 0xff, 0x07])); // xrelease
        assert!(locked(&[0x2e, 0x67, 0xf0, 0x0f, 0xba, 0x2f, 0x00])); // lock btsl, padded
        assert!(locked(&[0x48, 0xf0, 0xff, 0x07])); // a dead REX before the prefix
    }

    #[test]
    fn not_locked() {
        assert!(!locked(&[0xff, 0x07])); // incl (%rdi)
        assert!(!locked(&[0x48, 0x0f, 0xc1, 0x07])); // xadd without lock
        assert!(!locked(&[0x3e, 0xff, 0x07])); // what a one-CPU kernel patches the prefix to
        assert!(!locked(&[0xb8, 0xf0, 0xf0, 0xf0, 0xf0])); // f0 in an immediate
        assert!(!locked(&[0x48, 0x8b, 0x87, 0xf0, 0x00, 0x00, 0x00])); // f0 in a displacement
        assert!(!locked(&[0x0f, 0xae, 0xf0])); // mfence: f0 is its ModRM byte
        assert!(!locked(&[0x0f, 0x87, 0x00, 0x00, 0x00, 0x00])); // ja: 87 in another opcode map
        assert!(!locked(&[0x0f, 0x86, 0x00, 0x00, 0x00, 0x00])); // jbe
        assert!(!locked(&[0x0f, 0x38, 0xf0, 0x07])); // movbe: three-byte opcode ending in f0
        assert!(!locked(&[0xf2, 0x0f, 0x38, 0xf0, 0xc7])); // crc32
        assert!(!locked(&[0x0f, 0x38, 0x87, 0x07])); // 87 as third opcode byte
        assert!(!locked(&[0xc5, 0xf0, 0x57, 0xc0])); // vxorps: f0 inside a VEX prefix
        assert!(!locked(&[0xc4, 0xe2, 0xf0, 0xf2, 0xc0])); // andn: f0 inside a VEX prefix
        assert!(!locked(&[0x62, 0xf1, 0x7c, 0x48, 0x87, 0x00])); // EVEX
    }

    #[test]
    fn xchg_locks_with_memory_only() {
        assert!(locked(&[0x87, 0x07])); // xchg %eax,(%rdi)
        assert!(locked(&[0x86, 0x07])); // xchg %al,(%rdi)
        assert!(locked(&[0x48, 0x87, 0x07]));
        assert!(locked(&[0x4d, 0x87, 0x42, 0x08])); // xchg %r8,8(%r10)
        assert!(locked(&[0x66, 0x87, 0x07]));
        assert!(locked(&[0x65, 0x48, 0x87, 0x04, 0x25, 0, 0, 0, 0])); // xchg %rax,%gs:0
        assert!(!locked(&[0x87, 0xc8])); // xchg %ecx,%eax
        assert!(!locked(&[0x48, 0x87, 0xc8]));
        assert!(!locked(&[0x86, 0xc4])); // xchg %al,%ah
        assert!(!locked(&[0x48, 0x91])); // xchg %rax,%rcx
    }

    #[test]
    fn pause_is_not_nop_and_not_xchg() {
        assert!(traits(&[0xf3, 0x90]).pause);
        assert!(traits(&[0x66, 0xf3, 0x90]).pause);
        assert!(traits(&[0xf3, 0x48, 0x90]).pause);
        assert!(!traits(&[0x90]).pause);
        assert!(!traits(&[0x66, 0x90]).pause);
        assert!(!traits(&[0xf2, 0x90]).pause);
        assert!(!traits(&[0xf3, 0x41, 0x90]).pause); // xchg %r8d,%eax
        assert!(!traits(&[0xf3, 0x0f, 0xb8, 0x90, 0, 0, 0, 0]).pause); // popcnt
    }

    #[test]
    fn calls() {
        assert!(traits(&[0xe8, 0, 0, 0, 0]).call);
        assert!(traits(&[0x2e, 0xe8, 0, 0, 0, 0]).call); // padded, as alternatives leave it
        assert!(traits(&[0xff, 0xd0]).call); // call *%rax
        assert!(traits(&[0x41, 0xff, 0xd3]).call); // call *%r11
        assert!(traits(&[0xff, 0x50, 0x08]).call); // call *8(%rax)
        assert!(traits(&[0xff, 0x15, 0, 0, 0, 0]).call); // call *(%rip)
        assert!(!traits(&[0xff, 0xe0]).call); // jmp *%rax
        assert!(!traits(&[0xff, 0x30]).call); // push (%rax)
        assert!(!traits(&[0xff, 0x00]).call); // incl (%rax)
        assert!(!traits(&[0xe9, 0, 0, 0, 0]).call);
        assert!(!traits(&[0x0f, 0xe8, 0xc0]).call); // psubsb
    }

    #[test]
    fn returns() {
        assert!(traits(&[0xc3]).ret);
        assert!(traits(&[0xf3, 0xc3]).ret); // for old branch predictors
        assert!(traits(&[0x2e, 0xc3]).ret);
        assert!(traits(&[0xc2, 0x08, 0x00]).ret);
        assert!(!traits(&[0x48, 0xcf]).ret);
        assert!(!traits(&[0x0f, 0xc3, 0x07, 0xc0]).ret); // movnti
        assert!(!traits(&[0x89, 0xc3]).ret);
    }

    #[test]
    fn interrupt_returns() {
        assert!(traits(&[0x48, 0xcf]).iret);
        assert!(traits(&[0xcf]).iret);
        assert!(!traits(&[0xc3]).iret);
        assert!(!traits(&[0x0f, 0xcf]).iret); // bswap
    }

    #[test]
    fn truncated_input_is_nothing() {
        for bytes in [&[][..], &[0xf3], &[0x48], &[0x87], &[0xff], &[0x0f]] {
            assert_eq!(traits(bytes), Traits::default());
            assert_eq!(marker(bytes), None);
            assert_eq!(percpu_store_target(bytes, 0), None);
        }
    }

    #[test]
    fn markers() {
        let nop = |word: u32| [&[0x0f, 0x1f, 0x84, 0x00], &word.to_le_bytes()[..]].concat();
        assert_eq!(marker(&nop(0x4b4c_0100)), Some(Ok(Marker::RunOpen)));
        assert_eq!(marker(&nop(0x4b4c_0200)), Some(Ok(Marker::RunClose)));
        assert_eq!(marker(&nop(0x4b4c_0300)), Some(Ok(Marker::WorkBegin)));
        assert_eq!(marker(&nop(0x4b4c_0400)), Some(Ok(Marker::WorkEnd)));
        assert_eq!(marker(&nop(0x4b4c_0500)), Some(Ok(Marker::WorkWrites)));
        assert_eq!(marker(&nop(0x4b4c_0600)), Some(Err(0x0600)));
        assert_eq!(marker(&nop(0x4b4c_0101)), Some(Err(0x0101)));
        assert_eq!(marker(&nop(0)), None); // the usual eight-byte padding
        assert_eq!(marker(&nop(0x4c4b_0100)), None);
        let mut longer = nop(0x4b4c_0100);
        longer.insert(0, 0x66);
        assert_eq!(marker(&longer), None);
    }

    #[test]
    fn percpu_stores() {
        // mov %rsi,%gs:0x10(%rip) at 0x1000, eight bytes long.
        let store = [0x65, 0x48, 0x89, 0x35, 0x10, 0, 0, 0];
        assert_eq!(percpu_store_target(&store, 0x1000), Some(0x1018));
        // A negative displacement from kernel text.
        let back = [0x65, 0x4c, 0x89, 0x3d, 0xf8, 0xff, 0xff, 0xff];
        assert_eq!(
            percpu_store_target(&back, 0xffff_ffff_8100_0000),
            Some(0xffff_ffff_8100_0000)
        );
        assert_eq!(percpu_store_target(&store[1..], 0x1000), None); // no %gs
        assert_eq!(
            percpu_store_target(&[0x65, 0x89, 0x35, 0x10, 0, 0, 0], 0),
            None
        ); // 32 bits
        assert_eq!(
            percpu_store_target(&[0x65, 0x48, 0x8b, 0x35, 0x10, 0, 0, 0], 0),
            None
        ); // load
        assert_eq!(percpu_store_target(&[0x65, 0x48, 0x89, 0x30], 0), None); // (%rax)
    }
}
