"""Sums one column of a table."""

import csv
import sys

with open(sys.argv[1]) as file:
    rows = csv.reader(file)
    column = next(rows).index("energy")
    print(sum(float(row[column]) for row in rows))
