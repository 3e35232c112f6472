"""Files nothing uses: headers nobody includes, sources no target compiles, tests nobody runs."""

import fnmatch
import posixpath
import re

from tidy_rules.cpp_files import tokens_of
from tidy_rules.cpp_tokens import includes
from tidy_rules.tree import Finding

GLOB = re.compile(r"[\w./${}-]*\*[\w./*-]*")
# A name with one variable in it, as a loop of CMake builds it: ${name}_test.py
BUILT_NAME = re.compile(r"(?:\$\{CMAKE_\w+\}/)?([\w.-]*)\$\{(?!CMAKE_)\w+\}([\w.-]*)")
DISCOVERED = re.compile(r"(test_\w+|\w+_test)\.py\Z")
SOURCE_ENDINGS = (".cc", ".c", ".py", ".sh")
NOT_RUN = ("CMakeLists.txt", ".cmake", ".md", "__init__.py", ".h")


def check(tree):
    yield from check_headers(tree)
    for file in tree.cpp():
        if file.folder and file.path.endswith(".cc"):
            yield from check_source(tree, file)
    yield from check_tests(tree)


def check_headers(tree):
    included = {
        include.path if "/" in include.path else posixpath.join(dirname(file.path), include.path)
        for file in tree.cpp()
        for include in includes(tokens_of(file.text))
        if include.is_ours
    }
    for file in tree.cpp():
        if file.is_header and file.path.removeprefix("src/") not in included:
            yield Finding(file.path, 1, "dead file: no file includes this header")


def check_source(tree, file):
    """cmake/atoll.cmake globs *.cc and */*.cc of a folder; programs name their sources."""
    build = tree.find(f"src/{file.folder}/CMakeLists.txt")
    if build is None:
        yield Finding(file.path, 1, f"dead file: src/{file.folder} has no CMakeLists.txt")
        return
    below = file.path.removeprefix(f"src/{file.folder}/")
    if re.search(rf"(?<![\w/]){re.escape(below)}\b", build.text):
        return
    if file.stem == "main" or file.stem.endswith("_main"):
        yield Finding(file.path, 1, f"dead file: {build.path} does not name this program")
    elif below.count("/") > 1:
        yield Finding(file.path, 1, "dead file: too deep, the build globs only two levels")
    elif file.is_test and "atoll_unit_tests(" not in build.text:
        yield Finding(file.path, 1, f"dead file: {build.path} has no atoll_unit_tests()")
    elif not file.is_test and "atoll_library(" not in build.text:
        yield Finding(file.path, 1, f"dead file: {build.path} has no atoll_library()")


def check_tests(tree):
    """Something that runs must name a file of tests/, match it by a glob, or discover it."""
    for file in tree:
        if not file.path.startswith("tests/") or file.path.endswith(NOT_RUN):
            continue
        if not any(is_user(tree, other, file) for other in tree if other is not file):
            yield Finding(file.path, 1, "dead file: nothing runs or names this file of tests/")


def is_user(tree, other, file):
    is_build = other.path.endswith(("CMakeLists.txt", ".cmake", "Makefile"))
    if not is_build and not other.path.startswith(("tests/", "tools/", ".ci/")):
        return False
    if other.path.endswith(".md"):
        return False
    names = {file.name, file.stem}
    if not file.path.endswith(SOURCE_ENDINGS):
        names.update(file.path.split("/")[2:-1])  # data is used by its directory
    if is_build and any(is_built_name(tree, other, name) for name in names):
        return True
    if any(has_word(other.text, name) for name in names):
        return True
    if not dirname(file.path).startswith(dirname(other.path)):
        return False
    if is_build and re.search(r"\b(unittest|pytest)\b", other.text) and DISCOVERED.match(file.name):
        return True
    return any(matches(other, pattern, file) for pattern in GLOB.findall(other.text))


def has_word(text, word):
    """The second look, which is slow, only where the first finds something."""
    return word in text and re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text) is not None


def is_built_name(tree, build, name):
    """Whether the build forms this name from a variable whose value it lists, or takes from the
    name of a file beside it."""
    for before, after in set(BUILT_NAME.findall(build.text)):
        if not before + after or not name.startswith(before) or not name.endswith(after):
            continue
        value = name[len(before) : len(name) - len(after)]
        if has_word(build.text, value) or is_beside(tree, build, value):
            return True
    return False


def is_beside(tree, build, stem):
    folder = dirname(build.path)
    return any(file.stem == stem and dirname(file.path) == folder for file in tree)


def matches(other, pattern, file):
    pattern = re.sub(r"\$\{?\w*\}?/?", "", pattern)
    below = posixpath.relpath(file.path, dirname(other.path) or ".")
    if pattern.strip("*/.") == "":
        return False
    is_deep = "**" in pattern or "GLOB_RECURSE" in other.text
    return any(
        fnmatch.fnmatch(path, pattern) and (is_deep or path.count("/") == pattern.count("/"))
        for path in (below, file.path)
    )


def dirname(path):
    return posixpath.dirname(path)
