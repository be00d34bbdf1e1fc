# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # some variables are for the scripts that source this
# Sourced by the host-side scripts: messages, the cache, the toolchain, kernels, module builds.

# Debian's tools first, so that a rustup or pyenv earlier on PATH does no harm.
PATH=/usr/bin:/usr/sbin:/bin:/sbin:$PATH
export PATH LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# The kernel series that the module is written for, and what its Rust build asks for.
kernel_series=7.3
rustc_min=1.85.0
bindgen_min=0.71.1
bindgen_version=0.72.1
qemu_min=10.0

note() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { note "$@"; exit 2; }

# at_least HAVE WANT: compares versions.
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

cache_dir() {
	local dir=${XDG_CACHE_HOME:-${HOME:?is not set: set it or XDG_CACHE_HOME}/.cache}/klocks
	case $dir in
	*[[:space:]:]*) die "kernels cannot be built under '$dir': set XDG_CACHE_HOME to a path without blanks and colons" ;;
	/*) ;;
	*) die "'$dir' is not an absolute path: set XDG_CACHE_HOME to one" ;;
	esac
	mkdir -p "$dir" 2>/dev/null || die "cannot write to $dir: set XDG_CACHE_HOME to a directory of yours"
	printf '%s\n' "$dir"
}

# need_space MIB WHAT: a full disk is said before the work, not in the middle of it.
need_space() {
	local dir free
	dir=$(cache_dir)
	free=$(df -Pm "$dir" | awk 'END { print $4 }')
	[ "$free" -ge "$1" ] ||
		die "$2 needs $1 MiB in $dir and $free are free: free some or set XDG_CACHE_HOME to another disk"
}

# failed LOG WHAT: the reason for a failure in one sentence, after the end of its log.
failed() {
	tail -n 15 "$1" >&2 || true
	if grep -q -e 'No space left on device' -e 'enough free space' "$1"; then
		die "$2 failed because the disk is full: free some space or set XDG_CACHE_HOME to another disk"
	fi
	if grep -qiE "(could not|couldn't) (resolve|connect)|failure resolving|network is unreachable" "$1"; then
		die "$2 failed because the network cannot be reached: it is needed for what the cache lacks"
	fi
	die "$2 failed; the whole log is $1"
}

# progress WHAT TOTAL UNIT START LOG PATTERN: copies stdin to LOG and counts the lines that match PATTERN; shows
# the count, in place on a terminal, else as a line every half minute. The time left is told from the rate
# after the first tenth, since compilers begin with their largest files.
progress() {
	local what=$1 total=$2 unit=$3 n=$4 log=$5 pattern=$6
	local line left now=$SECONDS last=$SECONDS rate_from='' rate_start every=30 end='\n'
	local tenth=$((n + (total - n) / 10))
	[ ! -t 2 ] || every=1 end='\033[K\r'
	while IFS= read -r line; do
		printf '%s\n' "$line" >>"$log"
		[[ $line =~ $pattern ]] || continue
		n=$((n + 1)) now=$SECONDS left=
		if [ -z "$rate_from" ] && [ "$n" -gt "$tenth" ]; then
			rate_from=$n rate_start=$now
		fi
		[ $((now - last)) -ge "$every" ] || continue
		last=$now
		[ "$n" -lt "$total" ] || total=$((n + 1))
		if [ "${rate_from:-$n}" -lt "$n" ]; then
			left=$(((now - rate_start) * (total - n) / (n - rate_from)))
			left=$(printf ', about %d:%02d left' $((left / 60)) $((left % 60)))
		fi
		printf "%s %d of ~%d %s%s$end" "$what" "$n" "$total" "$unit" "$left" >&2
	done
	[ ! -t 2 ] || printf '\033[K' >&2
}

# take_lock NAME: one process at a time works on NAME; the lock ends with the process.
take_lock() {
	mkdir -p "$(cache_dir)/locks"
	exec {lock_fd}>"$(cache_dir)/locks/$1"
	flock -n "$lock_fd" && return
	note "waiting for another process that works on $1"
	flock "$lock_fd"
}

rust_library() { printf '%s\n' "$(rustc --print sysroot)/lib/rustlib/src/rust/library"; }
rustc_llvm() { rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p'; }

# Prints the path of a bindgen that is new enough: Debian's, else our own.
find_bindgen() {
	local bindgen
	for bindgen in /usr/bin/bindgen "$(cache_dir)/bindgen-$bindgen_version/bin/bindgen"; do
		if [ -x "$bindgen" ] && at_least "$("$bindgen" --version | awk '{ print $2 }')" "$bindgen_min"; then
			printf '%s\n' "$bindgen"
			return
		fi
	done
	return 1
}

# Sets make_args, for every make in a kernel tree, and toolchain_id; scripts/setup has run before.
# rustc and clang share one LLVM, or helpers could not be inlined into Rust code.
toolchain() {
	local llvm bindgen
	llvm=$(rustc_llvm)
	bindgen=$(find_bindgen) || die "bindgen is missing: run scripts/setup"
	export LIBCLANG_PATH=/usr/lib/llvm-$llvm/lib
	make_args=(
		"LLVM=-$llvm"
		RUSTC=/usr/bin/rustc HOSTRUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc
		RUSTFMT=/usr/bin/rustfmt CLIPPY_DRIVER=/usr/bin/clippy-driver
		"BINDGEN=$bindgen" "RUST_LIB_SRC=$(rust_library)"
	)
	toolchain_id="$(rustc --version), $("clang-$llvm" --version | head -n 1), $("$bindgen" --version)"
}

# Prints the kernel source tree: KSRC, or the one that scripts/setup has unpacked.
kernel_source() { realpath -m "${KSRC:-$(cache_dir)/linux-source-$kernel_series}"; }

# kernel_version SRC: the version of a source tree, without running make.
kernel_version() {
	sed -n 's/^\(VERSION\|PATCHLEVEL\|SUBLEVEL\) = //p; /^NAME/q' "$1/Makefile" | paste -sd .
}

# kernel_dir NAME: prints the directory of the built kernel, and builds it first if need be.
kernel_dir() { "$root/scripts/kernel" "$1"; }

# build_module NAME [DEBUG [TARGET]]: prints the path of klocks.ko, built against kernel NAME; with stall points
# and checks when DEBUG is not empty, and always for the kernels that look for faults. TARGET is make's: `clients`
# for the modules that use it too.
build_module() {
	local kernel out log debug=${2-}
	case $1 in
	debug | kcsan) debug=1 ;;
	esac
	kernel=$(kernel_dir "$1")
	take_lock "module-$1"
	out=$root/out/build/$1${2:+-debug}
	log=$out.log
	mkdir -p "$out"
	make -C "$root" KDIR="$kernel" MO="$out" ${debug:+DEBUG=1} "${3:-all}" >"$log" 2>&1 || failed "$log" "the build of klocks.ko for $1"
	# what modpost warns of may not load elsewhere, and it has no -Werror
	! grep '^WARNING: modpost' "$log" >&2 || die "modpost warns of klocks.ko for $1; the whole log is $log"
	printf '%s\n' "$out/klocks.ko"
}
