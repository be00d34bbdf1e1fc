#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# Tests of setup, kernel and kdir on this machine: what they do when something is missing, killed or full.
# Kernel builds are of a stub source tree, so that each takes seconds. Prints KTAP.
# shellcheck disable=SC2016,SC2317 # inner shells expand their own; tests are called by name
set -eu -o pipefail
. "$(dirname "$0")/../lib.sh"
scripts=$root/scripts

tests=(set_up_again other_distribution packages_missing ordinary_user no_network full_disk kdir_unsuitable
	kernel_option_lost kernel_killed kernel_twice_at_once module_build_fails)

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod 755 "$tmp"
real_cache=$(cache_dir)
unset KSRC KDIR FORCE
skip() { echo "$*" >"$tmp/why"; exit 4; }
need_root() { unshare -m true 2>/dev/null || skip "needs root and mount namespaces"; }

# says CODE PATTERN COMMAND...: the command ends with CODE, and its last line on stderr matches PATTERN.
says() {
	local code=$1 pattern=$2 got=0
	shift 2
	"$@" >"$tmp/stdout" 2>"$tmp/stderr" || got=$?
	cat "$tmp/stderr"
	[ "$got" -eq "$code" ] || { echo "exit code $got instead of $code: $*"; return 1; }
	tail -n 1 "$tmp/stderr" | grep -qE -- "$pattern" || { echo "last line does not match '$pattern': $*"; return 1; }
}

# A cache of its own that holds bindgen and nothing else.
new_cache() {
	export XDG_CACHE_HOME=$tmp/$1
	mkdir -p "$XDG_CACHE_HOME/klocks"
	[ ! -e "$real_cache/bindgen-$bindgen_version" ] || cp -a "$real_cache/bindgen-$bindgen_version" "$XDG_CACHE_HOME/klocks/"
}

# with_file FILE PATH COMMAND...: runs COMMAND where PATH is FILE.
with_file() { unshare -m sh -c 'mount --bind "$1" "$2" && shift 2 && exec "$@"' sh "$@"; }

# A kernel source tree whose build copies the configuration and makes its image in two steps.
new_source() {
	export KSRC=$tmp/$1
	mkdir -p "$KSRC/scripts/kconfig"
	printf '#!/bin/sh\nshift\ncat "$@" >"$KCONFIG_CONFIG"\n' >"$KSRC/scripts/kconfig/merge_config.sh"
	chmod +x "$KSRC/scripts/kconfig/merge_config.sh"
	cat >"$KSRC/Makefile" <<'MAKE'
VERSION = 7
PATCHLEVEL = 3
SUBLEVEL = 99
NAME = Stub
all:
	@echo '  CC      init/main.o'; mkdir -p $(O)/arch/x86/boot; echo half >$(O)/arch/x86/boot/bzImage
	@echo started >>$(O)/../builds; sleep 1.5; touch $(O)/main.o; echo whole >$(O)/arch/x86/boot/bzImage
allnoconfig:
	@grep -v KALLSYMS$(KEEP) $(KCONFIG_ALLCONFIG) >$(O)/.config; touch $(O)/conf.o
MAKE
}

# --- the tests ---

# Silent, and a second of CPU time at most (how long that takes depends on what else the machine does).
set_up_again() {
	"$scripts/setup"
	local user system TIMEFORMAT='%U %S'
	{ time "$scripts/setup" >"$tmp/said" 2>&1; } 2>"$tmp/times"
	cat "$tmp/said"
	[ ! -s "$tmp/said" ]
	read -r user system <"$tmp/times"
	echo "$user s user and $system s system time"
	[ "${user%.*}" -lt 1 ] && [ "${system%.*}" -lt 1 ]
}

other_distribution() {
	need_root
	printf 'ID=fedora\nVERSION_ID=44\n' >"$tmp/os-release"
	says 2 'Debian 12 and 13 .* only.*rustc >= .*bindgen >= ' with_file "$tmp/os-release" /etc/os-release "$scripts/setup"
}

as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/nonexistent)

packages_missing() {
	need_root
	new_cache missing
	chown -R 65534:65534 "$XDG_CACHE_HOME"
	says 2 'packages are missing.*qemu-system-x86.*as root: .*scripts/setup --packages' \
		with_file /bin/false /usr/bin/qemu-system-x86_64 "${as_nobody[@]}" "$scripts/setup"
}

ordinary_user() {
	need_root
	new_cache user
	new_source user-source
	chown -R 65534:65534 "$XDG_CACHE_HOME"
	"${as_nobody[@]}" test -x "$scripts/setup" || skip "nobody cannot read $root"
	says 0 'kernel is built' "${as_nobody[@]}" KEEP=x "$scripts/kernel" lean
	unset XDG_CACHE_HOME
	says 2 'cannot write to /nonexistent/.*set XDG_CACHE_HOME' "${as_nobody[@]}" "$scripts/kernel" lean
}

no_network() {
	need_root
	unshare -n "$scripts/setup"
	new_cache offline
	says 2 'network' unshare -n "$scripts/setup"
}

