"""Simulates with four workers."""

import multiprocessing
import os
import sys


def simulate(steps):
    state = 1
    for _ in range(steps):
        state = state * 48271 % 2147483647
    return state


os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
with multiprocessing.Pool(4) as pool:
    print(pool.map(simulate, [int(sys.argv[1])] * 4, chunksize=1))
