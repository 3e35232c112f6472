"""Every public method of the classes that a sandbox of E2B's clients is made of is called by a test
here, or is named in docs/e2b.md with the reason why not. Needs no Atoll: it looks at the packages
as they are installed, at the tests and at the document."""
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import clients

sys.path.insert(0, os.path.join(clients.ROOT, "tests", "system"))
import reporting  # noqa: E402

clients.enter_python()

import e2b  # noqa: E402
import e2b_code_interpreter  # noqa: E402
from e2b.sandbox_sync.commands.command import Commands  # noqa: E402
from e2b.sandbox_sync.commands.pty import Pty  # noqa: E402
from e2b.sandbox_sync.filesystem.filesystem import Filesystem  # noqa: E402

CLASSES = {"Sandbox": e2b.Sandbox, "CodeSandbox": e2b_code_interpreter.Sandbox,
           "Commands": Commands, "Pty": Pty, "Filesystem": Filesystem, "Git": e2b.Git,
           "CommandHandle": e2b.CommandHandle, "WatchHandle": e2b.WatchHandle,
           "SandboxPaginator": e2b.SandboxPaginator, "Template": e2b.Template}
HEADING = "## Methods that no test calls"


def snake(name):
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: "_" + match.group(1).lower(), name)


def tests_text(suffix):
    text = ""
    for name in sorted(os.listdir(clients.HERE)):
        if name.endswith(suffix) and not name.startswith("methods"):
            with open(os.path.join(clients.HERE, name)) as file:
                text += file.read()
    return text


def excused():
    """Names as "Class.method", in the form of Python, from the table of the document."""
    with open(os.path.join(clients.ROOT, "docs", "e2b.md")) as file:
        text = file.read()
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    names = set()
    for row in re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE):
        if not row[1].strip(" -"):
            continue
        for owner, methods in re.findall(r"`(\w+)\.([\w, ]+)`", row[0]):
            names |= {f"{owner}.{snake(method)}" for method in methods.split(", ")}
    return names


def is_called(method, text):
    return re.search(rf"\.{method}\b", text) is not None


class Methods(unittest.TestCase):
    maxDiff = None

    def check(self, known, text):
        allowed = excused()
        missed = [f"{owner}.{method}" for owner, methods in known.items() for method in methods
                  if not is_called(method, text) and f"{owner}.{snake(method)}" not in allowed]
        self.assertEqual(missed, [], f"call them in a test, or list them in docs/e2b.md, {HEADING}")

    def python_methods(self):
        return {name: sorted(key for key, value in inspect.getmembers(known, callable)
                             if not key.startswith("_"))
                for name, known in CLASSES.items()}

    def node_methods(self):
        directory = clients.node_directory()
        shutil.copy(os.path.join(clients.HERE, "methods.mjs"), directory)
        done = subprocess.run(["node", "methods.mjs"], cwd=directory, capture_output=True,
                              text=True, timeout=120, check=True)
        return json.loads(done.stdout)

    def test_of_python_are_all_called_or_excused(self):
        known = self.python_methods()
        self.assertIn("set_timeout", known["Sandbox"])
        self.check(known, tests_text(".py"))

    def test_of_node_are_all_called_or_excused(self):
        known = self.node_methods()
        self.assertIn("setTimeout", known["Sandbox"])
        self.assertNotIn("resolveApiOpts", known["Sandbox"])
        self.check(known, tests_text(".mjs"))

    def test_nothing_is_excused_that_does_not_exist(self):
        known = {f"{owner}.{snake(method)}"
                 for methods_of in (self.python_methods(), self.node_methods())
                 for owner, methods in methods_of.items() for method in methods}
        self.assertEqual(sorted(excused() - known), [])


if __name__ == "__main__":
    reporting.main()
