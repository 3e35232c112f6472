"""The files that are checked, and the findings about them."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

CPP_ENDINGS = (".cc", ".h", ".c")
ALLOW = re.compile(r"tidy: allow\(([^)]*)\)")


@dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.message}"


@dataclass
class File:
    path: str
    text: str
    executable: bool = False
    _lines: list = field(default=None, repr=False)

    @property
    def lines(self):
        if self._lines is None:
            self._lines = self.text.splitlines()
        return self._lines

    @cached_property
    def name(self):
        return PurePosixPath(self.path).name

    @cached_property
    def stem(self):
        return PurePosixPath(self.path).stem

    @property
    def is_cpp(self):
        return self.path.endswith(CPP_ENDINGS)

    @property
    def is_header(self):
        return self.path.endswith(".h")

    @property
    def is_test(self):
        return self.stem.endswith("_test")

    @property
    def folder(self):
        """The folder of src/ that the file belongs to, or None."""
        parts = self.path.split("/")
        return parts[1] if parts[0] == "src" and len(parts) > 2 else None

    def is_script(self, *interpreters):
        first = self.lines[0] if self.lines else ""
        return first.startswith("#!") and any(re.search(rf"\b{i}\b", first) for i in interpreters)

    def allows(self, line, word):
        """Whether the line, or the one above it, carries `tidy: allow(word)`."""
        for text in self.lines[max(0, line - 2) : line]:
            for match in ALLOW.finditer(text):
                if word in (part.strip() for part in match[1].split(",")):
                    return True
        return False


class Tree:
    """Every text file of the repository by its path, plus the paths of all files."""

    def __init__(self, files, paths=()):
        self.files = {file.path: file for file in files}
        self.paths = set(self.files) | set(paths)
        self.directories = {
            str(parent) for path in self.paths for parent in PurePosixPath(path).parents
        }

    @classmethod
    def from_directory(cls, root):
        files, paths = [], []
        for path in list_paths(root):
            full = Path(root, path)
            if full.is_symlink() or not full.is_file():
                continue
            paths.append(path)
            content = full.read_bytes()
            if b"\0" in content:
                continue
            try:
                text = content.decode()
            except UnicodeDecodeError:
                continue
            files.append(File(path, text, os.access(full, os.X_OK)))
        return cls(files, paths)

    def __iter__(self):
        return iter(self.files.values())

    def cpp(self):
        return [file for file in self if file.is_cpp]

    def find(self, path):
        return self.files.get(path)


def list_paths(root):
    """What git tracks or would track; every file where there is no repository (an archive)."""
    listing = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listing.returncode == 0:
        return sorted(set(filter(None, listing.stdout.decode().split("\0"))))
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", "build", "__pycache__")]
        found += [os.path.relpath(os.path.join(folder, name), root) for name in names]
    return sorted(found)
