#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Modules that use klocks: the examples of the README in C and Rust, every function of the C interface, the
# Rust guards, and the kernel's locktorture on our locks for KLOCKS_SECONDS each (2 by default).
#
# KLOCKS_CLIENTS is the directory with the modules, built by `make clients`.

cd "$(dirname "$0")" || exit
. ./lib.sh

clients=${KLOCKS_CLIENTS:-/clients}
[ -f "$clients/kl_example.ko" ] || skip "no modules in $clients: build them with make clients and set KLOCKS_CLIENTS"
suites=/sys/kernel/debug/kunit
seconds=${KLOCKS_SECONDS:-2}

# said WORDS: a line of the log since the last mark has them.
mark() { echo "klocks-client-$1" >/dev/kmsg; since=klocks-client-$1; }
said() { dmesg | sed "1,/$since/d" | grep -q "$1"; }

# used_by NAME: the kernel knows that it needs klocks, which cannot go meanwhile.
used_by() {
	[ -d "/sys/module/klocks/holders/$1" ] && ! rmmod klocks 2>/dev/null && loaded
}

example() {
	mark "$1"
	insmod "$clients/$1.ko" || return
	used_by "$1" && said "$1: the value is 42"
	example=$?
	rmmod "$1" && return $example
}

# The suite of the module, as KUnit keeps it, in a file: it runs when the module is loaded.
run_suite() {
	insmod "$clients/$1.ko" && cat "$suites/$1/results" >"$work/$1" && rmmod "$1"
}

# cases SUITE: `VERDICT NAME` of each.
cases() { sed -nE 's/^ *(not ok|ok) [0-9]+ ([^ ]+).*/\1 \2/p' "$work/$1" | grep -v " $1$"; }

# torture MODULE TYPE: ends well, with acquisitions by readers and writers. It tells when it is unloaded.
torture() {
	mark "$1-$2"
	insmod "$clients/$1.ko" torture_type="$2" nwriters_stress=2 nreaders_stress=2 stat_interval=0 verbose=0 long_hold=4 ||
		return
	sleep "$seconds"
	rmmod "$1" || return
	dmesg | sed "1,/$since/d" | grep -E "$2-torture|Writes|Reads" | sed 's/^/# /'
	said "$2-torture:--- End of test: SUCCESS" && ! said "Total: 0 "
}

# one_at_a_time MODULE: there is one torture test at a time, the module's or that of the harness.
one_at_a_time() {
	insmod "$clients/$1.ko" torture_type=rwsem_lock stat_interval=0 verbose=0 || return
	fails_with "$EBUSY" $torture/run start
	refused=$?
	rmmod "$1" && [ $refused = 0 ] || return
	engine=$torture
	set_knobs lock=mutex duration_ms=60000 && put $torture/run start || return
	! insmod "$clients/$1.ko" torture_type=rwsem_lock 2>/dev/null && is_state running
	alone=$?
	put $torture/stop 1 && return $alone
}

examples="kl_example kl_example_rs"
suites_of="kl_client kl_client_rs"
for name in $suites_of; do
	run_suite "$name" || : >"$work/$name"
done
torture_ko=
if [ -d /sys/module/torture ] || insmod "$clients/torture.ko" 2>/dev/null || modprobe torture 2>/dev/null; then
	torture_ko=loaded
fi

plan=4
for name in $examples; do
	plan=$((plan + 1))
done
for name in $suites_of; do
	plan=$((plan + 1 + $(cases "$name" | wc -l)))
done
ktap_set_plan $plan

for name in $examples; do
	ktap_test_result "$name: loads, works, keeps klocks loaded" example "$name"
done

for name in $suites_of; do
	sed 's/^/# /' "$work/$name"
	if [ ! -f "$clients/$name.ko" ]; then
		ktap_test_skip "$name: needs CONFIG_KUNIT"
		continue
	fi
	ktap_test_result "$name: has cases" [ "$(cases "$name" | wc -l)" -gt 0 ]
	while read -r verdict; do
		case $verdict in
		"ok "*) ktap_test_pass "$name: ${verdict#ok }" ;;
		"not ok "*) ktap_test_fail "$name: ${verdict#not ok }" ;;
		esac
	done <<-CASES
		$(cases "$name")
	CASES
done

for run in "kl_locktorture rwsem_lock" "kl_locktorture_xadd rwsem_lock" "kl_locktorture percpu_rwsem_lock"; do
	if [ "$torture_ko" = loaded ] && [ -f "$clients/${run% *}.ko" ]; then
		# shellcheck disable=SC2086 # two words are wanted
		ktap_test_result "$run: ends with success" torture $run
	else
		ktap_test_skip "$run: needs CONFIG_TORTURE_TEST and the kernel's source"
	fi
done

if [ "$torture_ko" = loaded ] && [ -f "$clients/kl_locktorture.ko" ]; then
	ktap_test_result "one torture test at a time" one_at_a_time kl_locktorture
else
	ktap_test_skip "one torture test at a time: needs CONFIG_TORTURE_TEST and the kernel's source"
fi

ktap_finished
