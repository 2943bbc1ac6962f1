#!/usr/bin/env python3
"""Counts what the calls of downloaded Langfuse traces waited for, written apart from the reader.

    langfuse_tools.py FILE...

Prints a line of JSON for each file: calls that wait for others, how many they wait for, and
milliseconds of tools and of the rest of the gaps before them. For each call it looks through
all the others, where the reader goes through them once.
"""
import datetime
import json
import sys


def instant(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


def count(path):
    document = json.load(open(path))
    observations = document["observations"] if isinstance(document, dict) else document
    by_id = {o["id"]: o for o in observations}

    def above(o):
        """Observations above one, the nearest first."""
        o = by_id.get(o.get("parentObservationId"))
        while o:
            yield o
            o = by_id.get(o.get("parentObservationId"))

    def agents(o):
        """Agents above an observation, the nearest first; None is the trace."""
        return [a["id"] for a in above(o) if a["type"] in ("AGENT", "CHAIN")] + [None]

    outer = {a["id"] for o in observations if o["type"] == "GENERATION" for a in above(o)}
    calls = [o for o in observations if o["type"] == "GENERATION" and o["id"] not in outer and (o.get("usageDetails") or o.get("input"))]
    for o in observations:
        o["from"], o["to"] = instant(o["startTime"]), instant(o.get("endTime"))
    calls.sort(key=lambda o: o["from"])

    def latest(some):
        return max(some, key=lambda o: o["to"], default=None)

    waits, waited = {}, {}  # calls that a call waits for; and, by agent, agents below that its calls waited for
    for i, call in enumerate(calls):
        line = agents(call)
        found = {}
        for depth, agent in enumerate(line):
            before = [o for o in calls[:i] if agents(o)[0] == agent]
            own = latest([o for o in before if o["to"] <= call["from"]])
            if own:
                found[own["id"]] = own
            elif before:
                found.update({o["id"]: o for o in waits[before[0]["id"]]})
            for child in {a["id"] for a in observations if a["type"] in ("AGENT", "CHAIN") and agents(a)[0] == agent}:
                last = latest([o for o in calls[:i] if agents(o)[0] == child])
                if last and last["to"] <= call["from"] and last["id"] not in waited.get(child, ()):
                    found[last["id"]] = last
                    if depth == 0 and before:
                        waited.setdefault(child, set()).add(last["id"])
            if before:
                break
        waits[call["id"]] = list(found.values())

    tool, rest = 0, 0
    for call in calls:
        if waits[call["id"]]:
            done = max(o["to"] for o in waits[call["id"]])
            covered, reached = datetime.timedelta(), done
            tools = [o for o in observations if o["type"] == "TOOL" or (o.get("name") or "").startswith("execute_tool")]
            for o in sorted((o for o in tools if o["to"] and agents(o)[0] == agents(call)[0]), key=lambda o: o["from"]):
                begin, end = max(o["from"], reached), min(o["to"], call["from"])
                if end > begin:
                    covered, reached = covered + (end - begin), end
            tool += round(covered / datetime.timedelta(milliseconds=1))
            rest += round((call["from"] - done - covered) / datetime.timedelta(milliseconds=1))
    return [sum(1 for w in waits.values() if w), sum(len(w) for w in waits.values()), tool, rest]


for path in sys.argv[1:]:
    print(json.dumps(count(path)))
