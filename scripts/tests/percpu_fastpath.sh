#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The per-CPU rwsem's reader pair in the module as it was built for `lean`: on the taken path no locked
# operation, no barrier, no call, and no more instructions than C's inline functions have there.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

# taken_path MODULE NAME: "INSTRUCTIONS LOCKED CALLS" up to the return that is reached when no conditional
# jump is taken.
taken_path() {
	"llvm-objdump-$(rustc_llvm)" -d --no-show-raw-insn --demangle "$1" | awk -v name="$2" '
	/^[0-9a-f]+ <.*>:$/ { inside = index($0, name) != 0; next }
	!inside || NF < 2 { next }
	{
		address = $1; sub(/:$/, "", address)
		if (want != "" && address != want) next
		want = ""
		if ($2 == "lock") { locked++; next }
		n++
		if ($2 ~ /^(xchg|.fence)/) locked++
		if ($2 ~ /^call/) calls++
		if ($2 == "jmp") { want = $3; sub(/^0x/, "", want) }
		if ($2 ~ /^ret/) { print n, locked + 0, calls + 0; exit }
	}'
}

toolchain
module=$(build_module lean)
echo "KTAP version 1"
echo "1..2"
number=0 failed=0
for entry in down_read up_read; do
	number=$((number + 1))
	read -r ours locked calls < <(taken_path "$module" "PercpuRwSem<klocks_main::percpu_rwsem::Percpu, klocks_main::percpu_rwsem::Own<klocks_main::rcu_sync::RcuSync<klocks_main::rcu_sync::Sched>>>>::$entry>") || ours=
	read -r c _ < <(taken_path "$module" "percpu_peer::PercpuRwSemaphore>::$entry>") || c=
	echo "# $entry: ${ours:-no} instructions, ${locked:-?} locked, ${calls:-?} calls; C: ${c:-no} instructions"
	if [ -n "$ours" ] && [ -n "$c" ] && [ "$locked" = 0 ] && [ "$calls" = 0 ] && [ "$ours" -le "$c" ]; then
		echo "ok $number - percpu_rwsem $entry"
	else
		failed=1
		echo "not ok $number - percpu_rwsem $entry"
	fi
done
exit $failed
