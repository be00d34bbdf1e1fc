# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="a reader pair around the work of a one-byte write: what a barrier in it costs"
locks=percpu_rwsem,percpu_rwsem.mb
threads=1,2

cells() {
	echo "ratio=1:0 lock=$locks"
}
