"""The functions and classes of a C++ file, with what the budgets measure.

One pass over the tokens with a stack of scopes. A scope keeps the items since its last statement
began (its head); a closed bracket is one item in the head around it. What an opening brace means is
decided from the head before it, so no declaration has to be understood completely.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

from tidy_rules.cpp_tokens import active_code

CONTROL = {"if", "for", "while", "switch", "catch", "do", "try", "else"}
TAKES_CONDITION = {"if", "for", "while", "switch", "catch"}
CLASS_WORDS = {"class", "struct", "union"}
NOT_NAMES = CONTROL | CLASS_WORDS | set(
    "alignas alignof decltype noexcept requires sizeof explicit static_assert __attribute__ return "
    "void bool char int long short unsigned signed float double auto throw new delete const".split()
)
LAMBDA_WORDS = {"mutable", "constexpr", "consteval", "noexcept", "static"}
ACCESS_WORDS = {"public", "private", "protected"}
BEFORE_CLASS = set("typedef static inline constexpr const friend extern constinit".split())
NO_DECLARATION = {"using", "typedef", "static_assert", "namespace", "friend", "extern", "template"}
DECLARING = {"file", "namespace", "class"}
STATEMENTS = {"function", "lambda", "control", "block", "braces"}
WORD = re.compile(r"[A-Za-z_]\w*\Z")
ALL_CAPS = re.compile(r"[A-Z][A-Z0-9_]+\Z")


class Item(NamedTuple):
    text: str  # of the token, or "()", "[]", "{}" for a closed bracket
    line: int
    inner: tuple = ()


@dataclass
class Function:
    name: str
    line: int
    parameters: int = 0
    lines: int = 0
    nesting: int = 0
    nesting_line: int = 0


@dataclass
class Class:
    name: str
    line: int
    public_methods: set = field(default_factory=set)


@dataclass
class Scope:
    kind: str
    head: list = field(default_factory=list)
    depth: int = 0
    function: Optional[Function] = None  # the innermost one that encloses it
    opened: Optional[Function] = None  # the one that begins with this scope
    declared: Optional[Class] = None
    public: bool = True


class Structure:
    """scan(tokens) gives functions with a body, declarations without, and classes."""

    def __init__(self):
        self.functions, self.declarations, self.classes = [], [], []
        self.stack = [Scope("file")]

    @classmethod
    def scan(cls, tokens):
        structure = cls()
        for token in active_code(tokens):
            structure.take(token)
        return structure

    def take(self, token):
        text, top = token.text, self.stack[-1]
        if token.kind != "mark":
            top.head.append(Item('""' if token.kind in ("string", "raw") else text, token.line))
        elif text == "(":
            self.push(Scope("parentheses"))
        elif text == "[":
            self.push(Scope("square"))
        elif text == "{":
            self.open_brace(token.line)
        elif text in ")]":
            self.close_bracket("parentheses" if text == ")" else "square", token.line)
        elif text == "}":
            self.close_brace(token.line)
        elif text == ";" and top.kind not in ("parentheses", "square"):
            self.end_statement(top, token.line)
        elif text == ":" and ends_label(top):
            top.head.clear()
        else:
            top.head.append(Item(text, token.line))

    def push(self, scope):
        top = self.stack[-1]
        scope.depth = top.depth + (count_controls(top.head) if top.kind in STATEMENTS else 0)
        scope.function = scope.opened or top.function
        self.stack.append(scope)

    def close_bracket(self, kind, line):
        if len(self.stack) < 2 or self.stack[-1].kind != kind:
            return
        inner = tuple(self.stack.pop().head)
        if kind == "square" and len(inner) == 1 and inner[0].text == "[]":
            return  # an attribute says nothing about structure
        self.stack[-1].head.append(Item("()" if kind == "parentheses" else "[]", line, inner))

    def open_brace(self, line):
        top = self.stack[-1]
        kind, scope = self.classify(top), None
        first_line = top.head[0].line if top.head else line
        if kind == "function" or (kind == "lambda" and top.function is None):
            function = describe_function(top.head, first_line)
            self.functions.append(function)
            scope = Scope(kind, opened=function)
            self.count_method(top, function.name)
        elif kind == "class":
            declared = Class(class_name(top.head), first_line)
            self.classes.append(declared)
            scope = Scope(kind, declared=declared)
            scope.public = not any(item.text == "class" for item in without_template(top.head))
        self.push(scope or Scope(kind))
        if kind == "function" or kind == "class":
            self.stack[-1].depth = 0
        if kind == "class":
            self.stack[-1].function = None
        if kind == "control":
            note_nesting(self.stack[-1], self.stack[-1].depth, line)

    def classify(self, top):
        head = top.head
        if is_lambda(head):
            return "lambda"
        if class_name(head) is not None:
            return "class"
        if top.kind in DECLARING:
            texts = [item.text for item in head]
            if "namespace" in texts or texts == ["extern", '""']:
                return "namespace"
            return "function" if begins_body(head) else "braces"
        if is_control(head):
            return "control"
        return "braces" if head or top.kind not in STATEMENTS else "block"

    def close_brace(self, line):
        while len(self.stack) > 1 and self.stack[-1].kind in ("parentheses", "square"):
            self.stack.pop()
        if len(self.stack) == 1:
            return
        scope = self.stack.pop()
        if scope.opened:
            scope.opened.lines = line - scope.opened.line + 1
        head = self.stack[-1].head
        if scope.kind in ("braces", "lambda", "class"):
            head.append(Item("class{}" if scope.kind == "class" else "{}", line))
            return
        ended_do = scope.kind == "control" and head and head[-1].text == "do"
        head.clear()
        if ended_do:
            head.append(Item("do{}", line))

    def end_statement(self, scope, line):
        if scope.kind in DECLARING:
            function = describe_declaration(scope.head)
            if function:
                self.declarations.append(function)
                self.count_method(scope, function.name)
        else:
            controls = count_controls(scope.head)
            if controls:
                note_nesting(scope, scope.depth + controls, line)
        scope.head.clear()

    def count_method(self, scope, name):
        if not scope.declared or not scope.public:
            return
        if name != scope.declared.name and not name.startswith(("~", "operator")):
            scope.declared.public_methods.add(name)


def ends_label(scope):
    """Whether a colon here ends `public`, `case x` or a label; notes the access it declares."""
    head = scope.head
    if scope.kind == "class" and len(head) == 1 and head[0].text in ACCESS_WORDS:
        scope.public = head[0].text == "public"
        return True
    if scope.kind not in STATEMENTS or not head:
        return False
    first = head[0].text
    return first in ("case", "default") or (len(head) == 1 and bool(WORD.match(first)))


def count_controls(head):
    """Levels of nesting that the head opens: `else if` is one, the `while` of a `do` is none."""
    count, previous = 0, ""
    for item in head:
        text = item.text
        if text in CONTROL:
            if not (text == "if" and previous == "else") and previous != "do{}":
                count += 1
        previous = text
    return count


def note_nesting(scope, depth, line):
    function = scope.function
    if function and depth > function.nesting:
        function.nesting, function.nesting_line = depth, line


def is_control(head):
    if not head:
        return False
    if head[-1].text in ("else", "do", "try"):
        return True
    if head[-1].text != "()" or len(head) < 2:
        return False
    before = head[-2].text
    if before in ("constexpr", "consteval", "co_await") and len(head) > 2:
        before = head[-3].text
    return before in TAKES_CONDITION


def is_lambda(head):
    for i in range(len(head) - 1, -1, -1):
        if head[i].text == "[]":
            break
    else:
        return False
    before = head[i - 1].text if i else ""
    follows_value = before in ("()", "[]", '""', ">") or (
        WORD.match(before) and before not in ("return", "co_return", "co_await", "co_yield", "case")
    )
    if follows_value:
        return False
    rest = [item.text for item in head[i + 1 :]]
    if rest[:1] == ["<"]:
        rest = rest[closing_angle(rest, 0) + 1 :]
    if rest[:1] == ["()"]:
        rest = rest[1:]
    while rest and (rest[0] in LAMBDA_WORDS or rest[0] == "()"):
        rest = rest[1:]
    return not rest or rest[0] in ("->", "requires")


def closing_angle(texts, start):
    depth = 0
    for i in range(start, len(texts)):
        if texts[i] in ("<", "<<"):
            depth += len(texts[i])
        elif texts[i] == ">":
            depth -= 1
            if depth == 0:
                return i
    return start


def without_template(head):
    while len(head) > 1 and head[0].text == "template" and head[1].text == "<":
        head = head[closing_angle([item.text for item in head], 1) + 1 :]
    return head


def class_name(head):
    """The name when the head declares a class that a brace would define, "" when it has none."""
    head = without_template(head)
    if head and head[0].text == "requires":
        starts = [i for i, item in enumerate(head) if item.text in CLASS_WORDS]
        head = head[starts[0] :] if starts else []
    while head and head[0].text in BEFORE_CLASS:
        head = head[1:]
    if not head or head[0].text not in CLASS_WORDS:
        return None
    texts = [item.text for item in without_angles(head[1:])]
    while texts[:1] in (["alignas"], ["__attribute__"]):
        texts = texts[2:]
    name, i = "", 0
    while i < len(texts) and WORD.match(texts[i]) and texts[i] != "final":
        name = texts[i]
        i += 1
        if texts[i : i + 1] != ["::"]:
            break
        i += 1
    texts = texts[i:]
    if texts[:1] == ["final"]:
        texts = texts[1:]
    return name if not texts or texts[0] == ":" else None



def without_angles(head):
    """The items without template arguments; `operator<` keeps its name."""
    kept, texts, i = [], [item.text for item in head], 0
    while i < len(head):
        text = texts[i]
        if text == "operator":
            kept.append(head[i])
            i += 1
            while i < len(head) and texts[i] not in ("()", "[]") and not WORD.match(texts[i]):
                kept.append(head[i])
                i += 1
            continue
        if text == "<" and kept and WORD.match(kept[-1].text):
            end = closing_angle(texts, i)
            if end > i:
                i = end + 1
                continue
        kept.append(head[i])
        i += 1
    return kept


def find_parameters(flat):
    texts = [item.text for item in flat]
    if "operator" in texts:
        i = texts.index("operator") + 1
        if texts[i : i + 2] == ["()", "()"]:
            return i + 1
        return texts.index("()", i) if "()" in texts[i:] else None
    for i in range(1, len(flat)):
        if texts[i] == "()" and WORD.match(texts[i - 1]) and texts[i - 1] not in NOT_NAMES:
            return i
    return None


def is_initialised(flat, parameters):
    texts = [item.text for item in flat[:parameters]]
    return "=" in texts and "operator" not in texts


def begins_body(head):
    """Whether a brace after this head, outside of functions, begins a function's body."""
    flat = without_angles(without_template(head))
    parameters = find_parameters(flat)
    if parameters is None or is_initialised(flat, parameters):
        return False
    texts = [item.text for item in flat]
    in_initialisers = ":" in texts[parameters:]
    return not (in_initialisers and WORD.match(texts[-1]))


