"""Simulates with as many workers as it has cores."""

import multiprocessing
import os
import sys


def simulate(steps):
    state = 1
    for _ in range(steps):
        state = state * 48271 % 2147483647
    return state


with multiprocessing.Pool(len(os.sched_getaffinity(0))) as pool:
    print(pool.map(simulate, [int(sys.argv[1])] * 4, chunksize=1))
