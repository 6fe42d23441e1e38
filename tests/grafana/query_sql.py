"""The SQL edition on DataFusion, the engine of InfluxDB 3, over the points of real runs.

Usage: python query_sql.py FILE, a JSON object of `points` by measurement (each: `time_ns`, `tags`, `fields`)
and `queries` (each: `name`, `query`, `may_be_empty`, `sum`, which the values must add up to). Status 1 where
one fails.
"""

import json
import math
import sys

import datafusion
import pyarrow


def table(points):
    """A table as InfluxDB 3 keeps one: tags as dictionaries, the time in nanoseconds."""
    tags = sorted({key for point in points for key in point["tags"]})
    fields = sorted({key for point in points for key in point["fields"]})
    times = pyarrow.array([point["time_ns"] for point in points], pyarrow.timestamp("ns"))
    columns = {"time": times}
    for key in tags:
        values = [point["tags"].get(key) for point in points]
        columns[key] = pyarrow.array(values, pyarrow.string()).dictionary_encode()
    for key in fields:
        columns[key] = pyarrow.array([point["fields"].get(key) for point in points])
    return pyarrow.table(columns)


def answer(context, asked):
    """What is wrong with the query's answer, or None."""
    try:
        found = context.sql(asked["query"]).to_arrow_table()
    except Exception as error:  # noqa: BLE001: DataFusion's are of many types
        return str(error)
    numbers = [
        value
        for name, kind in zip(found.column_names, found.schema.types)
        if pyarrow.types.is_integer(kind) or pyarrow.types.is_floating(kind)
        for value in found.column(name).to_pylist()
        if value is not None
    ]
    if not numbers and not asked["may_be_empty"]:
        return "no values"
    wanted = asked["sum"]
    if wanted is not None and not math.isclose(sum(numbers), wanted, rel_tol=1e-6):
        return f"{sum(numbers)} instead of {wanted}"
    return None


def main(name):
    """Runs all queries."""
    with open(name, encoding="utf-8") as file:
        given = json.load(file)
    context = datafusion.SessionContext()
    for measurement, points in given["points"].items():
        context.from_arrow(table(points), name=measurement)
    failed = 0
    for asked in given["queries"]:
        wrong = answer(context, asked)
        if wrong:
            failed += 1
            print(f"{asked['name']}: {wrong}\n{asked['query']}", file=sys.stderr)
    print(f"{len(given['queries'])} queries")
    return 1 if failed or not given["queries"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
