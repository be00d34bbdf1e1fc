#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# dump/<lock>: shows the words and the queue of locks that are in use, without disturbing them, and
# nothing of others.

cd "$(dirname "$0")" || exit
. ./lib.sh

dump=$klocks/dump

every_lock_has_a_file() {
	files=0
	for file in "$dump"/*; do
		files=$((files + 1))
		grep -q "^${file##*/} " $klocks/locks && continue
		ktap_print_msg "there is no lock ${file##*/}"
		return 1
	done
	[ $files = "$(wc -l <$klocks/locks)" ]
}

nothing_in_use() {
	for file in "$dump"/*; do
		[ -z "$(cat "$file")" ] && continue
		ktap_print_msg "${file##*/} is in use, and nothing runs"
		return 1
	done
}

# well_formed FILE: the lines of a semaphore, with figures that go together.
well_formed() {
	awk '
		function bad(why) { print "# " why ": line " NR ": " $0; failed = 1; exit }
		$1 == "lock:" { locks++; sleepers = 0; told = 0; count = "" }
		$1 == "address:" && $2 !~ /^0x[0-9a-f]+$/ { bad("no address") }
		$1 == "count:" { count = $2; if ($2 !~ /^0x[0-9a-f]+$/) bad("no number") }
		$1 == "holder:" && $0 !~ /^holder: (none|writer|[1-9][0-9]* readers)$/ { bad("no holder") }
		$1 == "owner:" && $0 !~ /^owner: 0x[0-9a-f]+( writer pid [1-9][0-9]*| readers)?( nonspinnable)?$/ { bad("no owner") }
		$1 == "spinners:" && $0 !~ /^spinners: (none|last on CPU [0-9]+)$/ { bad("no spinners") }
		$1 == "sleepers:" && $2 ~ /^[0-9]+$/ { sleepers = $2; if (sleepers == 0 && count == "") bad("no count") }
		$1 == "sleeper:" {
			told++
			if ($0 !~ /^sleeper: (reader|writer) pid [1-9][0-9]* for [0-9]+ ms( handoff)?$/) bad("no sleeper")
			if (told > sleepers) bad("more sleepers than there are")
			if (told > 1 && /handoff$/) bad("promised to one who is not first")
			seen++
		}
		$1 !~ /^(lock|address|count|holder|handoff|owner|spinners|sleepers|sleeper):$/ { bad("unknown") }
		END { exit failed || locks != 1 }' "$1"
}

# Twenty looks at a lock under load. On some of them tasks sleep: what is tested is not always empty.
seen_under_load() {
	# shellcheck disable=SC2086 # words are wanted
	set_knobs $endless "lock=$1" threads=8 load=100 && put $bench/run start && is_state running || return 1
	looks=0 sleeping=0 failed=0
	while [ $looks -lt 20 ] || { [ $sleeping = 0 ] && [ $looks -lt 400 ]; }; do
		cat "$dump/$1" >"$work/dump" || failed=1
		# between two blocks there is no lock
		[ ! -s "$work/dump" ] || well_formed "$work/dump" || failed=1
		! grep -q '^sleeper:' "$work/dump" || sleeping=$((sleeping + 1))
		looks=$((looks + 1))
	done
	put $bench/stop 1 && is_state stopped || return 1
	ktap_print_msg "$1: $looks looks, $sleeping with sleepers"
	[ $failed = 0 ] && [ $sleeping -gt 0 ]
}

# The other types: whatever they show, the run is not disturbed.
harmless_under_load() {
	# shellcheck disable=SC2086 # words are wanted
	set_knobs $endless "lock=$1" && put $bench/run start && is_state running || return 1
	shown=0
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		cat "$dump/$1" >"$work/dump" || return 1
		! grep -qx "lock: $1" "$work/dump" || shown=1
	done
	put $bench/stop 1 && is_state stopped && [ $shown = 1 ]
}

semaphores="rwsem rwsem.c73 rwsem_xadd"
others="mutex rwsem_c percpu_rwsem percpu_rwsem_c lockref lockref_c spin_ref"

ktap_set_plan $((3 + $(echo "$semaphores $others" | wc -w)))
ktap_test_result "every lock has a file" every_lock_has_a_file
ktap_test_result "nothing is shown when nothing runs" nothing_in_use
for lock in $semaphores; do
	ktap_test_result "$lock: words and queue under load" seen_under_load "$lock"
done
for lock in $others; do
	ktap_test_result "$lock: a look does no harm" harmless_under_load "$lock"
done
ktap_test_result "nothing is shown after the runs" nothing_in_use
ktap_finished
