# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="what the stages of the 2014 series do in the cells of rwsem_mix: lock events, on kernel full"
scenario=rwsem_mix
kernel=full
locks=rwsem_xadd.nospin,rwsem_xadd.base,rwsem_xadd.p2,rwsem_xadd.p3,rwsem_xadd.p4,rwsem_xadd.p6,rwsem_xadd.p7,rwsem_xadd.posted
threads=2,10
rounds=4

# The load in the middle: the events are much the same with the others.
cells() {
	case $extent in
	quick) set -- 1000 ;;
	full) set -- 20000 ;;
	esac
	for ratio in 0:1 1:1 10:1; do
		echo "ratio=$ratio load=5 think=$((think * 5)) ops=$(($1 / threads)) lock=$locks"
	done
}
