#!/usr/bin/env python3
"""The host before all tests and after them: whatever is new then, and stays, was left behind by
one of them. Each file of tests looks for traces of its own Atolls (traces.py); this finds what
bears no mark of its owner.

usage: host_look.py before|after FILE
"""
import json
import os
import sys
import time

import traces
import turns

PATIENCE = 60.0  # seconds, in which a process may end or a device be detached


def added(before, now):
    return {kind: set(entries) - set(before[kind]) for kind, entries in now.items()}


def find_left(before, look=traces.of_host, patience=PATIENCE):
    """All that was new at each of several looks: what comes and goes has not been left."""
    deadline = time.monotonic() + patience
    left = added(before, look())
    while any(left.values()) and time.monotonic() < deadline:
        time.sleep(0.1)
        now = look()
        left = {kind: entries & set(now[kind]) for kind, entries in left.items()}
    return {kind: sorted(entries) for kind, entries in left.items() if entries}


def main():
    when, path = sys.argv[1:]
    if os.geteuid() != 0:
        print("SKIPPED: a look at the whole host needs root")
        return 0  # the tests that need it say for themselves that they are skipped
    turn = turns.take_turn(alone=True)
    if when == "before":
        with open(path, "w") as file:
            json.dump(traces.of_host(), file)
        return 0
    with open(path) as file, turn:
        left = find_left(json.load(file))
    for kind, entries in left.items():
        for entry in entries:
            print(f"left behind on this host (never retried): {kind}: {entry}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
