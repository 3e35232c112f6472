"""What earlier runs of all tests saw: one file of JSON lines for each, on this machine.

The first line is the run: commit, time, host, load, steal, steps. A line for each method follows:
{"name", "outcome", "seconds"}. They are kept outside of the checkout, because CI has a new one
each time.
"""

import json
import os
import subprocess
import time

from test_run.cases import FLAKY

KEPT_RUNS = 60
WINDOW_RUNS = 20  # in which a test may be flaky once


def default_directory():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.environ.get("ATOLL_TEST_HISTORY") or os.path.join(home, "atoll", "tests")


def commit_of(root):
    shown = subprocess.run(["git", "-C", root, "rev-parse", "--short=12", "HEAD"],
                           capture_output=True, text=True, check=False)
    return shown.stdout.strip() or "unknown"


class Run:
    def __init__(self, about, methods):
        self.about, self.methods = about, methods

    @classmethod
    def read(cls, path):
        with open(path, encoding="utf-8") as file:
            about, *methods = [json.loads(line) for line in file]
        return cls(about, {method["name"]: method for method in methods})


class History:
    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, exist_ok=True)

    def paths(self):
        names = sorted(name for name in os.listdir(self.directory) if name.endswith(".jsonl"))
        return [os.path.join(self.directory, name) for name in names]

    def add(self, about, cases):
        name = time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + f"-{about['commit']}.jsonl"
        path = os.path.join(self.directory, name)
        with open(path + ".partial", "w", encoding="utf-8") as file:
            file.write(json.dumps(about) + "\n")
            for case in cases:
                file.write(json.dumps({"name": case.name, "outcome": case.outcome,
                                       "seconds": round(case.seconds, 3)}) + "\n")
        os.rename(path + ".partial", path)
        for old in self.paths()[:-KEPT_RUNS]:
            os.remove(old)

    def runs(self, most=WINDOW_RUNS):
        """The newest, oldest first."""
        runs = []
        for path in self.paths()[-most:]:
            try:
                runs.append(Run.read(path))
            except (OSError, ValueError, KeyError):
                continue  # of another version of this file, or of a run that is being written
        return runs

    def times_flaky(self, name):
        return sum(run.methods.get(name, {}).get("outcome") == FLAKY for run in self.runs())
