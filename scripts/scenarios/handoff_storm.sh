# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="short holds of twice as many tasks as CPUs beside a long one, so that every sleeper asks for a handoff"
locks=rwsem_c,rwsem.c73,rwsem.handoff_stop,rwsem.handoff_stop_full,rwsem
kernel=full
threads=32
cpus=16
rounds=8

cells() {
	case $extent in
	quick) set -- 60 ;;
	full) set -- 1000 ;;
	esac
	echo "ratio=1:1 load=500 think=10 pin=0 ops=$1 lock=$locks"
}
