"""ctest: what tests there are, running them all, running single methods of one again."""

import json
import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree

from test_run.reports import read_googletest, read_methods, read_test

SHARDS = ("GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX")
OUTPUT_BYTES = "1048576"  # of one test, in the report


class Build:
    """One build directory with tests, and the folder that their reports go to."""

    def __init__(self, preset, directory, selection=()):
        self.preset, self.directory, self.selection = preset, directory, list(selection)
        self.reports = os.path.join(directory, "reports")
        self.junit = os.path.join(directory, "junit.xml")

    def command(self, *options):
        return ["ctest", "--test-dir", self.directory, *self.selection, *options]

    def command_of_all(self, jobs):
        shutil.rmtree(self.reports, ignore_errors=True)
        os.makedirs(self.reports)
        if os.path.exists(self.junit):
            os.remove(self.junit)
        return self.command("--output-junit", self.junit, "-j", str(jobs), "--output-on-failure",
                            "--test-output-size-passed", OUTPUT_BYTES,
                            "--test-output-size-failed", OUTPUT_BYTES)

    def cases(self):
        """None: ctest did not come to its end."""
        if not os.path.exists(self.junit):
            return None
        elements = ElementTree.parse(self.junit).getroot().iter("testcase")
        return [case for element in elements
                for case in read_test(self.preset, element, self.reports)]

    def find_test(self, name):
        shown = subprocess.run(self.command("--show-only=json-v1"), capture_output=True, check=True)
        for test in json.loads(shown.stdout)["tests"]:
            if test["name"] == name:
                return Test(self, test)
        raise LookupError(name)


class Test:
    """One test of ctest, to be run without it."""

    def __init__(self, build, description):
        self.build, self.name = build, description["name"]
        self.command = description["command"]
        properties = {one["name"]: one["value"] for one in description.get("properties", ())}
        self.timeout = float(properties.get("TIMEOUT", 1500))
        self.directory = properties.get("WORKING_DIRECTORY", build.directory)
        self.environment = dict(one.split("=", 1) for one in properties.get("ENVIRONMENT", ()))

    def run(self, methods, log):
        """These methods alone, or all of it; None where it has none. True: it ended well."""
        environment = {**os.environ, **self.environment, "ATOLL_TEST_VERBOSE": "1"}
        for name in SHARDS:  # a method is asked for by its name
            environment.pop(name, None)
        with open(log, "wb") as file:
            try:
                done = subprocess.run([*self.command, *self.filters(methods)], env=environment,
                                      cwd=self.directory, stdin=subprocess.DEVNULL, stdout=file,
                                      stderr=subprocess.STDOUT, timeout=self.timeout, check=False)
            except subprocess.TimeoutExpired:
                return False
        return done.returncode == 0

    def filters(self, methods):
        if not methods:
            return []
        if not os.path.basename(self.command[0]).startswith("python"):
            return ["--gtest_filter=" + ":".join(methods)]
        classes = {method for method in methods if "." not in method}
        return sorted(classes) + sorted(method for method in methods
                                        if method.split(".")[0] not in classes)

    def read(self):
        """What the last run of it has reported; of a test without methods nothing."""
        for ending, read in ((".xml", read_googletest), (".jsonl", read_methods)):
            path = os.path.join(self.build.reports, self.name + ending)
            if os.path.exists(path):
                return read(self.build.preset, self.name, path)
        return []
