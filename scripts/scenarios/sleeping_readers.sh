# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="readers that always sleep inside, twice as many tasks as CPUs, beside writers that spin"
locks=rwsem_c,rwsem_xadd.nospin,rwsem_xadd.base,rwsem_xadd.p2,rwsem_xadd.p3,rwsem_xadd.p4,rwsem_xadd.p6,rwsem_xadd.p7,rwsem_xadd.posted,rwsem_xadd
kernel=full
threads=8
cpus=4
rounds=8

cells() {
	case $extent in
	quick) set -- 100 ;;
	full) set -- 1000 ;;
	esac
	# Six readers and two writers.
	echo "ratio=3:1 load=5 think=20 ops=$1 lock=$locks"
}
