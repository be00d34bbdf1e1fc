#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# include/klocks.h: the kernel's kernel-doc has nothing to say about it, and the module does not build
# when it differs from the Rust types and functions. The README's examples are built as it says.
# shellcheck disable=SC2016,SC2317 # awk looks for backquotes; the tests are called by name
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

# block LANGUAGE N: the Nth block of code in that language in the README's section on use.
block() {
	awk -v language="$1" -v n="$2" '
		/^## / { inside = index($0, "from your module") != 0 }
		!inside { next }
		$0 == "```" { show = 0 }
		show { print }
		$0 == "```" language { show = ++count == n }' "$root/README.md"
}

shown() {
	block c 1 | diff - "$root/selftests/client/kl_example.c" >"$work/diff" &&
		block rust 1 | diff - "$root/selftests/client_rs/kl_example_rs.rs" >"$work/diff" && return
	sed 's/^/# /' "$work/diff"
	return 1
}

# By the README's words, in a directory of its own, but against the module that is there already.
as_told() {
	mkdir "$work/mine"
	block c 1 >"$work/mine/kl_example.c"
	block rust 1 >"$work/mine/kl_example_rs.rs"
	block make 1 >"$work/mine/Kbuild"
	block sh 1 | sed 's:out/mine:out/build/lean:' >"$work/commands"
	(cd "$work/mine" && KLOCKS=$root KDIR=$kernel sh -eu "$work/commands") >"$work/log" 2>&1 &&
		[ -f "$work/mine/kl_example.ko" ] && [ -f "$work/mine/kl_example_rs.ko" ] && return
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
build_module lean >"$work/module"
mkdir "$work/good"
(cd "$root" && find . \( -name out -o -name target -o -name .git \) -prune -o -type f -print0 |
	tar --null -T - -c) | tar -C "$work/good" -x
cp -a "$work/good" "$work/bad"

ktap_print_header
ktap_set_plan 5
ktap_test_result "all of the header is documented" documented
ktap_test_result "the README shows the tested examples" shown
ktap_test_result "they are built as the README says" as_told
ktap_test_result "a structure of another size does not build" other_size
ktap_test_result "a function of another type does not build" other_type
ktap_finished
