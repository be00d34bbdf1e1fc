#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The C that goes into kernels by the kernel's checkpatch, strictest form. Needs perl.
set -uo pipefail
. "$(dirname "$0")/../lib.sh"
# shellcheck disable=SC1091 # it comes with the kernel
. "$(kernel_source)/tools/testing/selftests/kselftest/ktap_helpers.sh"

is_clean() {
	perl "$(kernel_source)/scripts/checkpatch.pl" --no-tree --strict --terse --no-summary -f "$1" 2>&1 | sed 's/^/# /'
}

ktap_print_header
if ! type -P perl >/dev/null; then
	ktap_skip_all "needs perl"
	exit 4
fi
cd "$root" || exit
mapfile -t sources < <(find kapi include selftests -name '*.[ch]' 2>/dev/null | sort)
ktap_set_plan ${#sources[@]}
for source in "${sources[@]}"; do
	ktap_test_result "$source" is_clean "$source"
done
ktap_finished
