#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Every link in the documentation leads somewhere: those that rustdoc follows, of private items too; those
# into the kernel's source; those between Markdown files. The compiler sees to it that every public item
# has documentation (missing_docs, an error in `make clippy`).
# shellcheck disable=SC2317 # the tests are called by name
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
source=$(kernel_source)
# shellcheck disable=SC1091 # it comes with the kernel
. "$source/tools/testing/selftests/kselftest/ktap_helpers.sh"
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# files NAME: those of the project, as paths from its root.
files() { (cd "$root" && find . \( -name out -o -name target -o -name .git \) -prune -o -name "$1" -print); }

rustdoc_is_content() {
	local module index
	module=$(build_module full)
	index=$("$root/scripts/doc" "${module%/*}" 2>"$log") && [ -f "$index" ] && return
	sed 's/^/# /' "$log"
	return 1
}

# all_there: of lines FILE LINK on stdin, and there is one at least.
all_there() {
	local file link missing=0 n=0
	while read -r file link; do
		n=$((n + 1))
		[ -e "$link" ] && continue
		ktap_print_msg "$file: there is no $link"
		missing=1
	done
	[ $missing = 0 ] && [ $n -gt 0 ]
}

into_the_kernel() {
	files '*.rs' | while read -r file; do
		grep -oE '\(srctree/[^)#]+' "$root/$file" | sed "s:^(srctree:$file $source:" || true
	done | all_there
}

between_documents() {
	files '*.md' | while read -r file; do
		grep -oE '\]\([^)#:]+' "$root/$file" | sed "s:^](:$file $root/$(dirname "$file")/:" || true
	done | all_there
}

ktap_print_header
ktap_set_plan 3
ktap_test_result "rustdoc follows every link" rustdoc_is_content
ktap_test_result "links into the kernel's source" into_the_kernel
ktap_test_result "links between documents" between_documents
ktap_finished
