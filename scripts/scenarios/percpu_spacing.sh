# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="readers beside a writer at a distance: their rate, and how many take the slow path"
scenario=percpu_read
# It counts events.
kernel=full
locks=percpu_rwsem,percpu_rwsem.sync,percpu_rwsem.expedited,percpu_rwsem.mb
threads=2
rounds=4

cells() {
	echo "ratio=1:0 lock=$locks"
	for gap in 100 20 5 1 0; do
		echo "ratio=1:1 gap=$gap lock=$locks"
	done
}
