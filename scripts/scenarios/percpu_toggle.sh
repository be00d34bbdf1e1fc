# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="writes 0 to 100 ms apart: grace periods, and what the rest of the machine loses"
locks=lock_busted,percpu_rwsem,percpu_rwsem.sync,percpu_rwsem.expedited,percpu_rwsem.mb

# The mail had 2000 writes. A quick run has as many only where that does not take long.
cells() {
	waiting=$(matching '\.(sync|expedited|mb)$')
	others=$(matching_not '\.(sync|expedited|mb)$')
	while read -r gap few many; do
		[ "$extent" = quick ] || few=2000 many=2000
		[ -z "$others" ] || echo "gap=$gap ops=$many blocks=1 lock=$others"
		[ -z "$waiting" ] || echo "gap=$gap ops=$few blocks=1 lock=$waiting"
	done <<-END
		0 200 2000
		1 200 2000
		5 100 500
		20 50 100
		100 20 20
	END
}
