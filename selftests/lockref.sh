#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Lockref: the count stands still while the lock is held and is right in the end; no dead object comes
# back and each is freed once; walks in a tree whose nodes move never end at a node that was retired.
#
# KLOCKS_SECONDS is how long each of four tests of each lock takes, 0.5 by default, or longer where less
# than a block is over by then. KLOCKS_OBJECTS is a number of objects to kill for each lock, however long
# that takes. KLOCKS_LOCKS, separated by blanks, are the locks to test: by default all that count.

cd "$(dirname "$0")" || exit
. ./lib.sh

seconds=${KLOCKS_SECONDS:-0.5}
objects=${KLOCKS_OBJECTS:-}
threads=$(nproc)
[ "$threads" -gt 1 ] || threads=2
[ "$threads" -le 4 ] || threads=4

counts=${KLOCKS_LOCKS:-$(awk '$2 == "lockref" { print $1 }' $klocks/locks)}
ours=
for lock in $counts; do
	case $lock in
	*_c | spin_ref) ;;
	*) ours="$ours $lock" ;;
	esac
done

common="threads=$threads think=0 skew=0 pin=0 check=1 seed=1"

# sum LOCK UNIT: of all blocks of that lock in the results.
sum() {
	awk -v lock="/lock=$1/" -v unit="$2" '
		index($1, lock) { for (i = 3; i < NF; i += 2) if ($(i + 1) == unit) n += $i }
		END { print n + 0 }' $bench/results
}

# run_for_a_while KNOB=VALUE...
run_for_a_while() {
	# shellcheck disable=SC2086 # words are wanted
	run_for "$seconds" $common "$@"
}

torture() {
	run_for_a_while scenario=ref_torture "lock=$1" ratio=20:1 load=0 ops=500 || return 1
	ktap_print_msg "$1: $(sum "$1" holds) holds"
	[ "$(sum "$1" holds)" -gt 0 ] && [ "$(sum "$1" thawed)" = 0 ]
}

# A quarter of the operations kill; about four of five find an object that nobody uses.
killed_and_freed() {
	if [ "$objects" ]; then
		# shellcheck disable=SC2086 # words are wanted
		set_knobs $common scenario=ref_kill "lock=$1" ratio=3:1 load=5 blocks=4 \
			ops=$((objects * 5 / 4 / threads + 1)) && run_ends
	else
		run_for_a_while scenario=ref_kill "lock=$1" ratio=3:1 load=5 ops=500
	fi || return 1
	ktap_print_msg "$1: $(sum "$1" killed) killed, $(sum "$1" freed) freed"
	[ "$(sum "$1" killed)" -ge "${objects:-1}" ] && [ "$(sum "$1" revived)" = 0 ]
}

# Moves must have left directories that nobody referred to, else walks could not have gone astray.
walks() {
	run_for_a_while scenario=ref_walk "lock=$1" ratio=4:1 load=0 ops=500 || return 1
	ktap_print_msg "$1: $(sum "$1" retired) of $(sum "$1" moves) moves left a directory unused"
	[ "$(sum "$1" retired)" -gt 0 ] && [ "$(sum "$1" astray)" = 0 ]
}

storm_and_burst() {
	run_for_a_while scenario=ref_storm "lock=$1" ratio=99:1 load=5 ops=500 &&
		run_for_a_while scenario=ref_burst "lock=$1" load=5 ops=300
}

# What does not count has no place in these scenarios, and a burst needs two threads.
refused() {
	# shellcheck disable=SC2086 # words are wanted
	set_knobs scenario=ref_storm lock=mutex,lockref $common ops=10 blocks=1 &&
		fails_with "$EINVAL" $bench/run 1 &&
		set_knobs scenario=ref_burst lock=lockref threads=1 && fails_with "$EINVAL" $bench/run 1
}

event() { cat "$klocks/events/$1/$2"; }

# Where nobody holds the lock nobody comes to take it, whatever the kernel debugs, but who was beaten by
# others in all tries. (Then others may find it held.) One thread alone is never beaten.
lockless() {
	put $klocks/events/reset 1 || return 1
	# shellcheck disable=SC2086 # words are wanted
	set_knobs scenario=ref_storm "lock=$1" $common "threads=$2" ratio=1:0 load=0 ops=5000 blocks=1 && run_ends || return 1
	falls=$(event "$1" lock_fallback)
	beaten=$(event "$1" tries_exhausted)
	ktap_print_msg "$1: $(event "$1" cmpxchg_retry) failed compare-exchanges, $beaten times all tries, $falls falls to the lock"
	[ "$falls" = 0 ] || { [ "$2" -gt 1 ] && [ "$beaten" -gt 0 ]; }
}

# A host may run one virtual CPU after the other for a while, and then nobody comes beside a holder: as many runs
# as it takes.
counts_events() {
	put $klocks/events/reset 1 || return 1
	# shellcheck disable=SC2086 # words are wanted
	set_knobs scenario=ref_storm "lock=$1" $common ratio=1:1 load=100 ops=5000 blocks=1 || return 1
	for _ in $(seq 100); do
		run_ends || return 1
		[ "$(event "$1" "$2")" = 0 ] || return 0
	done
	return 1
}

# with_events CPUS NAME FUNCTION ARGUMENT...: where there are that many. Who holds the lock keeps its CPU.
with_events() {
	needs=$1
	name=$2
	shift 2
	if [ "$(nproc)" -lt "$needs" ]; then
		ktap_test_skip "$name (needs $needs CPUs)"
	elif [ -r /sys/kernel/debug/lock_event_counts ]; then
		ktap_test_result "$name" "$@"
	else
		ktap_test_skip "$name (the kernel counts no lock events)"
	fi
}

ktap_set_plan $(($(echo "$counts" | wc -w) * 4 + $(echo "$ours" | wc -w) + 4))

for lock in $counts; do
	ktap_test_result "$lock: the count stands still while the lock is held" torture "$lock"
	ktap_test_result "$lock: dead objects stay dead, each is freed once" killed_and_freed "$lock"
	ktap_test_result "$lock: no walk ends at a retired node" walks "$lock"
	ktap_test_result "$lock: storm and burst" storm_and_burst "$lock"
done
ktap_test_result "locks without a count are refused" refused
for lock in $ours; do
	with_events 1 "$lock: alone, never takes the lock" lockless "$lock" 1
done
with_events 1 "lockref: takes the lock that nobody holds after its tries only" lockless lockref "$threads"
with_events 2 "lockref: falls to the lock beside holders" counts_events lockref lock_fallback
with_events 2 "lockref.rfc2: waits for the unlock beside holders" counts_events lockref.rfc2 unlock_wait

ktap_finished
