#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# That a stage of the 2014 series exists is no evidence that it does anything: each has an event of its own,
# which must happen with it and never without. Runs are repeated until each was seen, for KLOCKS_SECONDS (120 by
# default) at most in each situation; that others never happen needs no luck.

cd "$(dirname "$0")" || exit
. ./lib.sh

[ -r /sys/kernel/debug/lock_event_counts ] || skip "the kernel counts no lock events"
cpus=$(nproc)
[ "$cpus" -gt 1 ] || skip "needs two CPUs"
seconds=${KLOCKS_SECONDS:-120}

# The stages in their order; `final` is the lock to use.
stages="nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6 p7 posted final"

lock_of() {
	case $1 in
	final) echo rwsem_xadd ;;
	*) echo "rwsem_xadd.$1" ;;
	esac
}

# event | situation | the stages that have it | those that must not. Stages in neither may.
# A writer alone among readers finds no owner known: it spins only where that is assumed to be worth it, and
# where patience is limited it seldom gets the lock by that. That wake_trylock_failed happens is left to KUnit, which
# makes that rare meeting (unlock_leaves_waking_to_a_spinner).
matrix='opt_lock|crowd|base p1 p2 p3 p4 p4_16 p4_time p4_null p6 p7 posted final|nospin
opt_lock|one_writer|p2 p3|nospin base p1
resched_left|crowd|p1 posted|nospin base p2 p3 p4 p4_16 p4_time p4_null p6 p7 final
wake_aborted|crowd|p3 p4 p4_16 p4_time p4_null p6 p7 posted final|nospin base p1 p2
wake_trylock_failed|crowd||nospin base p1 p2
reader_spin_exhausted|one_writer|p4 p4_16 p4_time p4_null p6 p7 posted final|nospin base p1 p2 p3
reader_opt_lock|crowd|p6 p7 posted final|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null
respin|crowd|p7 posted final|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6
requeue|crowd|p7 posted final|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6
sleep_reader|crowd|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6 p7 posted final|
sleep_writer|crowd|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6 p7 posted final|
wake_reader|crowd|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6 p7 posted final|
wake_writer|crowd|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6 p7 posted final|
rlock|crowd|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6 p7 posted final|
wlock|crowd|nospin base p1 p2 p3 p4 p4_16 p4_time p4_null p6 p7 posted final|'

# count STAGE EVENT: sets got
count() { get "$klocks/events/$(lock_of "$1")/$2"; }

# missing SITUATION: the stages that have not yet shown all that they must there.
missing() {
	for stage in $stages; do
		echo "$matrix" | while IFS='|' read -r name place having _; do
			[ "$place" = "$1" ] || continue
			case " $having " in
			*" $stage "*) count "$stage" "$name" && [ "$got" -gt 0 ] || echo "$stage" ;;
			esac
		done | head -n 1
	done
}

# run_stages SEED STAGE...: one small run of each.
run_stages() {
	seed=$1
	shift
	list=$(for stage in "$@"; do lock_of "$stage"; done | paste -s -d , -)
	set_knobs "lock=$list" "seed=$seed" && run_ends
}

# Twice as many threads as CPUs, so that owners lose theirs and spinners are to give way.
crowd() {
	set_knobs scenario=rwsem_mix threads=$((cpus * 2)) ratio=1:1 roles=mixed load=20 think=5 skew=0 pin=1 check=1 \
		ops=300 blocks=1
}

# One reads, asleep for most of the time, one writes.
one_writer() {
	set_knobs scenario=sleeping_readers threads=2 ratio=1:1 load=5 think=5 skew=0 pin=1 check=1 ops=20 blocks=1
}

# all_seen SITUATION: every stage runs there, and again until it has shown all.
all_seen() {
	put $klocks/events/reset 1 && "$1" || return 1
	deadline=$(($(date +%s) + seconds))
	runs=1
	# shellcheck disable=SC2086 # words are wanted
	run_stages 1 $stages || return 1
	while
		left=$(missing "$1")
		[ "$left" ]
	do
		[ "$(date +%s)" -lt "$deadline" ] || break
		runs=$((runs + 1))
		# What is left is rare.
		set_knobs ops=1000 || return 1
		# shellcheck disable=SC2086 # words are wanted
		run_stages $runs $left || return 1
	done
	ktap_print_msg "$1: $runs runs"
}

# The row of the matrix that $event, $with and $without are, by what was counted. (Arguments would come as words.)
row() {
	failed=0
	counts=
	for stage in $with; do
		count "$stage" "$event"
		counts="$counts $stage:$got"
		[ "$got" -gt 0 ] && continue
		ktap_print_msg "$stage has no $event"
		failed=1
	done
	for stage in $without; do
		count "$stage" "$event"
		[ "$got" = 0 ] && continue
		ktap_print_msg "$stage has $got $event and must have none"
		failed=1
	done
	ktap_print_msg "$event:$counts"
	return $failed
}

ktap_set_plan $(($(echo "$matrix" | wc -l) + 2))
for situation in crowd one_writer; do
	ktap_test_result "$situation: all runs end well" all_seen $situation
	while IFS='|' read -r event where with without; do
		[ "$where" = $situation ] || continue
		ktap_test_result "$event ($where): with the stages that have it only" row
	done <<-END
		$matrix
	END
done
ktap_finished
