"""How C++ files begin, and what their text may not contain."""

from tidy_rules.cpp_files import tokens_of
from tidy_rules.cpp_tokens import includes
from tidy_rules.tree import Finding


def check(tree):
    for file in tree.cpp():
        yield from check_tabs(file)
        if file.is_header:
            yield from check_header(file)
        elif file.path.endswith(".cc"):
            yield from check_first_include(tree, file)


def check_tabs(file):
    for number, line in enumerate(file.lines, 1):
        if "\t" in line:
            yield Finding(file.path, number, "tab")


def check_header(file):
    tokens = tokens_of(file.text)
    if not tokens or tokens[0].kind != "comment" or tokens[0].line != 1:
        yield Finding(file.path, 1, "a header begins with a comment that says what it is")
    code = [token for token in tokens if token.kind != "comment"]
    if not code or code[0].text.split() != ["#pragma", "once"]:
        yield Finding(file.path, code[0].line if code else 1, "`#pragma once` must come first")


def check_first_include(tree, file):
    """x.cc includes x.h before all else, which proves that x.h stands alone. A test of the whole
    program may do without x.h, but not include it later."""
    parent = file.path.rpartition("/")[0]
    own = f"{parent}/{file.stem.removesuffix('_test')}.h"
    if tree.find(own) is None:
        return
    wanted = own.removeprefix("src/") if file.folder else own.rpartition("/")[2]
    found = includes(tokens_of(file.text))
    if file.is_test and all(include.path != wanted for include in found):
        return
    if not found or found[0].path != wanted:
        yield Finding(file.path, found[0].line if found else 1, f'first include "{wanted}"')
