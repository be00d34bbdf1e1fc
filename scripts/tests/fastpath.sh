#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# No call on the taken path of an uncontended lock and unlock, in the module as it was built.
#
# The compiler lays the likely way out straight: it is what runs when no conditional jump is taken.
# So each entry point is followed from its start to its return, through unconditional jumps; a call
# or a jump out of the function on that way is a failure. On `lean` none is allowed; on `full`
# might_sleep() is a static call, patched to nothing or to a preemption point at boot.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

# taken_path MODULE ALLOWED: a line per entry point: `ok NAME`, `call TARGET NAME`, or `unlocked NAME`
# and `open NAME` when what was followed cannot have been the path of a lock.
taken_path() {
	"llvm-objdump-$(rustc_llvm)" -d -r --no-show-raw-insn --demangle "$1" | awk -v allowed="$2" '
	function finish(verdict) { if (name != "") print verdict, name; name = "" }
	# 0000000000000100 <<klocks::rwsem::RwSem<..> as klocks::rwlock::RawRwLock>::down_read>:
	/^[0-9a-f]+ <.*>:$/ {
		name = ""; want = ""; leaves = ""; locked = 0
		# What the harness has of its own is for tests.
		if ($0 !~ /RawRw(Lock|Sem)>::(down|up)_(read|write)>:$/ || $0 ~ /::harness::/) next
		name = $0
		sub(/^[0-9a-f]+ </, "", name); sub(/>:$/, "", name)
		gsub(/klocks_main(\[[0-9a-f]+\])?::/, "", name); sub(/^</, "", name); gsub(/ /, "_", name)
		next
	}
	name == "" { next }
	# A relocation belongs to the instruction before it: there it leads out of the function.
	/R_X86_64_/ {
		if (leaves == "") next
		target = $NF; sub(/[-+]0x[0-9a-f]+$/, "", target)
		if (target !~ allowed) finish("call " target)
		leaves = ""; next
	}
	{
		if (leaves == "call") { finish("call here"); next }
		leaves = ""
		address = $1; sub(/:$/, "", address)
		if (want != "" && address != want) next
		want = ""
		if ($2 == "lock") locked = 1
		if ($2 ~ /^ret/) finish(locked ? "ok" : "unlocked")
		if ($2 ~ /^call/) leaves = "call"
		if ($2 == "jmp") { leaves = "jmp"; want = $3; sub(/^0x/, "", want) }
	}
	END { finish("open") }'
}

plan=0 failed=0
check() { # KERNEL ALLOWED
	local module verdict rest
	module=$(build_module "$1")
	while read -r verdict rest; do
		plan=$((plan + 1))
		if [ "$verdict" = ok ]; then
			echo "ok $plan - fastpath $1 $rest"
		else
			failed=$((failed + 1))
			echo "not ok $plan - fastpath $1 $verdict $rest"
		fi
	done < <(taken_path "$module" "$2")
}

toolchain
echo "KTAP version 1"
check lean '^$'
check full '^__SCT__(might_resched|cond_resched)$'
echo "1..$plan"
[ "$plan" -gt 0 ] || { echo "# no entry point found in the module"; exit 1; }
[ "$failed" -eq 0 ]
