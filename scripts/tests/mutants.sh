#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every mutant still applies to the sources, names a test that exists, and is in docs/cases.md or tells its case;
# and what scripts/mutants and scripts/torture do with bad options.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC1091 # it comes with the kernel
. "$(kernel_source)/tools/testing/selftests/kselftest/ktap_helpers.sh"

mutants=("$root"/selftests/mutants/*.patch)

applies() {
	local work code=0
	work=$(mktemp -d)
	# only what the patch is about
	sed -n 's|^--- a/\([^[:space:]]*\).*|\1|p' "$1" | (cd "$root" && xargs cp --parents -t "$work") || code=1
	[ $code != 0 ] || patch -s -d "$work" -p1 --fuzz=1 <"$1" >"$work/log" || code=1
	[ $code = 0 ] || sed 's/^/# /' "$work/log"
	rm -rf "$work"
	return $code
}

# The programs and suites in the line Test.
test_exists() {
	local test program programs
	test=$(sed -n '/^--- /q; s/^Test: *//p' "$1")
	mapfile -t programs < <(grep -o '\./[a-z_]*\.sh' <<<"$test")
	for program in ${programs[@]+"${programs[@]}"}; do
		[ -x "$root/selftests/$program" ] || return
	done
	case $test in
	"kunit "*) grep -rqF "kunit_tests(${test#kunit })" "$root" --include='*.rs' ;;
	'') return 1 ;;
	esac
}

all_listed() { [ "$("$root/scripts/mutants" --list | wc -l)" = ${#mutants[@]} ]; }

# refused COMMAND...: with code 2 and one line.
refused() {
	local code=0 said
	said=$("$@" 2>&1 >/dev/null) || code=$?
	[ $code = 2 ] && [ "$(wc -l <<<"$said")" = 1 ] && return
	ktap_print_msg "$*: code $code, says $said"
	return 1
}

bad_options() {
	refused "$root/scripts/mutants" --nosuch && refused "$root/scripts/mutants" --list nosuchmutant &&
		refused "$root/scripts/mutants" --seconds x && refused "$root/scripts/torture" --minutes x &&
		refused "$root/scripts/torture" --shape nosuch && refused "$root/scripts/torture" --cpus 2,x &&
		refused "$root/scripts/torture" --lock
}

ktap_print_header
ktap_set_plan $((${#mutants[@]} * 2 + 2))
for mutant in "${mutants[@]}"; do
	ktap_test_result "$(basename "$mutant" .patch) applies" applies "$mutant"
	ktap_test_result "$(basename "$mutant" .patch) has its test" test_exists "$mutant"
done
ktap_test_result "scripts/mutants lists all" all_listed
ktap_test_result "bad options are refused" bad_options
ktap_finished
