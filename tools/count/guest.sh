#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Runs in the guest: a bench run for each line of /count-cells; symbols and results go to stdout.
# Usage: guest.sh [LOCK,...]: these locks and their C peers; all by default.
set -eu

chosen=${1-}

bench=/sys/kernel/debug/klocks/bench

insmod /klocks.ko
grep -F '[klocks]' /proc/kallsyms
echo rwsem_mix >$bench/scenario
echo 1 >$bench/pin
# Counts of a lock that does not exclude would mean nothing. The check is the harness', not the lock's.
echo 1 >$bench/check

if [ -n "$chosen" ] && ! echo "$chosen" >$bench/lock; then
	echo "one of the locks $chosen is unknown; there are: $(tr -d '[]' <$bench/lock)"
	exit 1
fi
locks=
for lock in $(tr -d '[]' <$bench/lock); do
	case ,$chosen,$lock in
	*,lock_busted) continue ;;
	,,* | *,"$lock",* | *_c | *,mutex) locks=${locks:+$locks,}$lock ;;
	esac
done
echo "$locks" >$bench/lock

while read -r shape threads ratio load think ops blocks skew; do
	echo "$threads" >$bench/threads
	echo "$ratio" >$bench/ratio
	echo "$load" >$bench/load
	echo "$think" >$bench/think
	echo "$ops" >$bench/ops
	echo "$blocks" >$bench/blocks
	echo "$skew" >$bench/skew
	echo "cell $shape $threads $skew"
	echo 1 >$bench/run
	cat $bench/results
done </count-cells
echo "cells done"
