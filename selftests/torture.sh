#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Usage: torture.sh [KNOB=VALUE]...
#
# One torture run with these knobs of torture/, the others as they are: fails when the run does. Without
# arguments: every lock, for KLOCKS_SECONDS (5 by default), and the ways in which a run must not end.

cd "$(dirname "$0")" || exit
. ./lib.sh

engine=$torture

# has_ended [VERDICT]: the last line of the results is there, which comes with the last worker.
has_ended() { tail -n 1 $torture/results | grep -q "^klocks-torture:--- End of test: ${1:-}"; }

# tortures KNOB=VALUE...: a run with these knobs succeeds. One that has failed may never end, with workers stuck
# in a lock: a while is enough for its last lines.
tortures() {
	set_knobs "$@" && put $torture/run start || return 1
	while is_state running >/dev/null; do
		sleep 0.1
	done
	is_state "done" && return
	eventually 50 has_ended
	grep '^failure' $torture/results | sed 's/^/# /'
	return 1
}

if [ $# -gt 0 ]; then
	ktap_set_plan 1
	ktap_test_result "torture with $*" tortures "$@"
	grep 'End of test' $torture/results | sed 's/^/# /'
	ktap_finished
fi

# A run that no test waits for to end by itself.
endless="duration_ms=86400000 stutter=0"
none="nreaders_stress=0 nwriters_stress=0 ntrylocks_stress=0 nkillables_stress=0 ninterruptibles_stress=0 \
ndowngraders_stress=0 nrtwriters_stress=0 nshortlived_stress=0"
some="nreaders_stress=2 nwriters_stress=2 ntrylocks_stress=1 nkillables_stress=1 ninterruptibles_stress=1 \
ndowngraders_stress=1 nrtwriters_stress=0 nshortlived_stress=1"

# Each lock has its verdict, and the last line is that of the run.
verdicts() {
	for lock in $(real_locks); do
		grep -q "^$lock-torture:--- End of test: SUCCESS: " $torture/results && continue
		ktap_print_msg "$lock has no verdict of success"
		return 1
	done
	has_ended "SUCCESS: locks=$(real_locks | wc -l) failed=0"
}

# shellcheck disable=SC2086 # words are wanted
busted_is_found() {
	set_knobs lock=lock_busted $some duration_ms=60000 && put $torture/run start && wait_state 5 failed &&
		grep -q '^lock_busted-torture:--- End of test: FAILURE: ' $torture/results && has_ended "FAILURE: "
}

# A lock that forgets to wake: the sampler sees it, the results show the lock, and the run keeps the module
# for as long as a worker is stuck in it, which is 8 s here.
# shellcheck disable=SC2086 # words are wanted
lost_wake_up() {
	set_knobs lock=lock_lossy $some stutter=50 duration_ms=60000 && put $torture/run start && wait_state 55 failed &&
		grep -q '^failure: lock_lossy is free, and [0-9]* workers sleep for it' $torture/results &&
		grep -q '^lock: lock_lossy' $torture/results || return 1
	# with a verdict there it is about to end
	if ! has_ended; then
		! rmmod klocks 2>/dev/null && ! put $torture/stop 1 || return 1
	fi
	eventually 200 has_ended && has_ended "FAILURE: "
}

# A thread that nobody is going to wake sleeps in a way that counts as hung after a while: without CPUs that
# come and go there is none for that.
# shellcheck disable=SC2086 # words are wanted
stops() {
	set_knobs lock=rwsem,mutex $some $endless && put $torture/run start && is_state running &&
		! grep -qs klocks_onoff /proc/[0-9]*/comm &&
		fails_with "$EBUSY" $torture/run start && fails_with "$EBUSY" $torture/nreaders_stress 1 &&
		! rmmod klocks 2>/dev/null && put $torture/stop 1 && is_state stopped
}

# Nobody to run, for one lock or for all; and too many.
# shellcheck disable=SC2086 # words are wanted
nothing_to_run() {
	set_knobs lock=mutex $none && fails_with "$EINVAL" $torture/run 1 &&
		set_knobs lock=rwsem,mutex nkillables_stress=2 && fails_with "$EINVAL" $torture/run 1 &&
		set_knobs lock=rwsem,mutex nwriters_stress=1024 && fails_with "$EINVAL" $torture/run 1 &&
		set_knobs $some
}

# one_sided KNOB: workers of one kind alone.
# shellcheck disable=SC2086 # words are wanted
one_sided() {
	tortures lock=rwsem,rwsem_c $none "$1=2" duration_ms=300 && set_knobs $some
}

kinds="nreaders_stress nwriters_stress ntrylocks_stress nkillables_stress ninterruptibles_stress ndowngraders_stress \
nrtwriters_stress nshortlived_stress"
ktap_set_plan $((7 + $(echo "$kinds" | wc -w)))

# shellcheck disable=SC2086 # words are wanted
ktap_test_result "every lock" tortures "lock=$(real_locks | paste -s -d , -)" $some stutter=50 seed=1 \
	"duration_ms=$((${KLOCKS_SECONDS:-5} * 1000))"
ktap_test_result "a verdict for each, and for all" verdicts
ktap_test_result "lock_busted: found broken within 5 s" busted_is_found
ktap_test_result "lock_lossy: a lost wake-up is seen, and the lock shown" lost_wake_up
# what was not seen goes on
is_state "done" failed stopped >/dev/null || put $torture/stop 1
ktap_test_result "busy while it runs, and stopped" stops
ktap_test_result "nothing to run, or too much, is refused" nothing_to_run
for kind in $kinds; do
	ktap_test_result "$kind alone" one_sided "$kind"
done
ktap_test_result "CPUs go and come, writers are real-time" tortures lock=rwsem,rwsem_xadd,percpu_rwsem,rwsem_c \
	nrtwriters_stress=1 rt_boost=1 rt_boost_factor=10 nested_locks=2 onoff_interval=1 duration_ms=3000
ktap_finished
