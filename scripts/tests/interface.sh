#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# include/klocks.h: the kernel's kernel-doc has nothing to say about it, and the module does not build
# when it differs from the Rust types and functions.
# shellcheck disable=SC2317 # the tests are called by name
set -euo pipefail
. "$(dirname "$0")/../lib.sh"
source=$(kernel_source)
# shellcheck disable=SC1091 # it comes with the kernel
. "$source/tools/testing/selftests/kselftest/ktap_helpers.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

documented() {
	local undocumented
	"$source/scripts/kernel-doc" -none -Wall -Werror "$root/include/klocks.h" >"$work/doc" 2>&1 || {
		sed 's/^/# /' "$work/doc"
		return 1
	}
	# Each function, macro and structure without leading underscores, but for the two rwsems' own names.
	grep -v '^DEFINE_GUARD' "$root/include/klocks.h" | grep -oE '^([a-z#].* |)\**kl_[a-z_]+ ?[({]' |
		sed 's/[ *({]*$//; s/.*[ *]//' | sort -u >"$work/declared"
	grep -oE '^ \* (struct )?kl_[a-z_]+(\(\))? - ' "$root/include/klocks.h" |
		grep -oE 'kl_[a-z_]+' | sort -u >"$work/documented"
	undocumented=$(grep -vxFf "$work/documented" "$work/declared" | grep -v '^kl_rwsem') || true
	[ -n "$undocumented" ] || return 0
	ktap_print_msg "without documentation:" "$undocumented"
	return 1
}

# does_not_build SED REASON N: a copy of the module whose header SED has changed, for N different reasons.
does_not_build() {
	cp -a "$work/good/include" "$work/bad/"
	sed -i -E "$1" "$work/bad/include/klocks.h"
	! cmp -s "$work/good/include/klocks.h" "$work/bad/include/klocks.h" || {
		ktap_print_msg "the change does not apply"
		return 1
	}
	if make -C "$work/bad" KDIR="$kernel" MO="$work/mo" all >"$work/log" 2>&1; then
		ktap_print_msg "it builds"
		return 1
	fi
	grep -oE "$2" "$work/log" | sort -u >"$work/why"
	sed 's/^/# /' "$work/why"
	[ "$(wc -l <"$work/why")" = "$3" ] && return
	tail -n 30 "$work/log" | sed 's/^/# /'
	return 1
}

# A member more in each structure.
other_size() {
	does_not_build 's/^struct kl_(rwsem|rwsem_xadd|lockref|rcu_sync|percpu_rwsem) \{/&\n\tu64 more;/' \
		'struct kl_[a-z_]+ in include/klocks.h differs from the Rust type' 5
}

other_type() {
	does_not_build 's/^int (__must_check kl_lockref_put_return)/long \1/' 'expected .isize., found .i32.' 1
}

kernel=$(kernel_dir lean)
mkdir "$work/good"
(cd "$root" && find . \( -name out -o -name target -o -name .git \) -prune -o -type f -print0 |
	tar --null -T - -c) | tar -C "$work/good" -x
cp -a "$work/good" "$work/bad"

ktap_print_header
ktap_set_plan 3
ktap_test_result "all of the header is documented" documented
ktap_test_result "a structure of another size does not build" other_size
ktap_test_result "a function of another type does not build" other_type
ktap_finished
