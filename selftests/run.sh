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
# verdict STATUS NAME [SECONDS]
verdict() {
	number=$((number + 1))
	case $1 in
	0) echo "ok $number $2${3:+ # $3 s}" ;;
	4) echo "ok $number $2 # SKIP" ;;
	143) echo "not ok $number $2 # TIMEOUT $timeout seconds" ;;
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

work=$(mktemp -d)
for program; do
	began=$(date +%s)
	{
		# The whole group must go: a shell minds the signal only when its child, stuck in a write, is gone.
		(sleep "$timeout" && kill -TERM "-$(cat "$work/group")") >/dev/null 2>&1 &
		# shellcheck disable=SC2016 # expanded by the new shell
		setsid sh -c 'echo $$ >"$0"; exec "$1"' "$work/group" "./$program" 2>&1
		echo $? >"$work/status"
		kill $! 2>/dev/null
	} | sed 's/^/  /'
	verdict "$(cat "$work/status")" "$program" $(($(date +%s) - began))
done
rm -rf "$work"
exit $failed
