"""Reads what tests report: GoogleTest's XML, the lines of tests/system/reporting.py, ctest's JUnit.

A test leaves its report in <build>/reports/<name of the test>.xml or .jsonl. A binary that died
has left no XML: what it printed says in which method that was.
"""

import json
import os
import re
import xml.etree.ElementTree as ElementTree

from test_run.cases import FAILED, NOT_RUN, PASSED, SKIPPED, Case, is_final

MESSAGE_CHARACTERS = 4000
SKIP_REASON = re.compile(r"^SKIPPED: (.*)$", re.MULTILINE)
GOOGLETEST_LINE = re.compile(r"^\[ (RUN|      OK|  FAILED|  SKIPPED) +\] ([\w/]+\.[\w/]+)",
                             re.MULTILINE)


def read_googletest(preset, test, path):
    cases = []
    for element in ElementTree.parse(path).getroot().iter("testcase"):
        method = f"{element.get('classname')}.{element.get('name')}"
        case = Case(preset, test, method, PASSED, float(element.get("time", 0)))
        failures = [one.text or one.get("message", "") for one in element.findall("failure")]
        skipped = element.find("skipped")
        if failures:
            case.outcome, case.message = FAILED, "\n".join(failures)[:MESSAGE_CHARACTERS]
            case.final = is_final(case.message)
        elif skipped is not None:
            case.outcome, case.message = SKIPPED, reason_of(skipped)
        elif element.get("status") == "notrun":
            case.outcome, case.message = SKIPPED, "disabled"
        cases.append(case)
    return cases


def reason_of(skipped):
    """GoogleTest puts the place, a line of its own, before the words."""
    lines = (skipped.text or skipped.get("message", "")).strip().splitlines()
    return lines[-1] if lines else "no reason was given"


def read_dead_googletest(preset, test, output):
    """Of a binary that died before it wrote its report."""
    state = {}
    for word, method in GOOGLETEST_LINE.findall(output):
        state[method] = word.strip()
    outcomes = {"OK": PASSED, "FAILED": FAILED, "RUN": FAILED, "SKIPPED": SKIPPED}
    return [Case(preset, test, method, outcomes[word],
                 message="the program died in it" if word == "RUN" else "", final=word == "RUN")
            for method, word in state.items()]


def read_methods(preset, test, path):
    """Of a file of Python tests, also one that was ended in the middle."""
    planned, begun, ended, done = [], None, {}, False
    with open(path, encoding="utf-8") as file:
        for line in file:
            event = json.loads(line)
            planned += event.get("planned", [])
            begun = event.get("begin", begun)
            done = done or event.get("done", False)
            if "end" in event:
                ended[event["end"]] = event
    cases = [case_of_event(preset, test, event) for event in ended.values()]
    if not done and begun and begun not in ended:
        cases.append(Case(preset, test, begun, FAILED, message="it did not end"))
    classes_skipped = {name: event for name, event in ended.items()
                       if "." not in name and event["outcome"] == SKIPPED}
    for name in planned:
        if name in ended or name == begun:
            continue
        skipped = classes_skipped.get(name.split(".")[0])
        cases.append(Case(preset, test, name, SKIPPED, message=skipped["message"]) if skipped
                     else Case(preset, test, name, NOT_RUN, message="the tests did not come to it"))
    # A class that is skipped as a whole counts as its methods.
    return [case for case in cases if case.method not in classes_skipped]


def case_of_event(preset, test, event):
    message = event.get("message", "")
    return Case(preset, test, event["end"], event["outcome"], event.get("seconds", 0.0),
                message[-MESSAGE_CHARACTERS:], event["outcome"] == FAILED and is_final(message))


def read_test(preset, element, reports):
    """All methods of one test of ctest."""
    test = element.get("name")
    output = element.findtext("system-out") or ""
    whole = whole_case(preset, element, output)
    cases = []
    for ending, read in ((".xml", read_googletest), (".jsonl", read_methods)):
        path = os.path.join(reports, test + ending)
        if os.path.exists(path):
            cases = read(preset, test, path)
    if not cases and whole.outcome == FAILED:
        cases = read_dead_googletest(preset, test, output)
    if not cases:
        return [whole]
    if whole.outcome == FAILED and not any(case.is_bad for case in cases):
        whole.method = "(its end)"  # it ended badly after its tests, as a leak does
        whole.final = True
        cases.append(whole)
    if is_final(output):
        for case in cases:
            case.final = case.final or case.is_bad
    return cases


def whole_case(preset, element, output):
    case = Case(preset, element.get("name"), "", FAILED, float(element.get("time", 0)))
    skipped = element.find("skipped")
    # ctest also calls "skipped" what it could not start, such as a missing program.
    asked_for = skipped is not None and skipped.get("message", "").startswith("SKIP_")
    if element.get("status") == "disabled" or asked_for:
        reasons = SKIP_REASON.findall(output)
        case.outcome, case.message = SKIPPED, reasons[-1] if reasons else "no reason was given"
    elif element.get("status") == "run":
        case.outcome = PASSED
    else:
        failure = element.find("failure")
        why = failure.get("message", "") if failure is not None else element.get("status", "")
        case.message = f"{why}\n{output[-MESSAGE_CHARACTERS:]}".strip()
        case.final = is_final(output)
    return case
