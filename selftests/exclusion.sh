#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# A mixed load on every lock for KLOCKS_SECONDS each (0.5 by default), or longer where less than a block is over by
# then: readers and writers never overlap and no word is torn. For long runs: KLOCKS_SECONDS=60 ./exclusion.sh

cd "$(dirname "$0")" || exit
. ./lib.sh

seconds=${KLOCKS_SECONDS:-0.5}
threads=$(nproc)
[ "$threads" -gt 1 ] || threads=2
# More that spin, where a host has fewer CPUs, take minutes for a block.
[ "$threads" -le 16 ] || threads=16

# Short blocks: each finished one has its line.
holds() {
	case $1 in
	# A write waits for a grace period or two.
	percpu_rwsem.*) ops=4 ;;
	*) ops=300 ;;
	esac
	run_for "$seconds" scenario=rwsem_mix "lock=$1" "threads=$threads" ratio=2:1 load=5 think=10 skew=0 pin=0 check=1 \
		"ops=$ops" || return 1
	awk -v lock="$1" '
		index($1, "/lock=" lock "/") { n++; bad += $9 + $11 }
		END { print "# " n " blocks, " bad + 0 " overlaps"; exit !n || bad }' $bench/results
}

ktap_set_plan "$(real_locks | wc -l)"
for lock in $(real_locks); do
	ktap_test_result "$lock: $threads threads exclude each other for $seconds s" holds "$lock"
done
ktap_finished
