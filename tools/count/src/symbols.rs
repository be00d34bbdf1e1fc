// SPDX-License-Identifier: GPL-2.0

//! The functions of the kernel image, from its System.map.

/// Where functions start and what they are called, and the few addresses that have a special meaning.
pub struct Symbols {
    /// Sorted by address, one entry per address.
    functions: Vec<(u64, String)>,
    text_end: u64,
    /// Where interrupts and exceptions enter the kernel, sorted.
    interrupt_entries: Vec<u64>,
    /// The function that switches tasks.
    schedule: u64,
    /// The per-CPU variable that holds the running task.
    pub current_task: u64,
}

/// How the names of the assembly entry points of interrupts and exceptions begin.
const INTERRUPT_ENTRIES: [&str; 4] = [
    "asm_sysvec_",
    "asm_exc_",
    "asm_common_interrupt",
    "asm_spurious_interrupt",
];

impl Symbols {
    /// Parses `address type name` lines. The error names what is missing.
    pub fn parse(map: &str) -> Result<Self, String> {
        let mut functions: Vec<(u64, String)> = Vec::new();
        let (mut start, mut end, mut schedule, mut current_task) = (None, None, None, None);
        for line in map.lines() {
            let mut fields = line.split_ascii_whitespace();
            let (Some(address), Some(kind), Some(name)) =
                (fields.next(), fields.next(), fields.next())
            else {
                return Err(format!(
                    "the symbol map has a line that is not 'address type name': {line}"
                ));
            };
            let address = u64::from_str_radix(address, 16)
                .map_err(|_| format!("the symbol map has a bad address: {line}"))?;
            match name {
                "_stext" => start = Some(address),
                "_etext" => end = Some(address),
                "current_task" => current_task = Some(address),
                "__schedule" => {
                    schedule = Some(address);
                    functions.push((address, name.to_owned()));
                }
                _ if matches!(kind, "t" | "T" | "w" | "W") => {
                    functions.push((address, name.to_owned()))
                }
                _ => {}
            }
        }
        let missing =
            |name| format!("the symbol map has no {name}: is it this kernel's System.map?");
        let start = start.ok_or_else(|| missing("_stext"))?;
        let text_end = end.ok_or_else(|| missing("_etext"))?;
        let schedule = schedule.ok_or_else(|| missing("__schedule"))?;
        let current_task = current_task.ok_or_else(|| missing("current_task"))?;
        functions.retain(|&(address, _)| (start..text_end).contains(&address));
        let mut interrupt_entries: Vec<u64> = functions
            .iter()
            .filter(|(_, name)| {
                INTERRUPT_ENTRIES
                    .iter()
                    .any(|entry| name.starts_with(entry))
            })
            .map(|&(address, _)| address)
            .collect();
        interrupt_entries.sort_unstable();
        // Stable, so that of several names for an address the first listed stays.
        functions.sort_by_key(|&(address, _)| address);
        functions.dedup_by_key(|&mut (address, _)| address);
        if interrupt_entries.is_empty() {
            return Err(missing("asm_sysvec_ functions"));
        }
        Ok(Symbols {
            functions,
            text_end,
            interrupt_entries,
            schedule,
            current_task,
        })
    }

    pub fn functions(&self) -> &[(u64, String)] {
        &self.functions
    }

    pub fn is_interrupt_entry(&self, pc: u64) -> bool {
        self.interrupt_entries.binary_search(&pc).is_ok()
    }

    /// Whether `pc` is in the function that switches tasks.
    pub fn is_in_schedule(&self, pc: u64) -> bool {
        let function = self.function_at(pc);
        function.is_some_and(|index| self.functions[index].0 == self.schedule)
    }

    /// The index of the function of the kernel image that contains `pc`.
    pub fn function_at(&self, pc: u64) -> Option<usize> {
        if pc >= self.text_end {
            return None;
        }
        self.functions
            .partition_point(|&(address, _)| address <= pc)
            .checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
0000000000000000 A fixed_percpu_data
ffffffff81000000 T _stext
ffffffff81000000 T first
ffffffff81000000 T first_alias
ffffffff81000040 t second
ffffffff81000040 W second_alias
ffffffff81000080 T __sched_text_start
ffffffff81000080 t __schedule
ffffffff810000c0 T __irqentry_text_start
ffffffff810000c0 T asm_sysvec_timer
ffffffff81000100 T _etext
ffffffff82000000 T init_only
ffffffff83000000 D current_task
ffffffff83000010 d data
";

    fn name_at(symbols: &Symbols, pc: u64) -> Option<&str> {
        symbols
            .function_at(pc)
            .map(|index| symbols.functions()[index].1.as_str())
    }

    #[test]
    fn finds_the_function_around_an_address() {
        let symbols = Symbols::parse(MAP).unwrap();
        assert_eq!(symbols.functions().len(), 4);
        assert_eq!(symbols.current_task, 0xffff_ffff_8300_0000);
        assert_eq!(name_at(&symbols, 0xffff_ffff_8100_0000), Some("first"));
        assert_eq!(name_at(&symbols, 0xffff_ffff_8100_003f), Some("first"));
        assert_eq!(name_at(&symbols, 0xffff_ffff_8100_0040), Some("second"));
        assert_eq!(name_at(&symbols, 0xffff_ffff_8100_007f), Some("second"));
    }

    #[test]
    fn addresses_outside_the_text_are_no_function() {
        let symbols = Symbols::parse(MAP).unwrap();
        for pc in [
            0,
            0xffff_ffff_80ff_ffff,
            0xffff_ffff_8100_0100,
            0xffff_ffff_8200_0000,
            u64::MAX,
        ] {
            assert_eq!(name_at(&symbols, pc), None, "{pc:x}");
        }
    }

    #[test]
    fn knows_where_interrupts_enter() {
        let symbols = Symbols::parse(MAP).unwrap();
        assert!(symbols.is_interrupt_entry(0xffff_ffff_8100_00c0));
        assert!(!symbols.is_interrupt_entry(0xffff_ffff_8100_00c4));
        assert!(!symbols.is_interrupt_entry(0xffff_ffff_8100_0000));
    }

    #[test]
    fn knows_the_scheduler_by_any_name() {
        let symbols = Symbols::parse(MAP).unwrap();
        assert!(symbols.is_in_schedule(0xffff_ffff_8100_0080));
        assert!(symbols.is_in_schedule(0xffff_ffff_8100_00bf));
        assert!(!symbols.is_in_schedule(0xffff_ffff_8100_007f));
        assert!(!symbols.is_in_schedule(0xffff_ffff_8100_00c0));
        assert!(!symbols.is_in_schedule(0));
    }

    #[test]
    fn says_what_is_missing() {
        for name in [
            "_stext",
            "_etext",
            "__schedule",
            "current_task",
            "asm_sysvec_timer",
        ] {
            let map: String = MAP
                .lines()
                .filter(|l| !l.ends_with(name))
                .map(|l| format!("{l}\n"))
                .collect();
            let error = Symbols::parse(&map).err().unwrap();
            assert!(error.contains(name.trim_end_matches("timer")), "{error}");
        }
        assert!(Symbols::parse("not a map\nx").is_err());
        assert!(Symbols::parse("").is_err());
    }
}
