#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/bench: bad options are refused before anything starts, and a broken lock cannot pass as fast.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC1091 # it comes with the kernel
. "$(kernel_source)/tools/testing/selftests/kselftest/ktap_helpers.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# ends_with CODE WORDS ARGUMENT...: exit code, and words in the messages; leaves them in $work.
ends_with() {
	local want=$1 words=$2 code=0
	shift 2
	"$root/scripts/bench" "$@" >"$work/stdout" 2>"$work/stderr" || code=$?
	[ $code = "$want" ] && grep -qF -e "$words" "$work/stderr" && return
	ktap_print_msg "exit code $code, not $want with '$words': bench $*"
	sed 's/^/# /' "$work/stdout" "$work/stderr"
	return 1
}

# refused WORDS ARGUMENT...: a usage error in one sentence.
refused() {
	ends_with 2 "$@" && [ "$(wc -l <"$work/stderr")" = 1 ] && [ ! -s "$work/stdout" ]
}

bad_options() {
	refused "unknown option '--fast'" --fast &&
		refused "unknown option 'rwsem_c'" rwsem_c &&
		refused "--seed needs a value" --seed &&
		refused "no scenario 'none'" --scenario none &&
		refused "no scenario '../bench'" --scenario ../bench &&
		refused "--ops needs a number from 1" --ops 0 &&
		refused "--blocks needs a number from 1 to 10000, not '1e3'" --blocks 1e3 &&
		refused "--threads needs a number from 1 to 1024, not '0'" --threads 2,0 &&
		refused "--threads needs numbers" --threads 2, &&
		refused "--cpus needs a number from 1 to 64, not '99999999999999999999'" --cpus 99999999999999999999 &&
		refused "--cpus needs a number from 1 to 16" --native --cpus 17 &&
		refused "--seed needs a number" --seed -1 &&
		refused "--lock needs names" --lock "a b" &&
		refused "not with --native" --native --icount
}

# declares FILE: the scenario has a form, says what it is about and has cells, whichever the locks and the
# extent are; each is a line of knobs.
# shellcheck disable=SC2034,SC2317 # scenarios use these
declares() {
	local about='' locks=a,b threads=1 extent think=0 cells='' name
	name=$(basename "$1" .sh)
	if ! grep -q '^def report(' "${1%.sh}.py"; then
		ktap_print_msg "$name has no report() in ${1%.sh}.py"
		return 1
	fi
	of_family() { echo "$locks"; }
	matching() { echo "$locks"; }
	matching_not() { echo "$locks"; }
	# shellcheck disable=SC1090 # any of them
	. "$1"
	for extent in quick full; do
		cells=$(cells) || return
		if [ -z "$about" ] || [ -z "$cells" ] || grep -qvE '^[a-z]+=[^ ]+( [a-z]+=[^ ]+)*$' <<<"$cells"; then
			ktap_print_msg "$name: about '$about', cells ($extent): $cells"
			return 1
		fi
	done
}

scenarios() {
	local file
	for file in "$root"/scripts/scenarios/*.sh; do
		(declares "$file") || return
	done
}

# The guest's clock with these times of /proc/uptime, in its shell. A number with a leading zero is octal there.
clock() {
	local code up
	code=$(sed -n '/^now() {/,/^}/p' "$root/scripts/guest-bench")
	for up in 0.08 0.98 1.00 12.09 133.45; do
		busybox sh -c "${code/read -r up _ <\/proc\/uptime/up=$up}; now"
	done >"$work/clock"
	[ "$(paste -s -d ' ' "$work/clock")" = "8 98 100 1209 13345" ]
}

unknown_lock() { ends_with 2 "there is no lock 'none'" --threads 1 --lock mutex,none; }

broken_lock() {
	ends_with 1 "lock_busted is broken" --threads 2 --lock lock_busted && [ ! -s "$work/stdout" ]
}

ktap_print_header
ktap_set_plan 5
ktap_test_result "bad options are refused" bad_options
ktap_test_result "every scenario has cells and a form" scenarios
ktap_test_result "the guest's clock reads all times" clock
ktap_test_result "an unknown lock is refused" unknown_lock
ktap_test_result "a broken lock is named, and nothing else shown" broken_lock
ktap_finished
