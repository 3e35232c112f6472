"""Translation units for clang-tidy: those of the release build, in which one unit has several
sources (tools/unity-groups), and each source by itself."""

import hashlib
import json
import os
import re

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
# The tree takes what a file's own header includes; `debug` shows what is missing altogether.
NOT_COUNTED = re.compile(r': no header providing "[^"]*" is directly included \[')
FINDING = re.compile(r"^(\S+?):(\d+):\d+: (?:warning|error): ")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Unit:
    def __init__(self, file, sources, command, directory):
        self.file, self.sources, self.command, self.directory = file, sources, command, directory

    def alone(self, source):
        """The unit that has only this source, compiled as the whole unit is."""
        command = self.command.replace(self.file, source)
        return Unit(source, [source], command, self.directory)

    def to_json(self):
        return {"directory": self.directory, "command": self.command, "file": self.file}


def units_of(database):
    for entry in json.loads(read(database)):
        file = entry["file"]
        is_joined = os.path.basename(file).startswith("unity_")
        sources = INCLUDE.findall(read(file)) if is_joined else [file]
        yield Unit(file, sources, entry["command"], entry["directory"])


class Lint:
    """`root` has src/ and the configuration; `units` are all of the build's."""

    def __init__(self, root, units):
        self.root = root
        places = tuple(os.path.join(root, place, "") for place in ("src", "bench"))
        self.units = [unit for unit in units if all(one.startswith(places) for one in unit.sources)]
        self._headers = {}

    def all_units(self):
        """Joined ones, but of folders with a configuration of their own each source by itself:
        misc-include-cleaner looks only at includes of the main file."""
        for unit in self.units:
            if any(self.has_own_checks(source) for source in unit.sources):
                yield from (unit.alone(source) for source in unit.sources)
            else:
                yield unit

    def has_own_checks(self, source):
        return len(self.configurations(source)) > 1

    def configurations(self, source):
        found, folder = [], os.path.dirname(source)
        while len(folder) >= len(self.root):
            if os.path.exists(os.path.join(folder, ".clang-tidy")):
                found.append(os.path.join(folder, ".clang-tidy"))
            folder = os.path.dirname(folder)
        return found

    def units_for(self, changed):
        """For changed files, relative to the root: each source by itself; for a header the source
        of its name, else one that includes it."""
        sources = {source: unit for unit in self.units for source in unit.sources}
        chosen = {}
        for name in changed:
            path = os.path.join(self.root, name)
            if name.endswith(".h") and os.path.exists(path):
                path = self.source_for(path, sources)
            if path in sources:
                chosen[path] = sources[path].alone(path)
        return list(chosen.values())

    def source_for(self, header, sources):
        twin = header[:-2] + ".cc"
        if twin in sources:
            return twin
        users = sorted(source for source in sources if header in self.reached([source]))
        near = [user for user in users if os.path.dirname(user) == os.path.dirname(header)]
        return (near + users + [None])[0]

    def reached(self, files):
        """These files of ours, and all that they include."""
        seen, more = set(), list(files)
        while more:
            file = more.pop()
            if file not in seen:
                seen.add(file)
                more += self.ours_included(file)
        return seen

    def ours_included(self, file):
        if file not in self._headers:
            names = INCLUDE.findall(read(file)) if os.path.exists(file) else []
            paths = [os.path.join(self.root, "src", name) for name in names]
            beside = [os.path.join(os.path.dirname(file), name) for name in names]
            self._headers[file] = [path for path in paths + beside if os.path.exists(path)]
        return self._headers[file]

    def key(self, unit, tool):
        """Changes with whatever the findings of a unit depend on, but system headers."""
        files = self.reached(unit.sources) | set(self.configurations(unit.sources[0]))
        parts = [tool, unit.command] + [f"{name}\0{read(name)}" for name in sorted(files)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def has_findings(output):
    """Also such as do not count: without any, a program that failed has failed at its work."""
    return any(FINDING.match(line) for line in output.splitlines())


def findings_of(output):
    """{first line: all lines} of each finding. Those of a header come with each of its users."""
    found, lines = {}, None
    for line in output.splitlines():
        if FINDING.match(line):
            lines = [] if NOT_COUNTED.search(line) else found.setdefault(line, [])
            lines.clear()
        if lines is not None:
            lines.append(line)
    return found
