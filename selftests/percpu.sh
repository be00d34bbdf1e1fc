#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The per-CPU rwsem and its gate: exclusion and wake-ups with all readers on the slow path; grace periods,
# as many as must be and no more; locks that are freed at once, and the module unloaded at once.
#
# Knobs for longer runs, with their defaults: KLOCKS_SECONDS=2 of each test on the slow path and in interrupts,
# KLOCKS_ROUNDS=30 of the gate and of locks that are freed at once, KLOCKS_WRITES=200 at a distance,
# KLOCKS_UNLOADS=5. KLOCKS_ONLY names the one group of tests to run, see the list at the end.

cd "$(dirname "$0")" || exit
. ./lib.sh

seconds=${KLOCKS_SECONDS:-2}
rounds=${KLOCKS_ROUNDS:-30}
writes=${KLOCKS_WRITES:-200}
unloads=${KLOCKS_UNLOADS:-5}
only=${KLOCKS_ONLY:-}

# run_done KNOB=VALUE...
run_done() {
	set_knobs skew=0 pin=0 check=1 blocks=1 seed=1 load=1 think=0 gap=0 threads=2 ratio=1:1 "$@" && run_ends
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

# largest UNIT LINE_PATTERN: the largest such value.
largest() {
	awk -v unit="$1" -v pattern="$2" '
		$0 ~ pattern { for (i = 3; i < NF; i += 2) if ($(i + 1) == unit && $i > most) most = $i }
		END { printf "%.0f\n", most }' $bench/results
}

# at_most LIMIT WHAT COUNT
at_most() {
	ktap_print_msg "$3 $2"
	[ "$3" -le "$1" ]
}

# A worker that is not woken is found by the harness.
slow_mode() {
	run_for "$seconds" seed=1 skew=0 scenario=percpu_slow "threads=$1" ops=1000 load=3 think=5 || return 1
	awk '/^BenchmarkPercpuSlow/ { n++; bad += $9 + $11 } END { print "# " n " blocks"; exit !n || bad }' $bench/results
}

# gate_is_honest THREADS IDLES: with so many returns to idle at least.
gate_is_honest() {
	run_done scenario=rcu_sync "threads=$1" "ops=$rounds" || return 1
	ktap_print_msg "$(value cold-enters RcuSync) enters from idle, $(value idles RcuSync) times idle again"
	[ "$(value early-enters RcuSync)" = 0 ] &&
		[ "$(value early-idles RcuSync)" = 0 ] && [ "$(value idles RcuSync)" -ge "$2" ] &&
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
	run_done scenario=freeze3 ops=10 || return 1
	own=$(value grace-periods Freeze3/lock=percpu_rwsem/)
	shared=$(value grace-periods Freeze3/lock=percpu_rwsem.shared/)
	ktap_print_msg "10 freezes: $own grace periods with three gates, $shared with one"
	[ "$shared" -ge 10 ] && [ "$own" -ge 30 ] && [ "$shared" -lt "$own" ]
}

# A call has waited for a grace period when one has begun and ended meanwhile: that may also be while others had the
# CPU. So the bounds have room, and are far below what a lock that waits where it need not would have.

# Writes that follow each other faster than grace periods: the first waits, and who else comes after a pause
# of the guest.
close_writes() {
	run_done scenario=percpu_toggle lock=percpu_rwsem "ops=$writes" "gap=$1" &&
		at_most $((writes / 10)) "grace periods waited for in $(value ops PercpuToggle) writes" "$(value waits PercpuToggle)"
}

# Writes that come alone wait for one each, in taking the lock and not in giving it up, unless the guest is so
# slow that the gate is not idle yet.
lone_writes() {
	run_done scenario=percpu_toggle lock=percpu_rwsem ops=10 gap=100 &&
		at_most 15 "grace periods waited for in 10 writes" "$(value waits PercpuToggle)" &&
		[ "$(value waits PercpuToggle)" -ge 1 ]
}

# Callbacks that wait for company, as RCU's lazy ones do, would take ten seconds.
lives() {
	run_done scenario=percpu_life "lock=$1" threads=2 "ops=$2" &&
		at_most 8000000000 "ns for a free at most" "$(largest longest-free-ns PercpuLife)"
}

# The lock is given up in interrupts, between the counts of a task on the same CPU.
interrupts() {
	run_for "$seconds" seed=1 skew=0 scenario=percpu_irq ops=5000 || return 1
	ktap_print_msg "$(value handed-over PercpuIrq) reads given up by the timer, $(value writes PercpuIrq) writes"
	[ "$(value handed-over PercpuIrq)" -gt 1 ] && [ "$(value writes PercpuIrq)" -gt 0 ]
}

# Each unload comes with callbacks of the gates pending.
unload_under_load() {
	without_unit_tests
	for _ in $(seq "$1"); do
		set_knobs scenario=rwsem_mix lock=percpu_rwsem threads=2 ratio=10:1 load=1 ops=1000000 blocks=1 skew=0 pin=0 check=1 &&
			put $bench/run start && sleep 0.05 && put $bench/stop 1 && unload && load || return 1
	done
}

# group | test | command
tests="slow|slow path: excludes and loses no wake-up for $seconds s|slow_mode 6
exclude|slow path: the same with excluders|slow_mode 9
gate|gate: keeps its word about grace periods|gate_is_honest 2 1
gate|gate: the same with three who enter|gate_is_honest 4 0
write|warm writes need no grace periods|warm_writes
write|writes back to back hardly ever wait|close_writes 0
write|writes at 1 ms hardly ever wait|close_writes 1
write|writes at 100 ms wait for one each|lone_writes
write|percpu_rwsem.sync: two grace periods a write|cold_writes_pay sync grace-periods 40
write|percpu_rwsem.expedited: two expedited ones|cold_writes_pay expedited expedited 40
write|percpu_rwsem.mb: one grace period a write|cold_writes_pay mb grace-periods 20
freeze|three locks behind a gate: a third of the grace periods|freeze
irq|percpu_rwsem: given up in interrupts|interrupts
life|percpu_rwsem: freed at once, $rounds times|lives percpu_rwsem $rounds
life|percpu_rwsem.mb: freed at once|lives percpu_rwsem.mb 10
unload|module unloaded at once, $unloads times|unload_under_load $unloads"

[ -z "$only" ] || tests=$(echo "$tests" | grep "^$only|") || skip "there is no group '$only'"
ktap_set_plan "$(echo "$tests" | wc -l)"
cpus=$(nproc)
while IFS='|' read -r _ test command; do
	case $command in
	close_writes* | lone_writes*)
		if [ "$cpus" -gt 16 ]; then
			ktap_test_skip "$test (has a bystander on each CPU, and 16 at most)"
			continue
		fi
		;;
	esac
	# shellcheck disable=SC2086 # words are wanted
	ktap_test_result "$test" $command
done <<END
$tests
END
ktap_finished
