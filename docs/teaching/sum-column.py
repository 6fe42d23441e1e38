"""Sums one column of a table."""

import csv
import sys

with open(sys.argv[1]) as file:
    rows = list(csv.DictReader(file))

print(sum(float(row["energy"]) for row in rows))
