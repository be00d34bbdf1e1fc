#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Hands that know nothing on the control files: random writes and reads over all of them, starts and stops
# from two shells, unloading in the middle, a killed writer. Nothing breaks, and the module works afterwards.
# KLOCKS_OPS (500 by default) random operations.

cd "$(dirname "$0")" || exit
. ./lib.sh

without_unit_tests
ops=${KLOCKS_OPS:-500}

# Lines FILE OPERATION VALUE. No value makes a run that takes for ever to stop: large ones are too large.
random_operations() {
	(cd $klocks && find locks bench torture events dump -type f 2>/dev/null) | awk -v ops="$1" -v seed="$2" '
		{ files[n++] = $0 }
		END {
			srand(seed)
			split("0 1 2 3 4 -1 1x x 0x1 1.0 1:1 10:1 0:0 , start stop rwsem mutex rwsem,mutex lock_busted rwsem_mix osq " \
				"99999999999 18446744073709551616 \\0001 \\n 1\\n\\n %s%n", values, " ")
			for (i in values) values_n++
			for (i = 0; i < ops; i++)
				print files[int(rand() * n)], rand() < 0.6 ? "write" : "read", values[1 + int(rand() * values_n)]
		}'
}

# The module may be away at times, and files with it.
act() {
	while read -r file op value; do
		case $file:$op:$value in
		# would block for as long as the run takes
		*/run:write:1) ;;
		*:write:*) printf '%b' "$value" >"$klocks/$file" ;;
		*) cat "$klocks/$file" >/dev/null ;;
		esac
	done 2>/dev/null
}

start_and_stop() {
	while [ -e "$work/go" ]; do
		echo start >"$1/run"
		echo 1 >"$1/stop"
	done 2>/dev/null
}

unload_and_load() {
	while [ -e "$work/go" ]; do
		sleep 0.3
		rmmod klocks && load
	done >/dev/null 2>&1
}

hammered() {
	touch "$work/go"
	start_and_stop $bench &
	start_and_stop $bench &
	start_and_stop $torture &
	start_and_stop $torture &
	[ "$1" = steady ] || unload_and_load &
	random_operations "$ops" "$2" | act
	rm "$work/go"
	wait
	loaded || load
	put $bench/stop 1 && put $torture/stop 1
}

# The module as it is when loaded, and runs of both kinds succeed.
works_again() {
	unload && load || return 1
	engine=$bench
	set_knobs lock=mutex ops=10 blocks=1 && run_ends
	benched=$?
	engine=$torture
	[ $benched = 0 ] && set_knobs lock=rwsem,mutex duration_ms=200 && put $torture/run 1 && is_state "done"
}

# A writer that blocks for a whole run is killed: the run goes with it, and the module can go.
killed_writer() {
	set_knobs lock=rwsem duration_ms=60000 || return 1
	(echo 1 >$torture/run) 2>/dev/null &
	writer=$!
	wait_state 5 running || return 1
	sleep "0.$1"
	kill -9 $writer
	wait $writer 2>/dev/null
	wait_state 5 stopped && unload && load
}

killed_writers() {
	for round in 0 1 2 3 5; do
		killed_writer $round || return 1
	done
}

# cpus ONLINE: all CPUs but the first go, or come.
cpus() {
	for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
		[ ! -e "$cpu" ] || echo "$1" >"$cpu" || return
	done
}

# Those who are told to stop must not keep from its CPU who tells them.
crowd_stops() {
	cpus 0 || return 1
	set_knobs lock=rwsem nreaders_stress=30 nwriters_stress=30 stutter=0 duration_ms=60000 && put $torture/run start
	sleep 1
	put $torture/stop 1 && is_state stopped
	stopped=$?
	cpus 1
	return $stopped
}

engine=$torture
ktap_set_plan 5
ktap_test_result "$ops random operations among starts and stops" hammered steady 1
ktap_test_result "the same while the module comes and goes" hammered unload 2
ktap_test_result "works afterwards" works_again
ktap_test_result "a killed writer takes its run along" killed_writers
ktap_test_result "64 workers on one CPU stop" crowd_stops
ktap_finished
