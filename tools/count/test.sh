#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests of the counting lane: units of the plugin and of the report, then the plugin in real guests
# with a program of known counts.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/../../scripts/lib.sh"
# shellcheck disable=SC1091 # it comes with the kernel
. "$(kernel_source)/tools/testing/selftests/kselftest/ktap_helpers.sh"

here=$root/tools/count
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export CARGO_TARGET_DIR
CARGO_TARGET_DIR=$(cache_dir)/count

quiet() { "$@" >"$work/log" 2>&1 || { sed 's/^/# /' "$work/log"; return 1; }; }

manifest=(--quiet --locked --offline --manifest-path "$here/Cargo.toml")
units() { quiet cargo test "${manifest[@]}"; }
lints() { quiet cargo clippy "${manifest[@]}" --all-targets -- -D warnings; }
report() { quiet env PYTHONDONTWRITEBYTECODE=1 python3 "$here/test_report.py"; }
build() {
	quiet cargo build --release "${manifest[@]}" &&
		quiet gcc -O2 -Wall -Werror -static -pthread -o "$work/marks" "$here/marks.c"
}

# boot NAME OPTION...: a guest that runs the program under the plugin.
boot() {
	"$root/scripts/boot" --kernel lean --module none --cpus 3 --out "$work/$1" --timeout 300 "${@:2}" \
		--add "$work/marks:/marks" --qemu-arg -plugin \
		--qemu-arg "$CARGO_TARGET_DIR/release/libklocks_count.so,map=$kernel/System.map,out=$work/$1/counts.txt" \
		-- /marks >"$work/$1.log" 2>&1
}
guests() {
	local first
	kernel=$(kernel_dir lean) || return
	boot first --icount 4 &
	first=$!
	boot second --icount 4 || { sed 's/^/# /' "$work/second.log"; return 1; }
	wait $first || { sed 's/^/# /' "$work/first.log"; return 1; }
}

# user FIELD RUN: what user code did in a run. Fields as report.py names them, from the third on.
user() {
	awk -v field="$1" -v run="$2" '
	$1 == "run" { current = $2 }
	$2 == "-" && length($1) < 16 && current == run { sum += $field }
	END { printf "%d\n", sum }' "$work/first/counts.txt"
}
counted() {
	local got
	got=$(user "$1" "$2")
	[ "$got" -ge "$3" ] && [ "$got" -le "${4-$3}" ] && return
	ktap_print_msg "field $1 of run $2 is $got, not $3${4+ to $4}"
	return 1
}
# The loop is a move and three instructions a round; interrupts come on top and are left out.
additions() {
	local run
	for run in 0 1 2; do
		counted 3 $run 600001 && counted 4 $run 200000 && counted 8 $run 200000 &&
			counted 9 $run 0 && counted 10 $run 0 || return
	done
}
# Each of 2000 stores finds the word's line at the other, except for the first, and so does the load
# before it. Who loads first at the start costs one more or less.
hand_overs() {
	local run
	for run in 3 4 5; do
		counted 4 $run 0 && counted 8 $run 2000 && counted 9 $run 1999 2000 && counted 10 $run 1999 2000 || return
	done
}
same_twice() { quiet cmp "$work/first/counts.txt" "$work/second/counts.txt"; }

# refused WORDS MAP: the plugin says WORDS about that symbol map, and QEMU does not start.
refused() {
	printf '%s' "$2" >"$work/map"
	! qemu-system-x86_64 -M none -accel tcg -display none \
		-plugin "$CARGO_TARGET_DIR/release/libklocks_count.so,map=$work/map" >"$work/refusal" 2>&1 &&
		quiet grep "$1" "$work/refusal"
}
foreign_maps() {
	refused 'no _stext' 'ffffffff81000000 T down_write
' && refused "not 'address type name'" 'ELF'
}

