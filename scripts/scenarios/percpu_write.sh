# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="writes back to back: time and grace periods of a down/up_write pair"
locks=percpu_rwsem,percpu_rwsem.sync,percpu_rwsem.expedited,percpu_rwsem.mb

# Who waits for grace periods in each write has 10 s for a block, however many writes that makes.
cells() {
	case $extent in
	quick) set -- 200000 8 1 ;;
	full) set -- 1000000 16 3 ;;
	esac
	waiting=$(matching '\.(sync|expedited|mb)$')
	others=$(matching_not '\.(sync|expedited|mb)$')
	[ -z "$others" ] || echo "load=0 ops=$1 blocks=$2 lock=$others"
	[ -z "$waiting" ] || echo "load=0 ops=$1 blocks=$3 lock=$waiting"
}
