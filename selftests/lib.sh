# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034 # what is set here the programs use
#
# Sourced by the test programs: KTAP from the kernel's own helpers, the module, its debugfs files.
# Runs in busybox sh, dash and bash.

klocks=/sys/kernel/debug/klocks
bench=$klocks/bench
torture=$klocks/torture
# the directory whose knobs and state the functions below are about
engine=$bench

for dir in "${KSFT:-}" .. "/lib/modules/$(uname -r)/source/tools/testing/selftests" \
	"/lib/modules/$(uname -r)/build/tools/testing/selftests"; do
	[ -f "$dir/kselftest/ktap_helpers.sh" ] && break
	dir=
done
if [ -z "$dir" ]; then
	echo "1..0 # SKIP no kselftest/ktap_helpers.sh: set KSFT to the kernel's tools/testing/selftests"
	exit 4
fi
# shellcheck disable=SC1091 # it comes with the kernel
. "$dir/kselftest/ktap_helpers.sh"

ktap_print_header

skip() {
	ktap_skip_all "$@"
	exit "$KSFT_SKIP"
}

loaded() { [ -d /sys/module/klocks ]; }

# KLOCKS_KO names the module's file where it is not installed.
load() {
	if [ -f "${KLOCKS_KO:-}" ]; then
		insmod "$KLOCKS_KO"
	else
		modprobe klocks
	fi
}

# eventually LOOKS COMMAND...: succeeds in one of so many looks, a tenth of a second apart.
eventually() {
	looks=$1
	shift
	until "$@"; do
		looks=$((looks - 1))
		[ "$looks" -gt 0 ] || return 1
		sleep 0.1
	done
}

# A run gives up its module reference when its last thread is joined, a moment after its state says so.
unload() {
	eventually 50 rmmod klocks 2>/dev/null || rmmod klocks
}

[ "$(id -u)" = 0 ] || skip "needs root"
mountpoint -q /sys/kernel/debug 2>/dev/null || grep -q ' /sys/kernel/debug debugfs ' /proc/mounts ||
	mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null || skip "needs debugfs"
loaded || load || skip "klocks is not installed, and KLOCKS_KO names no module of this kernel"

work=$(mktemp -d)
# shellcheck disable=SC2317 # the trap calls it
finish() {
	for dir in $bench $torture; do
		! grep -qs running "$dir/state" || echo 1 >"$dir/stop"
	done
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The unit tests, which run at each load of the module, need not until the program ends.
without_unit_tests() {
	suites=/sys/module/kunit/parameters/filter_glob
	[ -w $suites ] || return 0
	printf none >$suites
	# without a newline, which the kernel would take for a part of the pattern
	trap 'printf "*" >$suites; finish' EXIT
}

# put FILE BYTES: writes BYTES (escapes as of printf %b) by one write(). On failure sets error to the
# kernel's reason: dd names it in every userland, the shells do not.
put() {
	printf '%b' "$2" >"$work/bytes"
	error=
	dd if="$work/bytes" of="$1" bs=64k 2>"$work/error" && return
	read -r error <"$work/error"
	error=${error##*: }
	return 1
}

# get FILE: sets got to its line. No process is started for it: tests do this often.
get() { read -r got <"$1"; }

# set_knobs KNOB=VALUE...: of $engine
set_knobs() {
	for knob in "$@"; do
		put "$engine/${knob%%=*}" "${knob#*=}" && continue
		ktap_print_msg "cannot set $knob: $error"
		return 1
	done
}

# is_state STATE...: the current state is one of these.
is_state() {
	get $engine/state
	for want in "$@"; do
		[ "$got" != "$want" ] || return 0
	done
	ktap_print_msg "state is $got, not $*"
	return 1
}

# wait_state SECONDS STATE...: until the state is one of these.
wait_state() {
	patience=$1
	shift
	eventually $((patience * 10)) is_state "$@" >/dev/null || is_state "$@"
}

why_failed() {
	grep '^failure' $bench/results | sed 's/^/# /'
	return 1
}

# run_ends: the run of bench/ that has just been set up ends well.
run_ends() {
	put $bench/run 1 && is_state "done" && return
	why_failed
}

# blocks_over N: so many blocks of the run are.
blocks_over() {
	get $bench/progress
	[ "${got% *}" -ge "$1" ] || ! is_state running >/dev/null
}

# run_for SECONDS KNOB=VALUE...: as many blocks as fit in, or longer if it takes longer until the one to warm up and
# one more are over. A virtual machine whose CPUs wait for each other hands spinlocks over slowly: no test waits
# for a number of operations.
run_for() {
	duration=$1
	shift
	set_knobs "$@" blocks=10000 && put $bench/run start && sleep "$duration" || return 1
	eventually 600 blocks_over 2
	put $bench/stop 1
	is_state stopped "done" && return
	why_failed
}

# fails_with REASON FILE BYTES: the write is refused for that reason.
fails_with() {
	if put "$2" "$3"; then
		ktap_print_msg "$2 accepts what it must not"
		return 1
	fi
	[ "$error" = "$1" ] && return
	ktap_print_msg "$2: $error, not $1"
	return 1
}

EINVAL="Invalid argument"
EBUSY="Device or resource busy"

# Every lock that must hold, one a line.
real_locks() { awk '$2 != "busted" { print $1 }' $klocks/locks; }

# A run that no test waits for to end by itself.
endless="scenario=rwsem_mix threads=2 ratio=1:1 load=1 think=0 skew=0 pin=0 check=1 ops=1000000 blocks=10000"
