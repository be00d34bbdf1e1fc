# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034,SC2154 # variables of scripts/bench and scripts/guest-bench

about="three levels frozen one after the other, with gates of their own and with a common one"

# The locks are given: C's, and ours with three gates and with one.
cells() {
	case $extent in
	quick) echo "ops=50 blocks=3" ;;
	full) echo "ops=200 blocks=3" ;;
	esac
}
