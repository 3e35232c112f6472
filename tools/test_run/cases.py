"""One test method and how it ended."""

from dataclasses import dataclass

PASSED, FAILED, SKIPPED, FLAKY = "passed", "failed", "skipped", "flaky"
# Known to a file that ended before it came to them. Nothing is reported so: it ends as FAILED.
NOT_RUN = "not run"

# A failure whose output has one of these counts at once: a second try that passes would prove
# nothing. Tests write the first one themselves, beside what leaked, broke through or was lost.
FINAL_MARKS = ("(never retried)", "check failed: ", "AddressSanitizer", "LeakSanitizer",
               "runtime error: ", "libFuzzer: ")


@dataclass
class Case:
    preset: str
    test: str  # ctest's name
    method: str  # "" where the test has no methods
    outcome: str
    seconds: float = 0.0
    message: str = ""
    final: bool = False  # a second try would prove nothing

    @property
    def name(self):
        name = f"{self.test} {self.method}" if self.method else self.test
        return name if self.preset == "release" else f"{name} ({self.preset})"

    @property
    def is_bad(self):
        return self.outcome in (FAILED, NOT_RUN)


def is_final(text):
    return any(mark in text for mark in FINAL_MARKS)


def count(cases):
    """Of each outcome, how many."""
    total = dict.fromkeys((PASSED, FAILED, SKIPPED, FLAKY), 0)
    for case in cases:
        total[FAILED if case.outcome == NOT_RUN else case.outcome] += 1
    return total


def closing_line(cases):
    total = count(cases)
    line = f"{total[PASSED]} passed, {total[FAILED]} failed, {total[SKIPPED]} skipped"
    return line + (f", {total[FLAKY]} flaky" if total[FLAKY] else "")
