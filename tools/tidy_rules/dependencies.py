"""Who may include whom: src/DEPS for our folders, and the rules for libraries below."""

import re

from tidy_rules.cpp_files import tokens_of
from tidy_rules.cpp_tokens import includes
from tidy_rules.tree import Finding

# A library's header and the only folders that may include it; tests/ and bench/ count as folders.
LIBRARIES = (
    (re.compile(r"boost/beast"), {"http"}, "Boost.Beast"),
    (
        re.compile(r"boost/json"),
        {"http", "store", "api", "builder", "daemon", "cli", "egress", "tests", "bench"},
        "Boost.JSON",
    ),
    (re.compile(r"toml\+\+"), {"store", "daemon", "cli"}, "toml++"),
    (re.compile(r"CLI/"), {"cli"}, "CLI11"),
)
# Folders whose programs run beside the enemy or as root: libc and single thread only.
BARE = {"base", "linux", "agent", "warden"}
NOT_IN_BARE = re.compile(r"(iostream|thread)\Z")
EXCEPTIONS = {"throw", "try", "catch"}


def check(tree):
    allowed = {}
    table = tree.find("src/DEPS")
    if table is not None:
        yield from read_table(table, allowed)
    for file in tree.cpp():
        area = file.folder or file.path.split("/")[0]
        for include in includes(tokens_of(file.text)):
            if include.is_ours:
                yield from check_ours(tree, file, include, allowed)
            else:
                yield from check_library(file, area, include)
        if area in BARE and file.folder and not file.is_test:
            yield from check_exceptions(file)


def of_subfolder(file, allowed):
    """What `warden/testing: agent` allows to the files in there, beyond the folder's own line."""
    return allowed.get("/".join(file.path.split("/")[1:-1]), set())


def read_table(table, allowed):
    for number, line in enumerate(table.lines, 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        folder, colon, targets = line.partition(":")
        if not colon or folder.strip() in allowed:
            yield Finding(table.path, number, "want `<folder>: <folder> ...`, each folder once")
            continue
        allowed[folder.strip()] = set(targets.split())


def check_ours(tree, file, include, allowed):
    target = include.path
    if "/" not in target and not file.folder:
        return  # a private header of tests/ or bench/, beside its user
    if tree.find("src/" + target) is None:
        message = f'no such header: "{target}" (write "folder/name.h" below src/)'
        yield Finding(file.path, include.line, message)
        return
    folder = target.split("/")[0]
    if file.folder is None or folder == file.folder:
        return
    if file.folder not in allowed:
        yield Finding(file.path, include.line, f"folder {file.folder} is not in src/DEPS")
    elif not {folder, target} & (allowed[file.folder] | of_subfolder(file, allowed)):
        message = f'{file.folder} may not include "{target}" (src/DEPS)'
        yield Finding(file.path, include.line, message)


def check_library(file, area, include):
    for pattern, folders, name in LIBRARIES:
        if pattern.match(include.path) and area not in folders:
            message = f"{name} may be used only in {', '.join(sorted(folders))}"
            yield Finding(file.path, include.line, message)
    if area not in BARE:
        return
    if include.path.startswith("boost/"):
        yield Finding(file.path, include.line, f"no Boost in {area}")
    elif NOT_IN_BARE.match(include.path) and not file.is_test:
        yield Finding(file.path, include.line, f"no <{include.path}> in {area}")


def check_exceptions(file):
    for token in tokens_of(file.text):
        if token.kind == "word" and token.text in EXCEPTIONS:
            yield Finding(file.path, token.line, f"no exceptions in {file.folder}: `{token.text}`")