def count_parameters(inner):
    if not inner or [item.text for item in inner] == ["void"]:
        return 0
    return 1 + sum(item.text == "," for item in without_angles(list(inner)))


def describe_function(head, line):
    flat = without_angles(without_template(head))
    parameters = find_parameters(flat)
    if parameters is None:
        return Function("lambda", line)
    texts = [item.text for item in flat]
    if "operator" in texts[:parameters]:
        name = "".join(texts[texts.index("operator") : parameters])
        return Function(name, line, count_parameters(flat[parameters].inner))
    name = texts[parameters - 1]
    if texts[parameters - 2 : parameters - 1] == ["~"]:
        name = "~" + name
    if ALL_CAPS.match(name):  # a macro such as TEST(A, B): its arguments are no parameters
        inner = "".join(item.text.replace(",", ", ") for item in flat[parameters].inner)
        return Function(f"{name}({inner})", line)
    return Function(name, line, count_parameters(flat[parameters].inner))


def describe_declaration(head):
    """The function that a statement outside of functions declares, if it declares one."""
    rest = without_template(head)
    if not rest or rest[0].text in NO_DECLARATION:
        return None
    flat = without_angles(rest)
    parameters = find_parameters(flat)
    if parameters is None or is_initialised(flat, parameters):
        return None
    if any(item.text == "class{}" for item in flat) or ALL_CAPS.match(flat[parameters - 1].text):
        return None
    return describe_function(head, rest[0].line)
