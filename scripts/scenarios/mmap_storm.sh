# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="page-fault-like readers of which some sleep, mprotect-like writers: the profile of xfs_repair"
locks=rwsem_c,rwsem_xadd.nospin,rwsem_xadd.base,rwsem_xadd.p2,rwsem_xadd.p3,rwsem_xadd.p4,rwsem_xadd.p6,rwsem_xadd.p7,rwsem_xadd.posted,rwsem_xadd
kernel=full
threads=16
rounds=8

cells() {
	case $extent in
	quick) set -- 200 ;;
	full) set -- 2000 ;;
	esac
	echo "ratio=16:1 load=20 think=200 ops=$1 lock=$locks"
	echo "ratio=4:1 load=20 think=200 ops=$1 lock=$locks"
}
