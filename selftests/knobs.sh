#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Every knob of bench/ and torture/: good values read back; bad ones are refused with EINVAL and change nothing;
# none changes during a run.

cd "$(dirname "$0")" || exit
. ./lib.sh

# knob | good values | bad values besides those of every knob
knobs='threads|1 2 1024|0 1025 2147483648 4294967297 9223372036854775808
ratio|10:1 0:1 1:0 1000000:1000000|0:0 1 1: :1 : 1:1:1 1:x 1000001:1 1:1000001 -1:1 1:-1 4294967297:1
roles|mixed split|Mixed SPLIT mixe mixedd mixed,split 0 2
load|0 100000|100001 2147483648 4294967297 9223372036854775808
think|0 100000|100001 2147483648 4294967297 9223372036854775808
gap|0 10000|10001 2147483648 4294967297 9223372036854775808
ops|1 1000000000|0 1000000001 2147483648 4294967297 9223372036854775808
blocks|1 10000|0 10001 2147483648 4294967297 9223372036854775808
seed|0 2147483648 18446744073709551615|18446744073709551616
skew|0 1000000|1000001 2147483648 4294967297 9223372036854775808
pin|0 1|2 2147483648 4294967297 9223372036854775808
check|0 1|2 2147483648 4294967297 9223372036854775808'

workers='0 1 1024|1025 2147483648 4294967297 9223372036854775808'
number='|2147483648 4294967297 9223372036854775808'
torture_knobs="nreaders_stress|$workers
nwriters_stress|$workers
ntrylocks_stress|$workers
nkillables_stress|$workers
ninterruptibles_stress|$workers
ndowngraders_stress|$workers
nrtwriters_stress|$workers
nshortlived_stress|$workers
load|0 100000$number 100001
think|0 100000$number 100001
long_hold|0 1000$number 1001
nested_locks|0 8$number 9
stutter|0 10000$number 10001
shuffle_interval|0 10000$number 10001
onoff_interval|0 3600$number 3601
onoff_holdoff|0 3600$number 3601
rt_boost|0 1$number 2
rt_boost_factor|1 1000000$number 0 1000001
acq_writer_lim|0 1000000$number 1000001
watchdog_ms|100 3600000$number 99 3600001
duration_ms|1 86400000$number 0 86400001
seed|0 18446744073709551615|18446744073709551616"

digits_4k=$(printf '%04096d' 1)
# Nothing, text, a sign, trailing junk, other notations, an embedded NUL, more than any knob takes.
bad_everywhere="\\n \\0040 \\00401 1\\0040 1\\n\\n 1\\r\\n text -1 +1 1x 1;1 0x1 1.5 1\\0000 1\\00001 \\00001 $digits_4k ${digits_4k}x"

# reads_back KNOB BYTES TEXT
reads_back() {
	put "$engine/$1" "$2" && get "$engine/$1" && [ "$got" = "$3" ] && return
	ktap_print_msg "$1: wrote '$2', reads '$got' $error"
	return 1
}

good_values() {
	for value in $2; do
		reads_back "$1" "$value" "$value" && reads_back "$1" "$value\\n" "$value" || return 1
	done
}

# bad_values KNOB VALUE...: all are tried, so that one run shows every hole.
bad_values() {
	knob=$1
	shift
	get "$engine/$knob"
	old=$got
	failed=0
	for value in "$@"; do
		fails_with "$EINVAL" "$engine/$knob" "$value" && get "$engine/$knob" && [ "$got" = "$old" ] && continue
		ktap_print_msg "$knob: wrote $(echo "$value" | cut -c 1-40), was $old, reads $got"
		failed=1
	done
	return $failed
}

# chosen FILE: the names in brackets.
chosen() { tr ' ' '\n' <"$engine/$1" | sed -n 's/^\[\(.*\)\]$/\1/p'; }
known() { tr -d '[]' <"$engine/$1"; }

choose_each() {
	for name in $(known "$1"); do
		put "$engine/$1" "$name" && [ "$(chosen "$1")" = "$name" ] && continue
		ktap_print_msg "$1: chose $name, reads $(cat "$engine/$1") $error"
		return 1
	done
}

