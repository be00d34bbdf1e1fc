#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/boot with real guests: what happens in a guest reaches the host as the right exit code, its
# output arrives unchanged, and nothing is left behind. Works at two guests at a time.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC1091 # it comes with the kernel
. "$(kernel_source)/tools/testing/selftests/kselftest/ktap_helpers.sh"

kernel_dir full >/dev/null || exit
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# start NAME ARGUMENT...: boots in the background.
start() {
	local name=$1
	shift
	(
		code=0
		"$root/scripts/boot" --cpus 1 --module none --out "$work/$name" "$@" >"$work/$name.stdout" 2>"$work/$name.stderr" ||
			code=$?
		echo $code >"$work/$name.code"
	) &
}

# ended NAME CODE
ended() {
	[ "$(<"$work/$1.code")" = "$2" ] && return
	ktap_print_msg "exit code $(<"$work/$1.code"), not $2"
	sed 's/^/# /' "$work/$1.stderr"
	return 1
}

# refused WORDS ARGUMENT...: a usage error in one sentence that holds WORDS.
refused() {
	local words=$1 code=0
	shift
	"$root/scripts/boot" "$@" >"$work/refused" 2>&1 || code=$?
	[ $code = 2 ] && [ "$(wc -l <"$work/refused")" = 1 ] && grep -qF -e "$words" "$work/refused" && return
	ktap_print_msg "exit code $code: $(<"$work/refused")"
	return 1
}

console_has() { grep -q "$2" "$work/$1/console.log"; }

output_unchanged() {
	printf 'first\n\n  third \\n\t%%s\nno newline' | cmp - "$work/pass.stdout" &&
		cmp "$work/pass.stdout" "$work/pass/output.log"
}

same_twice() { cmp "$work/icount1.stdout" "$work/icount2.stdout" && [ -s "$work/icount1.stdout" ]; }

# The brackets keep grep from finding itself.
guest_runs() { grep -qsa "^qemu.*$work/[k]illed/" /proc/[0-9]*/cmdline; }

# Whatever ends boot ends its QEMU, and its temporary files go.
killed_cleanly() {
	local boot code=0 patience=100
	mkdir "$work/tmp"
	TMPDIR=$work/tmp "$root/scripts/boot" --cpus 1 --module none --out "$work/killed" 'echo up; sleep 1000' \
		>"$work/killed.stdout" 2>&1 &
	boot=$!
	until grep -qs '^up' "$work/killed/output.log"; do
		patience=$((patience - 1))
		[ $patience -gt 0 ] || return 1
		sleep 0.2
	done
	guest_runs || return 1
	kill -TERM $boot
	wait $boot || code=$?
	[ $code = 143 ] && ! guest_runs && [ -z "$(ls "$work/tmp")" ]
}

uml=
for finished in "$(cache_dir)"/kernels/uml-*/.finished; do
	[ ! -e "$finished" ] || uml=1
done

ktap_print_header
ktap_set_plan 18

start pass "printf 'first\n\n  third \\\\n\t%%s\nno newline'"
start fail 'exit 7'
wait
ktap_test_result "pass: exit code 0" ended pass 0
ktap_test_result "pass: the output arrives unchanged" output_unchanged
ktap_test_result "a failed command: exit code 1" ended fail 1

start skip 'exit 4'
start panic 'echo before; echo c >/proc/sysrq-trigger'
wait
ktap_test_result "a skipped command: exit code 4" ended skip 4
ktap_test_result "a panic: exit code 3" ended panic 3
ktap_test_result "a panic: its message is in the console log" console_has panic "Kernel panic - not syncing: sysrq"
ktap_test_result "a panic: earlier output arrives" grep -qx before "$work/panic.stdout"

start splat 'echo "<4>WARNING: kernel/test.c:1 at test" >/dev/kmsg'
start reset 'echo b >/proc/sysrq-trigger'
wait
ktap_test_result "a fault on the console of a command that succeeds: exit code 3" ended splat 3
ktap_test_result "a reset without a result: exit code 3" ended reset 3

start hang --timeout 4 'echo before; while :; do :; done'
start forge --timeout 4 'echo klocks-exit:0; cat /proc/cmdline; while :; do :; done'
wait
ktap_test_result "a hang: exit code 5" ended hang 5
ktap_test_result "an exit mark from the command: still a hang" ended forge 5

start icount1 --icount 'cat /proc/interrupts /proc/uptime'
start icount2 --icount 'cat /proc/interrupts /proc/uptime'
wait
ktap_test_result "icount: two boots are the same" same_twice

ktap_test_result "a killed boot takes its guest along" killed_cleanly
KDIR=$work/nowhere ktap_test_result "no kernel: exit code 2" refused bzImage true
ktap_test_result "an unknown option: exit code 2" refused --nosuch --nosuch true
ktap_test_result "no command: exit code 2" refused COMMAND --cpus 2

if [ -n "$uml" ]; then
	start native --native "printf 'first\n\n  third \\\\n\t%%s\nno newline'; exit 4"
	start native-panic --native --append rdinit=/bin/false true
	wait
	ktap_test_result "native: output and exit code arrive" ended native 4
	ktap_test_result "native: a dead kernel: exit code 3" ended native-panic 3
else
	ktap_test_skip "native: output and exit code arrive (kernel uml is not built)"
	ktap_test_skip "native: a dead kernel: exit code 3 (kernel uml is not built)"
fi

ktap_finished
