#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The module comes and goes: 50 times without a leak; not during a run nor with a file of it open. And the
# runs of every lock leave nothing behind. KLOCKS_ONLY names one of the groups of tests: cycles, blocks, held.

cd "$(dirname "$0")" || exit
. ./lib.sh

without_unit_tests
if ! unload || ! load; then
	skip "the module is in use"
fi

# One lock of each family: the cycles are many. On a busy host no worker of a torture this short may get to
# its lock, which is a failure by torture's rules and none here.
small_run() {
	set_knobs scenario=rwsem_mix lock=rwsem_c,rwsem,rwsem_xadd,percpu_rwsem,lockref threads=2 ratio=1:1 load=1 think=0 skew=0 \
		pin=0 check=1 ops=20 blocks=1 && run_ends && put $torture/lock rwsem,percpu_rwsem &&
		put $torture/duration_ms 50 && put $torture/run 1 && grep -qE "done|failed" $torture/state
}

# 20 blocks, each with a new lock, of every lock.
many_blocks() {
	set_knobs scenario=rwsem_mix "lock=$(real_locks | paste -s -d , -)" threads=2 ratio=1:1 load=1 think=0 skew=0 pin=0 \
		check=1 ops=2 blocks=20 && run_ends
}

cycles() {
	for _ in $(seq "$1"); do
		small_run || {
			ktap_print_msg "a run failed: $error"
			return 1
		}
		unload && load || return 1
	done
}

# Memory is freed late, on a busy host much later: stacks of tasks and slabs after grace periods, a module's text by
# a worker. It has some ten seconds until it has to be flat. What leaks stays.

# Kilobytes of a /proc/meminfo field.
meminfo() { awk -v key="$1:" '$1 == key { print $2 }' /proc/meminfo; }
at_most() { [ "$(meminfo "$1")" -le "$2" ]; }
# flat FIELD BEFORE SLACK
flat() {
	eventually 100 at_most "$1" $(($2 + $3))
	grown=$?
	ktap_print_msg "$2 kB before, $(meminfo "$1") after"
	return $grown
}

# slab FILE: objects in use, cache by cache: the least of several looks. The records of CONFIG_DEBUG_OBJECTS are
# kept for later use and grow with all that was ever freed.
slab() {
	for _ in 1 2 3; do
		sleep 0.3
		echo 3 >/proc/sys/vm/drop_caches
		for cache in /sys/kernel/slab/*/shrink; do
			echo 1 >"$cache"
		done
		awk 'NR > 2 && $1 != "debug_objects_cache" { print $1, $2 }' /proc/slabinfo
	done | awk '!($1 in least) || $2 < least[$1] { least[$1] = $2 } END { for (cache in least) print cache, least[cache] }' \
		>"$work/$1"
}

# Caches come and go by dozens of objects with no leak; a leak of one object a cycle, or a block, grows
# by 20 twice.
slab_flat() {
	slab slab3
	awk '
		FNR == 1 { file++ }
		{ count[file, $1] = $2 }
		END {
			for (key in count) {
				split(key, part, SUBSEP)
				cache = part[2]
				if (part[1] == 1 && count[2, cache] >= count[1, cache] + 20 && count[3, cache] >= count[2, cache] + 20) {
					print "# " cache ": " count[1, cache], count[2, cache], count[3, cache]
					bad = 1
				}
			}
			exit bad
		}' "$work/slab1" "$work/slab2" "$work/slab3"
}

not_unloaded() {
	! rmmod klocks 2>/dev/null && loaded
}

refused_during_a_run() {
	# shellcheck disable=SC2086 # words are wanted
	set_knobs $endless lock=rwsem_c && put $bench/run start && not_unloaded && is_state running
}

unloads_after_stop() { put $bench/stop 1 && unload && ! loaded && load; }

# refused_while_open FILE: also a read through the held file still works.
refused_while_open() {
	exec 3<"$klocks/$1"
	not_unloaded && cat <&3 >/dev/null
	refused=$?
	exec 3<&-
	[ $refused = 0 ] && unload && load
}

# leaves_nothing WHAT STEP...: does the step twice and tests what has grown.
leaves_nothing() {
	what=$1
	shift
	percpu=$(meminfo Percpu)
	vmalloc=$(meminfo VmallocUsed)
	[ -z "$slabs" ] || slab slab1
	ktap_test_result "$what: once" "$@"
	[ -z "$slabs" ] || slab slab2
	ktap_test_result "$what: again" "$@"
	ktap_test_result "$what: memory per CPU stays flat" flat Percpu "$percpu" 32
	ktap_test_result "$what: vmalloc memory stays flat" flat VmallocUsed "$vmalloc" 64
	if [ -n "$slabs" ]; then
		ktap_test_result "$what: slab caches stay flat" eventually 10 slab_flat
	else
		ktap_test_skip "$what: slab caches stay flat (needs CONFIG_SLUB_DEBUG)"
	fi
}

held="locks bench/scenario bench/threads bench/state bench/progress bench/results"
slabs=
[ ! -r /proc/slabinfo ] || [ ! -d /sys/kernel/slab ] || slabs=1
groups=${KLOCKS_ONLY:-cycles blocks held}
plan=0
for group in $groups; do
	case $group in
	cycles | blocks) plan=$((plan + 6)) ;;
	held) plan=$((plan + 2 + $(echo "$held" | wc -w))) ;;
	*) skip "there is no group '$group'" ;;
	esac
done
ktap_set_plan $plan

for group in $groups; do
	case $group in
	cycles)
		ktap_test_result "10 times unloaded and loaded" cycles 10
		leaves_nothing "20 times unloaded and loaded" cycles 20
		;;
	blocks)
		ktap_test_result "runs of every lock" many_blocks
		leaves_nothing "20 blocks of every lock" many_blocks
		;;
	held)
		ktap_test_result "not unloaded during a run" refused_during_a_run
		ktap_test_result "unloaded after stop" unloads_after_stop
		for file in $held; do
			ktap_test_result "not unloaded while $file is open" refused_while_open "$file"
		done
		;;
	esac
done

ktap_finished
