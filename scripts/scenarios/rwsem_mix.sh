# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="reads and writes in a given ratio, the microbenchmark of the 2014 series"
locks=mutex,rwsem_c,rwsem_xadd.nospin,rwsem_xadd.base
threads=2,10

# A mutex has no readers: its times stand once per number of threads, beside the writers' alone.
cells() {
	shared=$(of_family no mutex)
	for ratio in 0:1 1:1 10:1; do
		chosen=$shared
		[ $ratio != 0:1 ] || chosen=$locks
		[ -n "$chosen" ] || continue
		for load in 1 5 10; do
			echo "ratio=$ratio load=$load think=$((think * load)) lock=$chosen"
		done
	done
}
