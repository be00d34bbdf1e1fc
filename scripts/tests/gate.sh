#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/gate against the consoles and messages in selftests/consoles/, and against the kernel's own
# list of bad words.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
selftests=$(kernel_source)/tools/testing/selftests
# shellcheck disable=SC1091 # it comes with the kernel
. "$selftests/kselftest/ktap_helpers.sh"

gate=$root/scripts/gate
consoles=$root/selftests/consoles
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# verdict CODE FILE
verdict() {
	local code=0
	"$gate" "$2" >"$work/hits" || code=$?
	[ $code = "$1" ] && return
	ktap_print_msg "${2##*/}: exit code $code, not $1"
	sed 's/^/# /' "$work/hits"
	return 1
}

# each_refused FILE: every line of it, among harmless ones, is refused and shown.
each_refused() {
	local line failed=0
	while IFS= read -r line; do
		printf '%s\n' '[    1.0] harmless' "$line" '[    2.0] harmless' >"$work/console"
		verdict 3 "$work/console" && [ "$(<"$work/hits")" = "2:$line" ] && continue
		ktap_print_msg "passed or not shown: $line"
		failed=1
	done <"$1"
	return $failed
}

# No pattern without a message that it, and not only its neighbours, finds.
each_pattern_used() {
	local pattern failed=0 n=0
	while IFS= read -r pattern; do
		n=$((n + 1))
		grep -qE -e "$pattern" "$work/messages" && continue
		ktap_print_msg "no message for: $pattern"
		failed=1
	done < <(sed -n "/^bad='/,/'\$/p" "$gate" | sed "s/^bad='//; s/'\$//")
	[ $n -gt 50 ] && return $failed
}

# The alternatives of console-badness.sh, taken literally, are such lines themselves.
covers_badness() {
	sed -n "s/^grep -E '\(.*\)' |\$/\1/p" "$selftests/rcutorture/bin/console-badness.sh" | tr '|' '\n' |
		sed 's/[\]//g' >"$work/badness"
	[ "$(wc -l <"$work/badness")" -ge 10 ] && each_refused "$work/badness"
}

no_console() {
	local code=0
	"$gate" "$work/nowhere" 2>/dev/null || code=$?
	[ $code = 2 ]
}

grep -v '^#' "$consoles/messages" >"$work/messages"
printf '\033[1mKernel panic - not syncing: \r\n\0\0' >"$work/raw"
: >"$work/empty"

ktap_print_header
ktap_set_plan $(($(find "$consoles" -name '*.log' | wc -l) + 6))
for console in "$consoles"/*.log; do
	case ${console##*/} in
	clean*) ktap_test_result "${console##*/} passes" verdict 0 "$console" ;;
	*) ktap_test_result "${console##*/} is refused" verdict 3 "$console" ;;
	esac
done
ktap_test_result "each message is refused" each_refused "$work/messages"
ktap_test_result "each pattern has a message" each_pattern_used
ktap_test_result "covers the kernel's console-badness.sh" covers_badness
ktap_test_result "control characters hide nothing" verdict 3 "$work/raw"
ktap_test_result "an empty console passes" verdict 0 "$work/empty"
ktap_test_result "no console: exit code 2" no_console
ktap_finished
