"""build/test/junit.xml: every method of a run, for tools that read JUnit."""

import re
import xml.etree.ElementTree as ElementTree

from test_run.cases import FLAKY, SKIPPED, count

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def write(path, cases):
    total = count(cases)
    root = ElementTree.Element("testsuite", name="atoll", tests=str(len(cases)),
                               failures=str(total["failed"]), skipped=str(total["skipped"]))
    for case in cases:
        element = ElementTree.SubElement(root, "testcase", name=case.method or case.test,
                                         classname=f"{case.preset}.{case.test}",
                                         time=f"{case.seconds:.3f}")
        text = NOT_XML.sub("?", case.message)
        if case.is_bad:
            ElementTree.SubElement(element, "failure", message=text[:200]).text = text
        elif case.outcome == SKIPPED:
            ElementTree.SubElement(element, "skipped", message=text)
        elif case.outcome == FLAKY:
            ElementTree.SubElement(element, "flakyFailure", message=text[:200]).text = text
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
