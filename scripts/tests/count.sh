#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The counter's own tests, and the rows without contention against their limits.
exec "$(dirname "$0")/../../tools/count/test.sh"
