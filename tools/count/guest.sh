#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in the guest: a bench run for each line of /count-cells; symbols and results go to stdout.
# Usage: guest.sh [LOCK,...]: these locks and their C peers; all by default.
#
# A cell is a line SHAPE KNOB=VALUE...; lock takes patterns of the shell, separated by commas. Besides symbols
# and results this prints
#   lock NAME            is to be counted
#   cell SHAPE KNOBS     begins
#   cells done           after the last
set -euf

chosen=${1-}

klocks=/sys/kernel/debug/klocks
bench=$klocks/bench

insmod /klocks.ko
grep -F '[klocks]' /proc/kallsyms
echo 1 >$bench/pin
# Counts of a lock that does not exclude would mean nothing. The check is the harness', not the lock's.
echo 1 >$bench/check

if [ -n "$chosen" ] && ! echo "$chosen" >$bench/lock; then
	echo "one of the locks $chosen is unknown; there are: $(tr -d '[]' <$bench/lock)"
	exit 1
fi
# Those chosen and their C peers, without those of family busted.
locks=$(awk -v list="$chosen" '
	BEGIN { count = split(list, names, ","); for (i = 1; i <= count; i++) asked[names[i]] = 1 }
	{ family[$1] = $2; order[NR] = $1 }
	END {
		for (name in asked) asked[family[name] "_c"] = 1
		for (i = 1; i <= NR; i++)
			if (family[order[i]] != "busted" && (!count || order[i] in asked)) print order[i]
	}' $klocks/locks)
for lock in $locks; do
	echo "lock $lock"
done

# matching PATTERN,...: which of the locks to be counted those are, separated by commas.
matching() {
	found=
	for lock in $locks; do
		for pattern in $(echo "$1" | tr , ' '); do
			# shellcheck disable=SC2254 # a pattern is wanted
			case $lock in
			$pattern)
				found=${found:+$found,}$lock
				break
				;;
			esac
		done
	done
	echo "$found"
}

# set_knobs KNOB=VALUE...: fails when no lock of the cell is to be counted.
set_knobs() {
	for knob in "$@"; do
		value=${knob#*=}
		case $knob in
		lock=*)
			value=$(matching "$value")
			[ -n "$value" ] || return 1
			;;
		esac
		echo "$value" >"$bench/${knob%%=*}"
	done
}

while read -r shape knobs; do
	# shellcheck disable=SC2086 # words
	set_knobs $knobs || continue
	echo "cell $shape $knobs"
	echo 1 >$bench/run
	cat $bench/results
done </count-cells
echo "cells done"
