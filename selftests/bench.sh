#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The benchmark: every lock holds in a small run and its results add up; the broken lock is found out;
# runs are exclusive, can be stopped and interrupted, and leave the results of the last one.

cd "$(dirname "$0")" || exit
. ./lib.sh

threads=2
ops=200
blocks=2

# lines_add_up LOCK: a line per block and the warm-up, whose figures fit the knobs and each other.
lines_add_up() {
	awk -v lock="$1" -v threads=$threads -v ops=$ops -v blocks=$blocks '
		index($1, "BenchmarkRwsemMix/") == 1 {
			n++
			if ($1 != "BenchmarkRwsemMix/lock=" lock "/threads=" threads "/ratio=10:1/load=1") bad = 1
			# On kernels that count, events follow: number and name.
			if (NF < 12 || NF % 2 || $2 != threads * ops || $4 != "ns/op" || $6 != "elapsed-ns" || $8 != "block") bad = 1
			if ($5 <= 0 || $3 * ops - $5 > ops / 1000 || $5 - $3 * ops > ops / 1000) bad = 1
			if ($9 != 0 || $10 != "overlaps" || $11 != 0 || $12 != "torn") bad = 1
			seen[$7]++
			if (bad) { print "# " $0; exit }
		}
		END {
			for (k = 0; k <= blocks; k++) if (seen[k] != 1) bad = 1
			exit bad || n != blocks + 1
		}' $bench/results
}

header_complete() {
	for key in kernel module config-inline-helpers preempt hz vcpus rustc scenario seed ops blocks roles check \
		pin think skew oversubscribed order; do
		grep -q "^$key: ." $bench/results && continue
		ktap_print_msg "no $key in the results"
		return 1
	done
}

small_run() {
	set_knobs scenario=rwsem_mix "lock=$1" threads=$threads ratio=10:1 load=1 think=0 skew=0 pin=0 check=1 \
		ops=$ops blocks=$blocks seed=1 && run_ends && lines_add_up "$1"
}

# All locks in one run: each has its lines, and the order of each round is a permutation of them.
all_in_one_run() {
	set_knobs "lock=$(real_locks | paste -s -d , -)" && run_ends || return 1
	for lock in $(real_locks); do
		[ "$(grep -c "/lock=$lock/" $bench/results)" = $((blocks + 1)) ] || return 1
	done
}

progress_ends_full() {
	read -r finished total <$bench/progress
	[ "$finished" = "$total" ] && [ "$total" -gt 0 ]
}

# The check must see a lock that does not lock, and say so where a user looks.
busted_is_found() {
	set_knobs lock=lock_busted threads=4 ratio=1:1 load=10 ops=20000 blocks=1 && put $bench/run start &&
		wait_state 5 failed && awk '$10 == "overlaps" { n += $9 + $11 } END { exit !n }' $bench/results
}

start_and_stop() {
	# shellcheck disable=SC2086 # words are wanted
	set_knobs $endless lock=mutex && put $bench/run start && is_state running && put $bench/stop 1 &&
		is_state stopped
}

second_run_is_refused() {
	put $bench/run start || return 1
	fails_with "$EBUSY" $bench/run start && fails_with "$EBUSY" $bench/run 1 && is_state running &&
		put $bench/stop 1 && is_state stopped
}

# A shell that survives the signal and does not repeat the write, as dash does.
shell=
if command -v busybox >/dev/null; then
	shell="busybox sh"
elif command -v bash >/dev/null; then
	shell=bash
fi
interrupted_run() {
	# shellcheck disable=SC2086 # words are wanted
	set_knobs $endless lock=mutex || return 1
	# shellcheck disable=SC2086 # words are wanted
	timeout -s INT 2 $shell -c "trap : INT; printf 1 >$bench/run || echo refused" >"$work/interrupt" 2>&1
	grep -q refused "$work/interrupt" && is_state stopped
}

results_are_a_snapshot() {
	small_run mutex || return 1
	cat $bench/results >"$work/before"
	exec 3<$bench/results
	small_run rwsem_c || return 1
	cat <&3 >"$work/held"
	exec 3<&-
	cmp -s "$work/before" "$work/held" && ! cmp -s "$work/before" $bench/results
}

ktap_set_plan $(($(real_locks | wc -l) + 10))

for lock in $(real_locks); do
	ktap_test_result "$lock: a small run" small_run "$lock"
done
ktap_test_result "all locks in one run" all_in_one_run
ktap_test_result "results: the header is complete" header_complete
ktap_test_result "progress: ends full" progress_ends_full
ktap_test_result "lock_busted: found broken within 5 s" busted_is_found
ktap_test_result "start and stop" start_and_stop
ktap_test_result "a second run is refused" second_run_is_refused
if [ -n "$shell" ]; then
	ktap_test_result "a signal ends a blocking run" interrupted_run
else
	ktap_test_skip "a signal ends a blocking run (needs bash or busybox)"
fi
ktap_test_result "a run after an interrupted one" small_run mutex
ktap_test_result "results: a snapshot at open" results_are_a_snapshot
ktap_test_result "a run after a failed one" small_run rwsem_c

ktap_finished