# skips WORDS: with the emulator that is in place now, scripts/count says WORDS, shows no figure and exits with 4.
skips() {
	local code=0
	rm -f "$work/figures"
	export -f qemu-system-x86_64
	export stand_in
	"$root/scripts/count" --uncontended >"$work/figures" 2>"$work/log" || code=$?
	[ $code = 4 ] && [ ! -s "$work/figures" ] && grep -q "$1" "$work/log" && return
	ktap_print_msg "scripts/count exited with $code; it said:"
	sed 's/^/# /' "$work/log"
	return 1
}
# shellcheck disable=SC2317 # scripts/count calls them
without_plugins() (
	qemu-system-x86_64() {
		[[ " $* " != *" -plugin "* ]] || { echo "qemu-system-x86_64: -plugin: invalid option" >&2; return 1; }
		command qemu-system-x86_64 "$@"
	}
	skips 'cannot count this kernel: .*invalid option'
)
# shellcheck disable=SC2317 # as above
other_version() (
	stand_in=$work/newer.so
	echo 'int qemu_plugin_version = 99; int qemu_plugin_install(void) { return 0; }' |
		quiet gcc -shared -fPIC -x c - -o "$stand_in" || exit
	qemu-system-x86_64() { command qemu-system-x86_64 "${@//*libklocks_count.so/$stand_in}"; }
	skips 'cannot count this kernel: .*API version 99'
)
# shellcheck disable=SC2317 # as above
without_symbols() (
	stand_in=$work/System.map
	grep -v ' __schedule$' "$kernel/System.map" >"$stand_in" || exit
	qemu-system-x86_64() { command qemu-system-x86_64 "${@//map=*System.map/map=$stand_in}"; }
	skips 'cannot count this kernel: .*no __schedule'
)

# Without -icount each vCPU has a thread, and counts would depend on the machine.
threads_refused() { ! boot threads && quiet grep 'boot with -icount' "$work/threads.log"; }

# Beyond its limits, of course.
added_counts() {
	"$root/scripts/count" --uncontended --lock rwsem,rwsem_xadd --module "$work/added/klocks.ko" >"$work/log" 2>&1 ||
		[ $? = 1 ] || { sed 's/^/# /' "$work/log"; return 1; }
}
# Counts a module with one locked operation more, of a copy of the sources.
patched() {
	local copy=$work/source
	mkdir "$copy" && tar -C "$root" --exclude=./out --exclude=./model --exclude=./.git -cf - . | tar -C "$copy" -xf - &&
		quiet patch -s -p1 -d "$copy" -i "$here/added.patch" &&
		quiet make -C "$copy" KDIR="$kernel" MO="$work/added" &&
		added_counts && cp "$root/out/count.txt" "$work/added.txt"
}
# locked LOCK SHAPE FILE: locked operations, in thousandths: one call of thousands may meet a tick.
locked() { awk -v name="BenchmarkCount/lock=$1/shape=$2/" 'index($1, name) == 1 {
	for (i = 3; i < NF; i += 2) if ($(i + 1) == "locked/op") printf "%.0f\n", $i * 1000 }' "$3"; }
# The patch is in the write side of both semaphores.
one_more() {
	local lock shape before after more
	for lock in rwsem rwsem_xadd rwsem_c; do
		for shape in write read; do
			before=$(locked $lock $shape "$root/out/count.txt")
			after=$(locked $lock $shape "$work/added.txt")
			case $lock/$shape in
			rwsem/write | rwsem_xadd/write) more=1000 ;;
			*) more=0 ;;
			esac
			[ "$before" ] && [ "$after" = $((before + more)) ] && continue
			ktap_print_msg "$lock $shape: ${before:-nothing} without and ${after:-nothing} with the patch, in thousandths"
			return 1
		done
	done
}

# A performance regression test: no wall time in it, so it holds on any machine.
within_limits() {
	local name="uncontended pairs are within their limits" code=0
	"$root/scripts/count" --uncontended >"$work/log" 2>&1 || code=$?
	[ $code = 0 ] || sed 's/^/# /' "$work/log"
	case $code in
	0) ktap_test_pass "$name" ;;
	4) ktap_test_skip "$name" ;;
	*) ktap_test_fail "$name" ;;
	esac
}

ktap_print_header
ktap_set_plan 16
check() {
	if "$1"; then ktap_test_pass "$2"; else ktap_test_fail "$2"; fi
}
check units "unit tests of the plugin"
check lints "no warnings"
check report "unit tests of the report"
check build "plugin and test program build"
check foreign_maps "a symbol map of something else is refused"
check guests "guests run under the plugin"
check additions "locked additions are counted exactly"
check hand_overs "line transfers between vCPUs are counted exactly"
check same_twice "two boots give the same counts"
check threads_refused "a guest that is not deterministic is refused"
check without_plugins "a QEMU without plugins is refused"
check other_version "a QEMU of another plugin interface is refused"
check without_symbols "a kernel without the symbols needed is refused"
check patched "a module with an added locked operation is counted"
within_limits
check one_more "the added operation shows as exactly +1.000"
ktap_finished
