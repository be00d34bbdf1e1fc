#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The kernel's contention tracepoints during a torture run: they name our locks by the flags from which perf
# takes the type (rwsem, pcpu-sem; read, write), and begin and end balance for each task.
# KLOCKS_MS milliseconds of each lock (300 by default; each second is some 10 000 events).

cd "$(dirname "$0")" || exit
. ./lib.sh

engine=$torture
tracing=/sys/kernel/tracing
[ -d $tracing/events ] || mount -t tracefs tracefs $tracing 2>/dev/null || skip "needs tracefs"
events=$tracing/events/lock
[ -d $events/contention_begin ] || skip "needs the tracepoints in $events"

quiet() {
	echo 0 >$tracing/tracing_on
	echo 0 >$events/enable
	echo >$tracing/trace
}
restore() {
	quiet
	echo local >$tracing/trace_clock
	echo 1 >$tracing/tracing_on
}
trap 'restore 2>/dev/null; finish' EXIT

# One order over all CPUs, room for all events, addresses to tell locks apart.
echo counter >$tracing/trace_clock
echo 4096 >$tracing/buffer_size_kb
quiet 2>/dev/null

# trace LOCK: what the threads of a run had to say of locks.
trace() {
	set_knobs "lock=$1" nreaders_stress=2 nwriters_stress=2 ntrylocks_stress=0 nkillables_stress=1 \
		ninterruptibles_stress=1 ndowngraders_stress=1 nrtwriters_stress=0 nshortlived_stress=0 stutter=0 seed=1 \
		"duration_ms=${KLOCKS_MS:-300}" || return
	for event in contention_begin contention_end contended_release; do
		echo 1 >$events/$event/enable
	done
	echo 1 >$tracing/tracing_on
	put $torture/run 1
	run=$?
	echo 0 >$tracing/tracing_on
	echo 0 >$events/enable
	[ $run = 0 ] && is_state "done" && ! grep -qE '^(dropped events|overrun): [1-9]' $tracing/per_cpu/cpu*/stats || return
	# a line: TASK EVENT ADDRESS DETAIL
	sed -nE 's|^ *(klocks[a-z_]*/[0-9]+-[0-9]+) .* (conten[a-z_]+): ([0-9a-f]+) ?\(?([^)]*)\)?$|\1 \2 \3 \4|p' $tracing/trace >"$work/trace"
	echo >$tracing/trace
}

# balanced PERCPU: of each task and lock, begins and ends alternate, and the last is an end; the flags are
# those of a reader and of a writer, with or without PERCPU, and each occurs. Spinlocks and mutexes are not
# ours, nor is what has such an event somewhere.
balanced() {
	awk -v percpu="$1" '
		function bad(why) { print "# " why ": " $0; failed = 1 }
		FNR == NR { if ($4 ~ /^flags=(.*SPIN|.*MUTEX|.*RT|$)/) other[$3] = 1; else if ($4 ~ /^flags=/) ours[$3] = 1; next }
		$3 in other || !($3 in ours) { next }
		$2 == "contention_begin" {
			if (open[$1, $3]++) bad("begins twice")
			if ($4 == "flags=READ" percpu) reads++
			else if ($4 == "flags=WRITE" percpu) writes++
			else bad("unexpected flags")
		}
		$2 == "contention_end" {
			if (!open[$1, $3]--) bad("ends without begin")
			if ($4 == "ret=0") ends++
			else if ($4 == "ret=-4") given_up++
			else bad("unexpected result")
		}
		$2 == "contended_release" { releases++ }
		END {
			for (key in open) if (open[key] != 0) bad("does not end")
			printf "# %d reads and %d writes waited, %d in vain; %d contended releases\n", reads, writes, given_up, releases
			exit failed || !reads || !writes || !releases || ends + given_up != reads + writes
		}' "$work/trace" "$work/trace"
}

locks="rwsem rwsem_xadd percpu_rwsem"
ktap_set_plan $(($(echo "$locks" | wc -w) * 2))
for lock in $locks; do
	case $lock in
	percpu*) percpu="|PERCPU" ;;
	*) percpu= ;;
	esac
	ktap_test_result "$lock: a run is traced" trace "$lock"
	ktap_test_result "$lock: events balance, flags say what it is" balanced "$percpu"
done
ktap_finished
