#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The per-CPU rwsem and its gate: exclusion and wake-ups with all readers on the slow path; grace periods,
# as many as must be and no more; locks that are freed at once, and the module unloaded at once.
# For long runs: KLOCKS_SECONDS=60 ./percpu.sh (seconds of the first test, 5 by default)

cd "$(dirname "$0")" || exit
. ./lib.sh

seconds=${KLOCKS_SECONDS:-5}
rounds=${KLOCKS_ROUNDS:-100}

# run_done KNOB=VALUE...
run_done() {
	set_knobs skew=0 pin=0 check=1 blocks=1 seed=1 load=1 think=0 "$@" && put $bench/run 1 && is_state "done" && return
	grep '^failure' $bench/results | sed 's/^/# /'
	return 1
}

# value UNIT LINE_PATTERN: the sum of what stands before UNIT in the lines of measured blocks.
value() {
	awk -v unit="$1" -v pattern="$2" '
		$0 ~ pattern {
			for (i = 3; i < NF; i += 2) v[$(i + 1)] = $i
			v["ops"] = $2
			if (v["block"] > 0) sum += v[unit]
		}
		END { print sum + 0 }' $bench/results
}

# Short blocks, as many as fit in. A worker that is not woken is found by the harness.
slow_mode() {
	set_knobs scenario=percpu_slow threads=6 ops=1000 blocks=10000 load=3 think=5 seed=1 skew=0 && put $bench/run start &&
		sleep "$seconds" || return 1
	put $bench/stop 1
	is_state stopped "done" || return 1
	awk '/^BenchmarkPercpuSlow/ { n++; bad += $9 + $11 } END { print "# " n " blocks"; exit !n || bad }' $bench/results
}

gate_is_honest() {
	run_done scenario=rcu_sync "ops=$rounds" && [ "$(value early-enters RcuSync)" = 0 ] &&
		[ "$(value early-idles RcuSync)" = 0 ] && [ "$(value idles RcuSync)" -gt 0 ] &&
		[ "$(value cold-enters RcuSync)" -gt 0 ]
}

# The system has grace periods of its own, about as many as fit in: those of the lock would be two a write.
warm_writes() {
	run_done scenario=percpu_write lock=percpu_rwsem load=0 ops=20000 || return 1
	ktap_print_msg "$(value ops PercpuWrite) writes, $(value grace-periods PercpuWrite) grace periods"
	[ "$(value ops PercpuWrite)" = 20000 ] && [ "$(value grace-periods PercpuWrite)" -lt 2000 ]
}

cold_writes_pay() {
	run_done scenario=percpu_write "lock=percpu_rwsem.$1" load=0 ops=20 || return 1
	[ "$(value ops PercpuWrite)" = 20 ] && [ "$(value "$2" PercpuWrite)" -ge "$3" ]
}

# Three with gates of their own, one with a common one; the system may add some.
freeze() {
	run_done scenario=freeze3 ops=20 || return 1
	own=$(value grace-periods Freeze3/lock=percpu_rwsem/)
	shared=$(value grace-periods Freeze3/lock=percpu_rwsem.shared/)
	ktap_print_msg "20 freezes: $own grace periods with three gates, $shared with one"
	[ "$shared" -ge 20 ] && [ "$own" -ge 60 ] && [ "$shared" -lt "$own" ]
}

lives() {
	run_done scenario=percpu_life "lock=$1" threads=2 "ops=$2"
}

# Each unload comes with callbacks of the gates pending.
unload_under_load() {
	for _ in $(seq "$1"); do
		set_knobs scenario=rwsem_mix lock=percpu_rwsem threads=2 ratio=10:1 load=1 ops=1000000 blocks=1 skew=0 pin=0 check=1 &&
			put $bench/run start && sleep 0.05 && put $bench/stop 1 && unload && load || return 1
	done
}

ktap_set_plan 10
ktap_test_result "slow path: excludes and loses no wake-up for $seconds s" slow_mode
ktap_test_result "gate: keeps its word about grace periods" gate_is_honest
ktap_test_result "warm writes need no grace periods" warm_writes
ktap_test_result "percpu_rwsem.sync: two grace periods a write" cold_writes_pay sync grace-periods 40
ktap_test_result "percpu_rwsem.expedited: two expedited ones" cold_writes_pay expedited expedited 40
ktap_test_result "percpu_rwsem.mb: one grace period a write" cold_writes_pay mb grace-periods 20
ktap_test_result "three locks behind a gate: a third of the grace periods" freeze
ktap_test_result "percpu_rwsem: freed at once" lives percpu_rwsem "$rounds"
ktap_test_result "percpu_rwsem.mb: freed at once" lives percpu_rwsem.mb 10
ktap_test_result "module unloaded at once, 10 times" unload_under_load 10
ktap_finished
