"""Reads the `// victim:` line of every hostile program and writes what is made of it: the table by
which one binary runs them all, and the list that `atoll selftest` reads.

usage: collect.py DISPATCH_C LIST_TSV VICTIM_C...
"""
import os
import re
import sys

# Key: default. Each is a column of the list; README.md says what they mean.
KEYS = {"id": None, "user": "both", "verdict": "", "limits": "", "exec": "", "cwd": "",
        "command": "", "timeout_ms": "20000", "sandbox": "shared", "not_behind": "",
        "instead": ""}
CHOICES = {"user": ("user", "root", "both"), "sandbox": ("shared", "fresh", "none")}
COLUMNS = ["name", *KEYS, "about"]


def fail(path, message):
    sys.exit(f"{path}: {message}")


def read(path):
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    name = os.path.splitext(os.path.basename(path))[0]
    comment = []
    for line in lines:
        if not line.startswith("//"):
            break
        comment.append(line[2:].strip())
    about, mark, settings = " ".join(comment).partition("victim:")
    about = about.strip()
    if not mark or not about:
        fail(path, "must begin with a comment that says what it tries and ends with `victim:` …")
    values = dict(KEYS)
    for word in settings.split():
        key, _, value = word.partition("=")
        if key not in KEYS or not value:
            fail(path, f"`{word}` is not one of {', '.join(KEYS)}")
        values[key] = value
    check(path, values)
    return {"name": name, "about": about, **values}


def check(path, values):
    if not re.fullmatch(r"(ESC|FS|RES|LAT)-\d\d", values["id"] or ""):
        fail(path, "has no id of the catalogue")
    for key, choices in CHOICES.items():
        if values[key] not in choices:
            fail(path, f"{key} must be one of {', '.join(choices)}")
    if values["limits"] and values["sandbox"] != "fresh":
        fail(path, "limits need sandbox=fresh")
    if not values["timeout_ms"].isdigit():
        fail(path, "timeout_ms must be a number")


def write_dispatch(path, victims):
    with open(path, "w", encoding="utf-8") as file:
        file.write('#include "victim.h"\n\n')
        for victim in victims:
            file.write(f"int victim_{victim['name']}(int count, char** values);\n")
        file.write("\nint main(int count, char** values) {\n"
                   "  static const struct {\n    const char* name;\n"
                   "    int (*run)(int, char**);\n  } victims[] = {\n")
        for victim in victims:
            file.write(f'    {{"{victim["name"]}", victim_{victim["name"]}}},\n')
        file.write("  };\n  size_t all = sizeof victims / sizeof victims[0];\n"
                   "  for (size_t i = 0; count > 1 && i < all; ++i)\n"
                   "    if (strcmp(victims[i].name, values[1]) == 0)\n"
                   "      return victims[i].run(count - 1, values + 1);\n"
                   "  for (size_t i = 0; i < all; ++i) puts(victims[i].name);\n"
                   "  return count > 1 ? 64 : 0;\n}\n")


def main():
    dispatch, table, *sources = sys.argv[1:]
    victims = sorted((read(path) for path in sources), key=lambda victim: victim["name"])
    write_dispatch(dispatch, victims)
    with open(table, "w", encoding="utf-8") as file:
        file.write("\t".join(COLUMNS) + "\n")
        for victim in victims:
            file.write("\t".join(victim[column] or "-" for column in COLUMNS) + "\n")


main()