all_locks() {
	list=$(known lock | tr ' ' ,)
	put $bench/lock "$list" && [ "$(chosen lock | wc -l)" = "$(known lock | wc -w)" ]
}

locks_agree() { [ "$(known lock | tr ' ' '\n')" = "$(awk '{ print $1 }' $klocks/locks)" ]; }

# run and stop are commands: what is not one leaves the state alone.
bad_commands() {
	get $bench/state
	old=$got
	failed=0
	for value in 0 2 10 starts stop $bad_everywhere; do
		fails_with "$EINVAL" "$engine/$1" "$value" && is_state "$old" && continue
		ktap_print_msg "$1: the value was $(echo "$value" | cut -c 1-40)"
		failed=1
		put $bench/stop 1
	done
	return $failed
}

# Roles are split exactly or not at all: no thread is rounded off.
uneven_roles() {
	set_knobs scenario=rwsem_mix lock=mutex ratio=1:1 roles=split threads=3 ops=10 blocks=1 &&
		fails_with "$EINVAL" $bench/run 1 && set_knobs roles=mixed && run_ends &&
		set_knobs roles=split threads=4 && run_ends &&
		grep -q '^roles: split$' $bench/results
}

read_only() {
	for file in locks bench/state bench/progress bench/results; do
		! put "$klocks/$file" 1 || return 1
	done
}

busy_knobs() {
	failed=0
	for line in $(echo "$1" | tr ' ' ,); do
		knob=${line%%|*}
		get "$engine/$knob"
		old=$got
		fails_with "$EBUSY" "$engine/$knob" "$old" && get "$engine/$knob" && [ "$got" = "$old" ] || failed=1
	done
	fails_with "$EBUSY" "$engine/lock" mutex || failed=1
	[ ! -e "$engine/scenario" ] || fails_with "$EBUSY" "$engine/scenario" rwsem_mix || failed=1
	return $failed
}

ktap_set_plan $(($(echo "$knobs" | wc -l) * 2 + $(echo "$torture_knobs" | wc -l) * 2 + 12))

# each_knob PREFIX TABLE: those of $engine.
each_knob() {
	while IFS='|' read -r knob good bad; do
		get "$engine/$knob"
		default=$got
		ktap_test_result "$1$knob: good values read back" good_values "$knob" "$good"
		put "$engine/$knob" "$default"
		# shellcheck disable=SC2086 # words are wanted
		ktap_test_result "$1$knob: bad values are refused" bad_values "$knob" $bad $bad_everywhere
	done <<END
$2
END
}

engine=$torture
each_knob torture/ "$torture_knobs"
set_knobs lock=mutex nreaders_stress=1 duration_ms=86400000 && put $torture/run start
ktap_test_result "no knob of torture/ changes during a run" busy_knobs "$torture_knobs"
put $torture/stop 1
engine=$bench
each_knob "" "$knobs"
ktap_test_result "scenario: each can be chosen" choose_each scenario
put $bench/scenario rwsem_mix
# shellcheck disable=SC2086 # words are wanted
ktap_test_result "scenario: bad values are refused" bad_values scenario nosuch rwsem_mixx rwsem_mix,osq $bad_everywhere
ktap_test_result "lock: each can be chosen" choose_each lock
ktap_test_result "lock: all can be chosen" all_locks
ktap_test_result "lock: names as in locks" locks_agree
# shellcheck disable=SC2086 # words are wanted
ktap_test_result "lock: bad values are refused" bad_values lock nosuch mutexx mutex,nosuch mutex,, , $bad_everywhere
ktap_test_result "run: bad values are refused" bad_commands run
ktap_test_result "stop: bad values are refused" bad_commands stop
ktap_test_result "roles: split exactly or not at all" uneven_roles
put $bench/roles mixed
ktap_test_result "what is only read cannot be written" read_only

# shellcheck disable=SC2086 # words are wanted
set_knobs $endless lock=mutex && put $bench/run start
ktap_test_result "no knob changes during a run" busy_knobs "$knobs"
put $bench/stop 1

ktap_finished
