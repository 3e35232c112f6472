"""Markdown: exactly one title, links to files that exist; how-to pages name files that exist."""

import posixpath
import re

from tidy_rules.tree import Finding

LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")
CODE_SPAN = re.compile(r"(`+).*?\1")
FENCE = re.compile(r"\s*(```+|~~~+)")
SPAN_TEXT = re.compile(r"(`+)(.*?)\1")
HOWTO = "docs/internals/howto/"
FILE_NAME = re.compile(r"[\w.-]+(/[\w.-]+)*/?\Z")
FILE_ENDING = re.compile(r"[A-Za-z].*\.(cc|h|py|md|toml|json|txt|tsv|sh)\Z")
ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|#|//")


def check(tree):
    for file in tree:
        if file.path.endswith(".md"):
            yield from check_document(tree, file)


def check_document(tree, file):
    titles = []
    if file.path.startswith(HOWTO):
        yield from check_named_files(tree, file)
    for number, line in prose_lines(file):
        if re.match(r"#\s", line):
            titles.append(number)
        for target in LINK.findall(line) + REFERENCE.findall(line):
            if not ELSEWHERE.match(target) and not resolves(tree, file, target):
                yield Finding(file.path, number, f"link to {target}, which does not exist")
    if not titles:
        yield Finding(file.path, 1, "document without a title")
    for number in titles[1:]:
        yield Finding(file.path, number, "second title in one document")


def check_named_files(tree, file):
    """Words of code spans that look like files of the tree: below one of its directories, or with
    the ending of a source."""
    for number, line in lines_outside_blocks(file):
        words = [word for _, span in SPAN_TEXT.findall(line) for word in span.split()]
        for name in words:
            below_ours = "/" in name and name.split("/")[0] in tree.directories
            if not FILE_NAME.match(name) or not (below_ours or FILE_ENDING.match(name)):
                continue
            if name.rstrip("/") not in tree.paths | tree.directories:
                yield Finding(file.path, number, f"names {name}, which does not exist")


def prose_lines(file):
    """Numbered lines outside of code blocks, without code spans."""
    for number, line in lines_outside_blocks(file):
        yield number, CODE_SPAN.sub("", line)


def lines_outside_blocks(file):
    fence = None
    for number, line in enumerate(file.lines, 1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None:
            if mark and mark[1].startswith(fence):
                fence = None
        else:
            yield number, line


def resolves(tree, file, target):
    path = target.partition("#")[0].partition("?")[0]
    base = "" if path.startswith("/") else posixpath.dirname(file.path)
    full = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
    return full in tree.paths or full in tree.directories
