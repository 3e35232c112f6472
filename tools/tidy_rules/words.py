"""Words that must not appear: vague names, second names for a thing, narration, leftovers, paths of
one machine. A line (or the line above it) may say `tidy: allow(word)` where the word is right."""

import re

from tidy_rules.cpp_files import tokens_of
from tidy_rules.tree import Finding

VAGUE_CLASS = re.compile(r"(Manager|Helper|Utils?|Handler|Processor|Impl)\Z")
VAGUE_FILE = {"util", "utils", "helper", "helpers", "common", "misc"}
LEFTOVER = re.compile(r"\b(FIXME|XXX|TODO|HACK)\b")  # tidy: allow(FIXME, XXX, TODO, HACK)
NARRATION = re.compile(r"(now we\b|previously\b|fixed\b|new:)", re.IGNORECASE)
COMMENT_MARKS = re.compile(r"[\s/*!<]*")
HASH_COMMENT = re.compile(r"(?:^|\s)#\s*(.*)")
SYNONYMS = {"instance", "vm", "box", "container", "session"}
PLURALS = {word + ("es" if word == "box" else "s") for word in SYNONYMS}
# Names the kernel or a library gave: constants, and system calls by number.
FOREIGN_NAME = re.compile(r"(SYS_|__NR_)\w+\Z|[A-Z0-9_]+\Z|process_vm_\w+\Z")
NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Root's home alone is also a path inside a sandbox, so src/ may name it. tidy: allow(/work/)
MACHINE_PATH = re.compile(r"(?<![\w.$}{)/*>-])(/work/|/root(?=[/\s\"'`),;:]|$))(/[\w.])?")
OWNER = re.compile(r"\bown(s|ed|er|ers)?\b", re.IGNORECASE)
OWNER_COMMENT_REACH = 3  # lines above a `detached`
CODE_ENDINGS = (".cc", ".h", ".c", ".py", ".sh", ".cmake", ".ts", ".js", ".go", "CMakeLists.txt")


def check(tree):
    for file in tree:
        is_code = file.path.endswith(CODE_ENDINGS) or file.text.startswith("#!")
        yield from check_paths(file)
        if is_code:
            yield from check_file_name(file)
            yield from check_leftovers(file)
        if file.is_cpp:
            yield from check_cpp(file)
        elif is_code:
            yield from check_hash_comments(file)


def check_file_name(file):
    parts = re.split(r"[_\-.]", file.stem)
    for part in parts:
        if part in VAGUE_FILE:
            yield Finding(file.path, 1, f"file named `{part}`: name it after what it holds")
    if file.folder:
        for part in SYNONYMS.union(PLURALS).intersection(parts):
            yield Finding(file.path, 1, f"`{part}` is not one of our words (glossary)")


def check_paths(file):
    for number, line in enumerate(file.lines, 1):
        for match in MACHINE_PATH.finditer(line):
            is_home = match[1] == "/root"  # tidy: allow(/root)
            if is_home and not match[2] and file.folder:
                continue
            if not file.allows(number, match[1]):
                yield Finding(file.path, number, f"path of one machine: {match[1]}")


def check_leftovers(file):
    for number, line in enumerate(file.lines, 1):
        for match in LEFTOVER.finditer(line):
            if not file.allows(number, match[1]):
                yield Finding(file.path, number, f"leftover {match[1]}")


def check_hash_comments(file):
    for number, line in enumerate(file.lines, 1):
        match = HASH_COMMENT.search(line)
        if match:
            yield from check_narration(file, number, match[1])


def check_narration(file, line, words):
    match = NARRATION.match(words)
    if match:
        message = f"comment opens with \"{match[0]}\": say what is, not what changed"
        yield Finding(file.path, line, message)


def check_cpp(file):
    tokens = tokens_of(file.text)
    comments = [token for token in tokens if token.kind == "comment"]
    code = [token for token in tokens if token.kind not in ("comment", "directive")]
    previous_line = -1
    for comment in comments:
        if comment.line != previous_line + 1:  # a new one, not the next line of the same
            yield from check_narration(file, comment.line, COMMENT_MARKS.sub("", comment.text, 1))
        previous_line = comment.line
    yield from check_class_names(file, code)
    yield from check_catches(file, code)
    yield from check_detached(file, code, comments)
    if file.folder:
        yield from check_synonyms(file, code)


def check_class_names(file, code):
    for before, name in zip(code, code[1:]):
        if before.text not in ("class", "struct", "union") or name.kind != "word":
            continue
        match = VAGUE_CLASS.search(name.text)
        if match and not file.allows(name.line, match[1]):
            message = f"class named {name.text}: `{match[1]}` says nothing"
            yield Finding(file.path, name.line, message)


def check_catches(file, code):
    for i, token in enumerate(code):
        if token.text != "catch" or code[i + 1 : i + 2] == [] or code[i + 1].text != "(":
            continue
        close = i + 2
        while close < len(code) and code[close].text != ")":
            close += 1
        if [after.text for after in code[close + 1 : close + 3]] == ["{", "}"]:
            yield Finding(file.path, token.line, "empty catch: an error is swallowed")


def check_detached(file, code, comments):
    """Also spawn() of async/spawn.h, which starts a task that the caller does not wait for."""
    spawns = '#include "async/spawn.h"' in file.text and file.folder != "async"
    for i, token in enumerate(code):
        is_spawn = spawns and token.text == "spawn" and code[i + 1].text == "("
        if token.kind != "word" or not (token.text == "detached" or is_spawn):
            continue
        statement = [before.text for before in code[max(0, i - 6) : i]]
        if "using" in statement:
            continue
        near = range(token.line - OWNER_COMMENT_REACH, token.line + 1)
        if not any(comment.line in near and OWNER.search(comment.text) for comment in comments):
            message = f"`{token.text}` without a comment that says who owns the task"
            yield Finding(file.path, token.line, message)


def check_synonyms(file, code):
    for token in code:
        if token.kind != "word" or FOREIGN_NAME.match(token.text):
            continue
        for part in NAME_PARTS.findall(token.text):
            word = part.lower()
            if word not in SYNONYMS and word not in PLURALS:
                continue
            if not file.allows(token.line, word):
                message = f"`{token.text}`: {word} is not one of our words (glossary)"
                yield Finding(file.path, token.line, message)
