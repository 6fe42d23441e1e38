"""Adds up what ten thousand small files hold."""

import os
import sys

folder = sys.argv[1]
total = 0
for name in os.listdir(folder):
    with open(os.path.join(folder, name)) as file:
        total += len(file.read().split())

print(total)
