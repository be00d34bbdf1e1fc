// SPDX-License-Identifier: GPL-2.0

//! The lock files keep to what the checkers can follow.

/// Lock files, and in how many places each may tell the model from the kernel.
const FILES: &[(&str, &str, usize)] = &[
    ("lockref.rs", include_str!("../../../../lockref.rs"), 0),
    ("osq.rs", include_str!("../../../../osq.rs"), 0),
    (
        "percpu_rwsem.rs",
        include_str!("../../../../percpu_rwsem.rs"),
        0,
    ),
    ("rcu_sync.rs", include_str!("../../../../rcu_sync.rs"), 0),
    ("rwlock.rs", include_str!("../../../../rwlock.rs"), 0),
    ("rwsem.rs", include_str!("../../../../rwsem.rs"), 0),
    (
        "rwsem_xadd.rs",
        include_str!("../../../../rwsem_xadd.rs"),
        0,
    ),
    ("semaphore.rs", include_str!("../../../../semaphore.rs"), 0),
    ("spin.rs", include_str!("../../../../spin.rs"), 0),
    ("waiters.rs", include_str!("../../../../waiters.rs"), 0),
];

/// Words that shared memory must not be reached through: the checker would not see the access.
const BEHIND_ITS_BACK: &[&str] = &[
    "core::sync::atomic",
    "bindings::",
    "from_ptr",
    ".as_ptr()",
    "transmute",
    "zeroed",
    "asm!",
];

#[test]
fn lock_files_are_the_same_in_module_and_model() {
    for (file, text, allowed) in FILES {
        assert_eq!(
            text.matches("(model").count(),
            *allowed,
            "cfg(model) in {file}"
        );
    }
}

#[test]
fn lock_files_do_nothing_behind_the_checkers_back() {
    for (file, text, _) in FILES {
        let code = text.split("#[kunit_tests").next().unwrap_or(text);
        for word in BEHIND_ITS_BACK {
            let line = code
                .lines()
                .find(|line| line.contains(word) && !line.trim_start().starts_with("//"));
            assert_eq!(line, None, "{word} in {file}");
        }
    }
}
