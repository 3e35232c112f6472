"""C++ text as tokens: comments, strings, raw strings and directives told apart from code."""

import re
from typing import NamedTuple

TOKEN = re.compile(
    r"""
    (?P<comment>//(?:\\\r?\n|[^\n])*|/\*.*?\*/)
  | (?P<directive>^[ \t]*\#(?:"(?:[^"\\\n]|\\.)*"|\\\r?\n|/\*.*?\*/|/(?![/*])|[^\n/"]|")*)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^\s()\\"]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
  | (?P<character>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)*')
  | (?P<number>\.?\d(?:(?<=[eEpP])[+-]|'?[\w.])*)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<mark><=>|->|::|\.\.\.|<<=|<<|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|\S)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


class Token(NamedTuple):
    kind: str
    text: str
    line: int


class Include(NamedTuple):
    path: str
    is_ours: bool  # written with quotes
    line: int


def tokenize(text):
    tokens = []
    line, counted = 1, 0
    for match in TOKEN.finditer(text):
        start = match.start()
        line += text.count("\n", counted, start)
        counted = start
        kind = match.lastgroup
        tokens.append(Token("raw" if kind == "delimiter" else kind, match[0], line))
    return tokens


def includes(tokens):
    found = []
    for token in tokens:
        if token.kind != "directive":
            continue
        match = INCLUDE.match(token.text)
        if match:
            found.append(Include(match[1] or match[2], match[1] is not None, token.line))
    return found


def active_code(tokens):
    """Tokens without comments and directives, of the first live branch of each #if only: two
    branches that open the same brace would unbalance the structure."""
    code, branches = [], []
    for token in tokens:
        if token.kind == "directive":
            word = re.match(r"\s*#\s*(\w*)\s*(\S*)", token.text)
            if word[1] in ("if", "ifdef", "ifndef"):
                branches.append([word[2] != "0", word[2] != "0"])  # live now, some branch taken
            elif word[1] in ("else", "elif") and branches:
                branches[-1] = [not branches[-1][1], True]
            elif word[1] == "endif" and branches:
                branches.pop()
        elif token.kind != "comment" and all(live for live, _ in branches):
            code.append(token)
    return code
