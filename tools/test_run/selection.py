"""Which tests belong to a change, and where a test of a name is."""

import fnmatch
import os
import re
import subprocess

GOOGLETEST = re.compile(r"^(?:TYPED_)?TEST(_F|_P)?\((\w+),\s*(\w+)\)", re.MULTILINE)
PYTHON_CLASS = re.compile(r"^class (\w+)\(", re.MULTILINE)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def folders_of(root):
    return sorted(name for name in os.listdir(os.path.join(root, "src"))
                  if os.path.exists(os.path.join(root, "src", name, "CMakeLists.txt")))


def has_unit_tests(root, folder):
    return any(name.endswith("_test.cc") for _, _, names in
               os.walk(os.path.join(root, "src", folder)) for name in names)


def users_of(deps):
    """By src/DEPS: {folder: folders that include it}; a sub-folder counts as its folder."""
    users = {}
    for line in deps.splitlines():
        folder, colon, used = line.partition("#")[0].partition(":")
        for one in used.split() if colon else ():
            users.setdefault(one.split("/")[0], set()).add(folder.strip().split("/")[0])
    return users


def with_dependents(folders, deps):
    users, found, more = users_of(deps), set(), set(folders)
    while more:
        found |= more
        more = {user for folder in more for user in users.get(folder, ())} - found
    return found


def changed_files(root):
    """Since the branch left its upstream, and what is not committed; of a clean checkout without an
    upstream those of its last commit."""
    def git(*words):
        done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True,
                              check=False)
        return done.stdout.split("\n") if done.returncode == 0 else []
    base = (git("merge-base", "HEAD", "@{upstream}") or ["HEAD"])[0]
    files = git("diff", "--name-only", base) + git("ls-files", "--others", "--exclude-standard")
    files = [file for file in files if file]
    return files or [file for file in git("diff", "--name-only", "HEAD~1") if file]


def folders_changed(files, root):
    known = folders_of(root)
    return {file.split("/")[1] for file in files
            if file.startswith("src/") and file.split("/")[1] in known}


def find_googletests(root, pattern):
    """{folder: filter} of unit tests whose Suite.Name fits the pattern."""
    found = {}
    for folder in folders_of(root):
        for directory, _, names in os.walk(os.path.join(root, "src", folder)):
            for name in (name for name in names if name.endswith("_test.cc")):
                for kind, suite, test in GOOGLETEST.findall(read(os.path.join(directory, name))):
                    if fnmatch.fnmatchcase(f"{suite}.{test}", pattern):
                        filters = found.setdefault(folder, set())
                        filters.add(f"*{suite}.{test}/*" if kind == "_P" else f"{suite}.{test}")
    return {folder: ":".join(sorted(filters)) for folder, filters in found.items()}


def find_python_tests(root, pattern):
    """Files of Python tests with a class that fits the part before the dot, or of that name."""
    found = []
    for directory, _, names in os.walk(os.path.join(root, "tests")):
        for name in sorted(name for name in names if name.endswith("_test.py")):
            path = os.path.join(directory, name)
            classes = PYTHON_CLASS.findall(read(path))
            if fnmatch.filter(classes, pattern.split(".")[0]):
                found.append(os.path.relpath(path, root))
    return found
