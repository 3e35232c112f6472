"""Sizes: of files, lines, functions, classes and of the warden as a whole. A class whose methods a
library prescribes may say `tidy: allow(public methods)` beside its name."""

from tidy_rules.cpp_files import structure_of
from tidy_rules.tree import Finding

FUNCTION_LINES = 70
SOURCE_LINES = 500
HEADER_LINES = 200
LINE_COLUMNS = 100
PARAMETERS = 5
PUBLIC_METHODS = 15
NESTING = 3
WARDEN_LINES = 4800


def check(tree):
    for file in tree:
        if file.is_cpp or file.path.endswith((".py", ".sh")) or file.is_script("python3", "bash"):
            yield from check_columns(file)
        if file.is_cpp:
            yield from check_length(file)
            yield from check_structure(file)
    yield from check_warden(tree)


def check_columns(file):
    for number, line in enumerate(file.lines, 1):
        if len(line) > LINE_COLUMNS:
            message = f"line of {len(line)} columns (budget {LINE_COLUMNS})"
            yield Finding(file.path, number, message)


def check_length(file):
    budget = HEADER_LINES if file.is_header else SOURCE_LINES
    if len(file.lines) > budget:
        yield Finding(file.path, budget + 1, f"file of {len(file.lines)} lines (budget {budget})")


def check_structure(file):
    structure = structure_of(file.text)
    for function in structure.functions:
        name = function.name
        if function.lines > FUNCTION_LINES:
            message = f"function {name} of {function.lines} lines (budget {FUNCTION_LINES})"
            yield Finding(file.path, function.line, message)
        if function.nesting > NESTING:
            message = f"nesting {function.nesting} in {name} (budget {NESTING})"
            yield Finding(file.path, function.nesting_line, message)
    for function in structure.functions + structure.declarations:
        if function.parameters > PARAMETERS:
            count = f"{function.parameters} parameters (budget {PARAMETERS})"
            yield Finding(file.path, function.line, f"{function.name} takes {count}")
    for declared in structure.classes:
        count = len(declared.public_methods)
        if count > PUBLIC_METHODS and not file.allows(declared.line, "public methods"):
            message = f"{declared.name} has {count} public methods (budget {PUBLIC_METHODS})"
            yield Finding(file.path, declared.line, message)


def check_warden(tree):
    files = [file for file in tree.cpp() if file.folder == "warden" and not file.is_test
             and "/testing/" not in file.path]
    total = sum(len(file.lines) for file in files)
    if total >= WARDEN_LINES:
        largest = max(files, key=lambda file: len(file.lines))
        message = f"the warden has {total} lines (must stay under {WARDEN_LINES})"
        yield Finding(largest.path, 1, message)
