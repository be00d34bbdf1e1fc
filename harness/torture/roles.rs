// SPDX-License-Identifier: GPL-2.0

//! The table of what workers do.

/// A kind of worker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Reader,
    Writer,
    /// Reads or writes if that needs no wait.
    Trylock,
    /// Reads or writes, and is killed now and then while it waits.
    Killable,
    /// Reads, and is interrupted now and then while it waits.
    Interruptible,
    /// Writes, and goes on as a reader.
    Downgrader,
    /// Writes, real-time. Sleeps in between, or nothing else would run.
    RtWriter,
    /// Has each operation done by a task that exits right after it.
    ShortLived,
}

impl Role {
    pub(super) const COUNT: usize = 8;

    /// In the order of their numbers.
    pub(super) const ALL: [Self; Self::COUNT] = [
        Self::Reader,
        Self::Writer,
        Self::Trylock,
        Self::Killable,
        Self::Interruptible,
        Self::Downgrader,
        Self::RtWriter,
        Self::ShortLived,
    ];

    /// Its number.
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// What results call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Writer => "writer",
            Self::Trylock => "trylock",
            Self::Killable => "killable",
            Self::Interruptible => "interruptible",
            Self::Downgrader => "downgrader",
            Self::RtWriter => "rtwriter",
            Self::ShortLived => "shortlived",
        }
    }

    /// The operation, by its name in the list of locks, without which a lock has no such workers.
    pub(super) fn needs(self) -> &'static str {
        match self {
            Self::Reader | Self::ShortLived => "read",
            Self::Writer | Self::RtWriter => "write",
            Self::Trylock => "try_read",
            Self::Killable => "write_killable",
            Self::Interruptible => "read_interruptible",
            Self::Downgrader => "downgrade",
        }
    }
}
