#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The ordering claims of the locks by the kernel's own memory model: what selftests/litmus/ says never
# happens never does, and happens at once when any of the marked barriers or orderings is weakened.
# Needs herd7 (herdtools7 7.58 or newer) on PATH; skipped without.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC1091 # it comes with the kernel
. "$(kernel_source)/tools/testing/selftests/kselftest/ktap_helpers.sh"
model=$(kernel_source)/tools/memory-model

skip() {
	ktap_print_header
	ktap_skip_all "$1"
	exit 4
}
type -P herd7 >/dev/null || skip "needs herd7, of herdtools7 7.58 or newer"
[ -e "$model/linux-kernel.cfg" ] || skip "the kernel source has no tools/memory-model"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# result FILE: Never, Sometimes or Always; another word when herd7 refuses the test.
result() {
	(cd "$model" && herd7 -conf linux-kernel.cfg "$1") 2>&1 | tee "$work/log" |
		awk '$1 == "Observation" { verdict = $3 } END { print verdict == "" ? "refused" : verdict }'
}

# is RESULT FILE
is() {
	local found
	found=$(result "$2")
	[ "$found" = "$1" ] && return
	ktap_print_msg "${2##*/}: $found, not $1"
	sed 's/^/# /' "$work/log"
	return 1
}

# A marked line without its ordering: a barrier or a grace period goes, an operation becomes relaxed.
weaken() { # LINE FILE
	sed -E "$1{
		s/(smp_mb|synchronize_rcu)\(\);//
		s/smp_store_release\((\w+), /WRITE_ONCE(*\1, /
		s/smp_load_acquire\((\w+)\)/READ_ONCE(*\1)/
		s/\b(cmpxchg|xchg)(_acquire)?\(/\1_relaxed(/
	}" "$2"
}

tests=("$root"/selftests/litmus/*.litmus)
marked='; /\* .* \*/$'
ktap_print_header
ktap_set_plan $((${#tests[@]} + $(cat "${tests[@]}" | grep -cE "$marked")))
for litmus in "${tests[@]}"; do
	name=${litmus##*/} name=${name%.litmus}
	ktap_test_result "$name never happens" is Never "$litmus"
	while IFS=: read -r number line; do
		mark=${line##*/\* }
		weaken "$number" "$litmus" >"$work/$name.litmus"
		ktap_test_result "$name happens without: ${mark% \*/}" is Sometimes "$work/$name.litmus"
	done < <(grep -nE "$marked" "$litmus")
done
ktap_finished
