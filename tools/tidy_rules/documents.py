"""Markdown: exactly one title, and links to files that exist."""

import posixpath
import re

from tidy_rules.tree import Finding

LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
REFERENCE = re.compile(r"\s{0,3}\[[^\]]+\]:\s*<?(\S+?)>?(?:\s|$)")
CODE_SPAN = re.compile(r"(`+).*?\1")
FENCE = re.compile(r"\s*(```+|~~~+)")
ELSEWHERE = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|#|//")


def check(tree):
    for file in tree:
        if file.path.endswith(".md"):
            yield from check_document(tree, file)


def check_document(tree, file):
    titles = []
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


def prose_lines(file):
    """Numbered lines outside of code blocks, without code spans."""
    fence = None
    for number, line in enumerate(file.lines, 1):
        mark = FENCE.match(line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None:
            if mark and mark[1].startswith(fence):
                fence = None
        else:
            yield number, CODE_SPAN.sub("", line)


def resolves(tree, file, target):
    path = target.partition("#")[0].partition("?")[0]
    base = "" if path.startswith("/") else posixpath.dirname(file.path)
    full = posixpath.normpath(posixpath.join(base, path.lstrip("/")))
    return full in tree.paths or full in tree.directories
