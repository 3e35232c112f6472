"""The one retry policy. A method that failed runs once more: alone, after all others, verbose.
If it passes then it is flaky: green, counted apart, listed, kept in the history."""

import os
from collections import defaultdict

from test_run.cases import FAILED, FLAKY, PASSED
from test_run.steps import say

MOST_FAILURES = 3  # more than that is no accident


def why_not_at_all(cases):
    failed = [case for case in cases if case.outcome == FAILED]
    if len(failed) > MOST_FAILURES:
        return f"{len(failed)} failures: nothing is tried again beyond {MOST_FAILURES}"
    return None


def retry(cases, builds, logs):
    """Changes how those ended that were tried again."""
    bad = [case for case in cases if case.is_bad]
    why_not = why_not_at_all(bad)
    if why_not:
        say(why_not)
        return
    by_test = defaultdict(list)
    for case in bad:
        by_test[case.preset, case.test].append(case)
    for (preset, name), of_test in by_test.items():
        final = [case for case in of_test if case.final]
        for case in final:
            say(f"{case.name}: its failure counts at once")
        if not final:
            retry_test(builds[preset].find_test(name), of_test, logs)


def retry_test(test, cases, logs):
    """What did not run, because its file or class was ended before, belongs to the second try."""
    failed = [case for case in cases if case.outcome == FAILED]
    say(f"once more, alone: {', '.join(case.name for case in failed)}")
    log = os.path.join(logs, f"{test.build.preset}-{test.name}.retry.log")
    if not test.run([case.method for case in cases if case.method], log):
        say(f"it failed again: {log}")
        return
    reported = {case.method: case for case in test.read()}
    for case in cases:
        again = reported.get(case.method)
        if again is None and "." in case.method:
            continue  # it was asked for and did not run
        if case.outcome == FAILED:
            case.outcome = FLAKY if again is None or again.outcome == PASSED else FAILED
        else:
            case.outcome, case.message = again.outcome, again.message
