#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Usage: run.sh [PROGRAM]...
#
# Runs the module's KUnit suites and the test programs where there is no make: those named, or those of
# kselftest-list.txt (lines COLLECTION:PROGRAM). Prints one KTAP, each suite and program nested in it.

cd "$(dirname "$0")" || exit
suites=/sys/kernel/debug/kunit

# shellcheck disable=SC2046 # words are wanted
[ $# -gt 0 ] || set -- $(sed 's/^.*://' kselftest-list.txt)
timeout=${kselftest_override_timeout:-$(sed -n 's/^timeout=//p' settings)}

# KUnit runs a module's suites when it is loaded.
[ -d /sys/module/klocks ] || insmod "${KLOCKS_KO:-/klocks.ko}" || exit
kunit=
if [ -d $suites ]; then
	kunit=$(ls $suites/klocks_*/results 2>/dev/null)
	[ -n "$kunit" ] || kunit=$suites/none/results
fi

number=0
failed=0
# verdict STATUS NAME
verdict() {
	number=$((number + 1))
	case $1 in
	0) echo "ok $number $2" ;;
	4) echo "ok $number $2 # SKIP" ;;
	124 | 143) echo "not ok $number $2 # TIMEOUT $timeout seconds" ;;
	*) echo "not ok $number $2 # exit=$1" ;;
	esac
	case $1 in
	0 | 4) ;;
	*) failed=1 ;;
	esac
}

echo "KTAP version 1"
echo "1..$(($(echo "$kunit" | wc -w) + $#))"

for results in $kunit; do
	sed 's/^/  /' "$results"
	suite=$(basename "$(dirname "$results")")
	! grep -q '^ *not ok' "$results" && grep -q '^ *ok' "$results"
	verdict $? "kunit: $suite"
done

status=$(mktemp)
for program; do
	{
		timeout "$timeout" "./$program" 2>&1
		echo $? >"$status"
	} | sed 's/^/  /'
	verdict "$(cat "$status")" "$program"
done
rm -f "$status"
exit $failed
