#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What both read-write semaphores need stands once: no run of more than 10 equal lines is in both files.
# shellcheck disable=SC2317 # checks are called by name
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# longest_run A B: `LENGTH LINE_IN_A LINE_IN_B` of the longest run of lines that both files have. Blank lines
# and those with nothing but brackets count as they stand: a run is what a reader would meet twice.
longest_run() {
	awk '
		NR == FNR { a[FNR] = $0; n = FNR; next }
		{
			# run[i]: how many equal lines end at line i of A and at the present line of B
			for (i = n; i > 0; i--) {
				run[i] = a[i] == $0 ? run[i - 1] + 1 : 0
				if (run[i] > best) { best = run[i]; in_a = i - best + 1; in_b = FNR - best + 1 }
			}
		}
		END { print best + 0, in_a + 0, in_b + 0 }' "$1" "$2"
}

number=0 failed=0
check() { # DESCRIPTION COMMAND...
	number=$((number + 1))
	if "${@:2}"; then
		echo "ok $number - $1"
	else
		failed=1
		echo "not ok $number - $1"
	fi
}

# The search finds what it should: a copy of 11 lines, and no run of more than 10 in one that is broken up.
finds_copies() {
	local length from_a from_b
	read -r length from_a from_b < <(longest_run <(seq 1 40) <(echo x; seq 20 30; echo y))
	[ "$length $from_a $from_b" = "11 20 2" ] || return 1
	read -r length from_a from_b < <(longest_run <(seq 1 40) <(seq 20 29; echo x; seq 30 39))
	[ "$length" = 10 ]
}

semaphores_share_nothing() {
	local length in_rwsem in_xadd
	read -r length in_rwsem in_xadd < <(longest_run "$root/rwsem.rs" "$root/rwsem_xadd.rs")
	echo "# the longest run has $length lines: rwsem.rs:$in_rwsem and rwsem_xadd.rs:$in_xadd"
	[ "$length" -le 10 ]
}

echo "KTAP version 1"
echo "1..2"
check "a run of equal lines is found" finds_copies
check "no run of more than 10 equal lines in rwsem.rs and rwsem_xadd.rs" semaphores_share_nothing
exit "$failed"
