# SPDX-License-Identifier: GPL-2.0
"""Reads for each second by readers that sleep inside, beside writers that may spin meanwhile."""

from scenarios.mmap_storm import WITHOUT, legend, show


def report(header, cells, out):
    out("Readers sleep for 100 us in each read; writers write for as long as these are at work. Reads for each second,")
    out(f"and in ratio to {WITHOUT} over pairs of blocks, with the bootstrap 95 % interval: above 1 is faster. Writers that")
    out("spin take CPUs that readers need.")
    legend(out)
    show(header, cells, out, "reads")
