#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The optimistic spin queue: one head at a time and a free queue in the end, while waiters leave it by
# every way there is. KLOCKS_SECONDS (20 by default) bounds the wait for the rarest of them.

cd "$(dirname "$0")" || exit
. ./lib.sh

threads=$(nproc)
[ "$threads" -gt 1 ] || skip "needs two CPUs"
[ "$threads" -le 8 ] || threads=8
runs=0
deadline=$(($(date +%s) + ${KLOCKS_SECONDS:-20}))

# The ways out that the queue counts, where the kernel counts such events (CONFIG_LOCK_EVENT_COUNTS).
ways="unqueue_tail unqueue_middle granted_leaving"
# nobody is in the middle of a queue of two
[ "$threads" -gt 2 ] || ways="unqueue_tail granted_leaving"
for key in x successes give_ups tail $ways; do
	eval "sum_$key=0"
done

count() { sed -n "s/^$1: \([0-9]*\)\$/\1/p" $bench/results; }
sum() { eval "echo \$sum_$1"; }

# Adds a run to the sums. A fault ends the test: another run may not show it.
one_run() {
	run_ends || return 1
	runs=$((runs + 1))
	for key in x successes give_ups tail $ways; do
		value=$(count "$key")
		eval "sum_$key=\$((sum_$key + ${value:-0}))"
	done
}

enough() {
	[ "$(sum give_ups)" -gt 0 ] || return 1
	[ -n "$(count granted_leaving)" ] || return 0
	for way in $ways; do
		[ "$(sum "$way")" -gt 0 ] || return 1
	done
}

runs_succeed() {
	set_knobs scenario=osq "threads=$threads" load=10 think=0 skew=0 ops=1000 blocks=1 || return 1
	one_run || return 1
	while ! enough && [ "$(date +%s)" -lt $deadline ]; do
		put $bench/seed $((runs + 1)) && one_run || return 1
	done
}

is_exclusive() { [ "$(sum x)" -gt 0 ] && [ "$(sum x)" = "$(sum successes)" ]; }
is_free() { [ $runs -gt 0 ] && [ "$(sum tail)" = 0 ]; }
above_zero() { [ "$(sum "$1")" -gt 0 ]; }

too_many_threads() {
	set_knobs scenario=osq threads=1024 && fails_with "$EINVAL" $bench/run 1
}

ktap_set_plan $((5 + $(echo "$ways" | wc -w)))
ktap_test_result "runs with $threads threads succeed" runs_succeed
ktap_print_msg "$runs runs: $(for key in x successes give_ups tail $ways; do printf '%s %s ' "$key" "$(sum "$key")"; done)"
ktap_test_result "as many successes as counted" is_exclusive
ktap_test_result "the queue is free in the end" is_free
ktap_test_result "waiters give up" above_zero give_ups
for way in $ways; do
	if [ -n "$(count "$way")" ]; then
		ktap_test_result "$way happens" above_zero "$way"
	else
		ktap_test_skip "$way happens (needs CONFIG_LOCK_EVENT_COUNTS)"
	fi
done
ktap_test_result "refuses more threads than CPUs" too_many_threads
ktap_finished