full_disk() {
	need_root
	new_cache full
	says 2 'needs [0-9]+ MiB in .* are free' unshare -m sh -c \
		'mount -t tmpfs -o size=50M none "$XDG_CACHE_HOME" && cd "$1" && ./kernel lean' sh "$scripts"
	echo 'cp: write error: No space left on device' >"$tmp/log"
	says 2 'disk is full' bash -c '. "$1" && failed "$2" "the build"' bash "$scripts/lib.sh" "$tmp/log"
}

kdir_unsuitable() {
	local dir=$tmp/kdir
	says 2 'no kernel tree' "$scripts/kdir" "$tmp/none"
	says 2 'check] Error 2' make -C "$root" check KDIR="$tmp/none"
	mkdir -p "$dir/include/config" "$dir/rust"
	says 2 'not a configured kernel' "$scripts/kdir" "$dir"
	conf() { printf '%s\n' "$@" >"$dir/include/config/auto.conf"; }
	echo 7.2.1 >"$dir/include/config/kernel.release"
	conf
	says 2 'Linux 7.2.1; klocks needs 7.3' "$scripts/kdir" "$dir"
	echo 7.3.4-local >"$dir/include/config/kernel.release"
	says 2 'without CONFIG_MODULES' "$scripts/kdir" "$dir"
	conf CONFIG_MODULES=y
	says 2 'without CONFIG_RUST' "$scripts/kdir" "$dir"
	conf CONFIG_MODULES=y CONFIG_RUST=y
	says 2 'no Rust metadata' "$scripts/kdir" "$dir"
	: >"$dir/rust/libkernel.rmeta"
	says 2 'no Module.symvers' "$scripts/kdir" "$dir"
	: >"$dir/Module.symvers"
	local option
	for option in PREEMPT_RT MODVERSIONS X86_KERNEL_IBT CFI MODULE_SIG_FORCE; do
		conf CONFIG_MODULES=y CONFIG_RUST=y "CONFIG_$option=y"
		says 2 "with $option" "$scripts/kdir" "$dir"
	done
	conf CONFIG_MODULES=y CONFIG_RUST=y 'CONFIG_RUSTC_VERSION_TEXT=rustc 1.80.0 (old)' CONFIG_CC_IS_CLANG=y \
		"CONFIG_CC_VERSION_TEXT=$("clang-$(rustc_llvm)" --version | head -n 1)"
	says 2 "was built with 'rustc 1.80.0 \(old\)' and the compiler here is 'rustc" "$scripts/kdir" "$dir"
	says 0 'going on because of FORCE' env FORCE=1 "$scripts/kdir" "$dir"
	grep -q 'RUSTC=' "$tmp/stdout"
}

kernel_option_lost() {
	new_cache lost
	new_source lost-source
	says 2 'does not accept .* asks for lean: CONFIG_KALLSYMS=y' "$scripts/kernel" lean
}

kernel_killed() {
	new_cache killed
	new_source killed-source
	export KEEP=x
	setsid "$scripts/kernel" lean >"$tmp/first" &
	local i builder=$!
	for ((i = 0; i < 2000; i++)); do
		[ ! -e "$XDG_CACHE_HOME/klocks/kernels/builds" ] || break
		sleep 0.05
	done
	kill -KILL -- "-$builder"
	wait "$builder" || true
	[ ! -s "$tmp/first" ]
	says 0 'kernel is built' "$scripts/kernel" lean
	grep -q resuming "$tmp/stderr"
	grep -qx whole "$(<"$tmp/stdout")/arch/x86/boot/bzImage"
	"$scripts/kernel" lean
	[ "$(wc -l <"$XDG_CACHE_HOME/klocks/kernels/builds")" -eq 2 ]
	touch -d '+1 minute' "$KSRC/Makefile"
	"$scripts/kernel" lean
	[ "$(wc -l <"$XDG_CACHE_HOME/klocks/kernels/builds")" -eq 3 ]
}

kernel_twice_at_once() {
	new_cache twice
	new_source twice-source
	export KEEP=x
	"$scripts/kernel" lean >"$tmp/first" &
	"$scripts/kernel" lean >"$tmp/second"
	wait $!
	cmp "$tmp/first" "$tmp/second"
	[ "$(wc -l <"$XDG_CACHE_HOME/klocks/kernels/builds")" -eq 1 ]
}

module_build_fails() {
	export KDIR=$tmp/module-kdir
	mkdir -p "$KDIR/arch/x86/boot"
	: >"$KDIR/Makefile"
	: >"$KDIR/arch/x86/boot/bzImage"
	says 2 'not a configured kernel' "$scripts/kdir" "$KDIR"
	says 2 'build of klocks.ko for lean failed' bash -c '. "$1" && build_module lean' bash "$scripts/lib.sh"
}

printf 'KTAP version 1\n1..%d\n' "${#tests[@]}"
status=0
for i in "${!tests[@]}"; do
	code=0
	# A shell of its own: set -e holds inside, and what a test exports ends with it.
	(set -e; "${tests[i]}") >"$tmp/output" 2>&1 & wait $! || code=$?
	case $code in
	0) printf 'ok %d %s\n' $((i + 1)) "${tests[i]}" ;;
	4) printf 'ok %d %s # SKIP %s\n' $((i + 1)) "${tests[i]}" "$(<"$tmp/why")" ;;
	*)
		status=1
		sed 's/^/# /' "$tmp/output"
		printf 'not ok %d %s\n' $((i + 1)) "${tests[i]}"
		;;
	esac
done
exit "$status"
