"""Runs the tests of a file and reports each method, one JSON line when it begins and one when it
ends, to the file that ATOLL_TEST_REPORT names: a file of tests that hangs has said in which method.

    {"planned": ["RunTest.test_a", ...]}      before the first
    {"begin": "RunTest.test_a"}
    {"end": "RunTest.test_a", "outcome": "passed" | "failed" | "skipped", "seconds", "message"}
    {"done": true}                            after the last

A class whose setUpClass or tearDownClass failed, or that is skipped as a whole, ends by its name.
"""
import json
import os
import re
import sys
import time
import unittest

CLASS_FIXTURE = re.compile(r"(?:setUpClass|tearDownClass) \((?:[\w.]*\.)?(\w+)\)")
MODULE_FIXTURE = re.compile(r"(setUpModule|tearDownModule) ")


class Report:
    def __init__(self, path):
        self.file = None
        if path:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self.file = open(path, "w", encoding="utf-8", buffering=1)

    def write(self, **event):
        if self.file:
            self.file.write(json.dumps(event) + "\n")


def name_of(test):
    """Class and method; of a failed class the class, of a failed end of all classes that."""
    found = CLASS_FIXTURE.match(test.id()) or MODULE_FIXTURE.match(test.id())
    return found[1] if found else ".".join(test.id().split(".")[-2:])


def all_names(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from all_names(test)
        else:
            yield name_of(test)


class Result(unittest.TextTestResult):
    """The worst that happened to a method is how it ended."""
    report = Report(os.environ.get("ATOLL_TEST_REPORT"))
    passes = 0

    def startTest(self, test):
        super().startTest(test)
        self.begun, self.ended = time.monotonic(), ("passed", "")
        self.report.write(begin=name_of(test))

    def stopTest(self, test):
        outcome, message = self.ended
        self.report.write(end=name_of(test), outcome=outcome, message=message,
                          seconds=round(time.monotonic() - self.begun, 3))
        super().stopTest(test)

    def note(self, test, outcome, message):
        if not isinstance(test, unittest.TestCase):  # a fixture of a class
            self.report.write(end=name_of(test), outcome=outcome, message=message)
        elif self.ended[0] != "failed":
            self.ended = (outcome, message)

    def addSuccess(self, test):
        super().addSuccess(test)
        Result.passes += 1

    def addError(self, test, error):
        super().addError(test, error)
        self.note(test, "failed", self.errors[-1][1])

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self.note(test, "failed", self.failures[-1][1])

    def addSubTest(self, test, subtest, error):
        super().addSubTest(test, subtest, error)
        if error is not None:
            self.note(test, "failed", (self.failures + self.errors)[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.note(test, "failed", "it was expected to fail")


class Runner(unittest.TextTestRunner):
    resultclass = Result

    def run(self, test):
        Result.report.write(planned=list(all_names(test)))
        result = super().run(test)
        Result.report.write(done=True)
        return result


def main():
    """Ends with 77 when all was skipped: a skip is not a pass."""
    result = unittest.main(testRunner=Runner, verbosity=2, exit=False).result
    if result.wasSuccessful() and result.skipped and not Result.passes:
        sys.exit(77)
    sys.exit(not result.wasSuccessful())
