# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="references of one object got and put, parent walks, holders of the lock, a burst of holding"
locks=lockref,lockref.rfc2,spin_ref,lockref_c
threads=1,2,4,8,16
# It counts the events of the locks.
kernel=full

cells() {
	echo "scenario=ref_storm ratio=1:0 load=0 think=$think"
	echo "scenario=ref_storm ratio=99:1 load=5 think=$((think * 5))"
	echo "scenario=ref_walk ratio=99:1 load=0 think=0"
	# The first thread holds the lock for the others.
	[ "$threads" = 1 ] || echo "scenario=ref_burst ratio=1:0 load=5 think=0"
}
