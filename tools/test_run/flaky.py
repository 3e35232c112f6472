"""tests/flaky.toml: tests that may be flaky until they are mended. An entry has a test, an issue, a
reason and the day on which it expires.

    [[flaky]]
    test = "system_run RunTest.test_output_is_whole"
    issue = "31"
    reason = "the log is read before it is synced"
    expires = 2026-12-01
"""

import datetime
import tomllib

from test_run.cases import FAILED, FLAKY
from test_run.history import WINDOW_RUNS

MOST_ENTRIES = 5
LONGEST_DAYS = 14
FIELDS = {"test": str, "issue": str, "reason": str, "expires": datetime.date}


def read(path):
    try:
        with open(path, "rb") as file:
            return tomllib.load(file).get("flaky", [])
    except FileNotFoundError:
        return []


def problems(entries, today):
    if len(entries) > MOST_ENTRIES:
        yield f"{len(entries)} entries, and {MOST_ENTRIES} are the most"
    for entry in entries:
        name = entry.get("test", "an entry without a test")
        wrong = [field for field, kind in FIELDS.items() if not isinstance(entry.get(field), kind)]
        if wrong or set(entry) - set(FIELDS):
            yield f"{name}: an entry has {', '.join(FIELDS)} and nothing else"
        elif not entry["reason"] or not entry["issue"]:
            yield f"{name}: say why, and in which issue it is mended"
        elif entry["expires"] < today:
            yield f"{name}: expired on {entry['expires']}: mend the test"
        elif entry["expires"] > today + datetime.timedelta(LONGEST_DAYS):
            yield f"{name}: expires in more than {LONGEST_DAYS} days"


def judge(cases, entries, history):
    """One that is flaky again and again, and that nobody has taken up, is a failure."""
    excused = {entry["test"] for entry in entries}
    for case in cases:
        if case.outcome != FLAKY or case.name in excused:
            continue
        before = history.times_flaky(case.name)
        if before:
            case.outcome = FAILED
            case.message += (f"\nflaky, as in {before} of the {WINDOW_RUNS} runs before, and "
                             "tests/flaky.toml has no entry for it")
