"""Grafana's own schema on every dashboard: read into its types and written again, nothing may be lost.

Usage: python schema.py FILE…; status 1 where a key is of no known type or a value of the wrong one. A file that
ends in `.yaml` is one of provisioning, of which Grafana's documentation names the keys.
"""

import json
import sys

import yaml
from grafana_foundation_sdk.cog import plugins
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import dashboard


def lost(before, after, path=""):
    """Where `after`, what the types keep, lacks what `before` has."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key not in after:
                # What is empty or null need not be written.
                if value not in (None, "", [], {}, False, 0):
                    yield f"{path}.{key}"
                continue
            yield from lost(value, after[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            yield f"{path}: {len(before)} became {len(after)}"
        for at, (one, other) in enumerate(zip(before, after)):
            yield from lost(one, other, f"{path}[{at}]")
    elif before != after:
        yield f"{path}: {before!r} became {after!r}"


def findings(name, text):
    """What the schema does not know of a dashboard."""
    read = dashboard.Dashboard.from_json(json.loads(text))
    written = json.loads(json.dumps(read, cls=JSONEncoder))
    for where in lost(json.loads(text), written):
        yield f"{name}{where}"
    for panel in read.panels or []:
        kind = getattr(panel, "type_val", None)
        if kind not in (None, "row") and isinstance(panel.options, dict):
            yield f"{name}: no schema of panel {kind}"


# Keys that must be there, and those that may.
PROVISIONED = {
    "datasources": (
        {"name", "uid", "type", "access", "url", "jsonData"},
        {"user", "secureJsonData"},
    ),
    "providers": (
        {"name", "type", "options"},
        {"folder", "disableDeletion", "allowUiUpdates", "updateIntervalSeconds"},
    ),
}


def provisioning(name, text):
    """What is wrong with a file of provisioning."""
    read = yaml.safe_load(text)
    (kind,) = set(read) - {"apiVersion"}
    must, may = PROVISIONED[kind]
    for entry in read[kind]:
        keys = set(entry)
        if read.get("apiVersion") != 1 or must - keys or keys - must - may:
            yield f"{name}: {kind} with {sorted(keys)}"


def main(files):
    """Checks all files, and that the check finds what is wrong."""
    plugins.register_default_plugins()
    found, panels = [], 0
    for name in files:
        with open(name, encoding="utf-8") as file:
            text = file.read()
        if name.endswith(".yaml"):
            found += provisioning(name, text)
            continue
        found += findings(name, text)
        whole = json.loads(text)
        panels += len(whole["panels"])
        for spoil in (
            lambda d: d.update(schemaVersoin=39),
            lambda d: d["panels"][1]["gridPos"].update(width=3),
            lambda d: d["panels"][1]["fieldConfig"]["defaults"].update(units="s"),
            lambda d: next(p for p in d["panels"] if p["type"] == "timeseries")["options"].update(legends={"a": 1}),
        ):
            spoilt = json.loads(text)
            spoil(spoilt)
            if not list(findings(name, json.dumps(spoilt))):
                found.append(f"{name}: the check takes a spoilt dashboard")
    for where in found:
        print(where, file=sys.stderr)
    print(f"{panels} panels in {len(files)} files")
    return 1 if found or not files else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
