# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="how late a real-time task runs that is woken on the CPU of a spinner"
locks=rwsem_c,rwsem_xadd.base,rwsem_xadd.p1,rwsem_xadd.posted,rwsem_xadd
threads=2
rounds=8

cells() {
	case $extent in
	quick) set -- 500 ;;
	full) set -- 5000 ;;
	esac
	for load in 10 100 1000; do
		echo "ratio=0:1 load=$load think=$load ops=$1 lock=$locks"
	done
}
