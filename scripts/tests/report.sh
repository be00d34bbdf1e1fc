#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# scripts/report.py: what it makes of good results, and that it refuses bad ones.
set -eu
. "$(dirname "$0")/../lib.sh"
PYTHONPATH=$(kernel_source)/tools/testing/selftests/kselftest:$root/scripts exec python3 -B "$root/scripts/tests/run_cases.py"
