#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/drgn-lock on the memory of a guest in which tasks sleep for a lock. Needs drgn: DRGN_PYTHON names a
# Python that has it, if python3 does not.
set -euo pipefail
. "$(dirname "$0")/../lib.sh"

python=${DRGN_PYTHON:-python3}
if ! "$python" -c 'import drgn' 2>/dev/null; then
	echo "1..0 # SKIP no drgn: apt install python3-drgn, or a Python with it in DRGN_PYTHON"
	exit 4
fi

tmp=$(mktemp -d)
guest=
# shellcheck disable=SC2317 # the trap calls it
cleanup() {
	[ -z "$guest" ] || kill "$guest" 2>/dev/null || true
	rm -rf "$tmp"
}
trap cleanup EXIT

# Prints what dump/<lock> says once tasks sleep, and goes on.
cat >"$tmp/guest" <<'GUEST'
set -eu
klocks=/sys/kernel/debug/klocks
insmod /klocks.ko
for knob in scenario=rwsem_mix lock=rwsem threads=6 ratio=1:1 load=100000 ops=1000000 pin=0; do
	echo "${knob#*=}" >$klocks/bench/${knob%%=*}
done
echo start >$klocks/bench/run
until cat $klocks/dump/rwsem >/tmp/dump && grep -q '^sleeper:' /tmp/dump; do :; done
cat /tmp/dump
echo ready
sleep 120
GUEST
"$root/scripts/boot" --kernel lean --cpus 2 --mem 256 --timeout 180 --add "$tmp/guest:/guest" \
	--qemu-arg -qmp --qemu-arg "unix:$tmp/qmp,server=on,wait=off" -- "sh /guest" >"$tmp/said" 2>"$tmp/boot.log" &
guest=$!
for ((i = 0; i < 1200; i++)); do
	! grep -qx ready "$tmp/said" || break
	kill -0 "$guest" 2>/dev/null || { cat "$tmp/boot.log" "$tmp/said" >&2; exit 1; }
	sleep 0.1
done
address=$(sed -n 's/^address: //p' "$tmp/said" | head -n 1)

# Stops the guest and writes its memory to a file.
"$python" - "$tmp/qmp" "$tmp/core" <<'PYTHON'
import json
import socket
import sys

qmp = socket.socket(socket.AF_UNIX)
qmp.connect(sys.argv[1])
answers = qmp.makefile()


def ask(command, **arguments):
    qmp.sendall(json.dumps({"execute": command, "arguments": arguments}).encode())
    while not ({"return", "error"} & (answer := json.loads(answers.readline())).keys()):
        pass
    if "error" in answer:
        sys.exit(f"{command}: {answer['error']['desc']}")


answers.readline()
ask("qmp_capabilities")
ask("stop")
ask("dump-guest-memory", paging=True, protocol=f"file:{sys.argv[2]}")
PYTHON

plan=0 failed=0
check() { # DESCRIPTION COMMAND...
	plan=$((plan + 1))
	if "${@:2}"; then
		echo "ok $plan - $1"
	else
		failed=1
		echo "not ok $plan - $1"
	fi
}

# shellcheck disable=SC2317 # checks are called by name
reads_lock() {
	"$python" "$root/scripts/drgn-lock" -c "$tmp/core" "$address" >"$tmp/lock" 2>&1 || { sed 's/^/# /' "$tmp/lock"; return 1; }
	sed 's/^/# /' "$tmp/lock"
	[ "$(sed -n '/^holder: \(none\|writer\|[1-9][0-9]* readers\)$/p' "$tmp/lock" | wc -l)" = 1 ]
}

# As many sleepers as are counted, and there are some: six tasks want what one has for long.
# shellcheck disable=SC2317
tells_sleepers() {
	local count
	count=$(sed -n 's/^sleepers: //p' "$tmp/lock")
	[ "$count" -gt 0 ] && [ "$(grep -cE '^sleeper: (reader|writer) (pid|task) ' "$tmp/lock")" = "$count" ]
}

# shellcheck disable=SC2317
refuses_what_is_no_lock() {
	local code=0
	"$python" "$root/scripts/drgn-lock" -c "$tmp/core" 10 >"$tmp/other" 2>&1 || code=$?
	[ "$code" = 4 ] && grep -q 'cannot read' "$tmp/other"
}

echo "KTAP version 1"
check "a lock in a guest's memory is read" reads_lock
check "its sleepers are told" tells_sleepers
check "an address without memory is refused" refuses_what_is_no_lock
echo "1..$plan"
exit "$failed"
