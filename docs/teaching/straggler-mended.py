"""Counts the primes below a limit with eight workers."""

import multiprocessing
import sys


def primes(limits):
    first, last = limits
    return sum(all(n % d for d in range(2, int(n**0.5) + 1)) for n in range(max(first, 2), last))


if __name__ == "__main__":
    limit = int(sys.argv[1])
    parts = [(limit * part // 100, limit * (part + 1) // 100) for part in range(100)]
    with multiprocessing.Pool(8) as pool:
        print(sum(pool.map(primes, parts, chunksize=1)))
