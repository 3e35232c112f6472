"""build/coverage.json: how many lines of each folder of src/ its own unit tests run."""

import json
import os


def is_counted(path):
    """Tests and what they bring along do not count as tested lines."""
    return not path.endswith(("_test.cc", "_test.h")) and "/testing/" not in path


def figure(export, root, folder):
    """{"lines", "covered", "percent"} of a folder, by `llvm-cov export -summary-only`."""
    below = os.path.join(root, "src", folder, "")
    sums = [file["summary"]["lines"] for data in export["data"] for file in data["files"]
            if file["filename"].startswith(below) and is_counted(file["filename"])]
    lines = sum(one["count"] for one in sums)
    covered = sum(one["covered"] for one in sums)
    return {"lines": lines, "covered": covered,
            "percent": round(100 * covered / lines, 1) if lines else 0.0}


def read(path):
    """{folder: figure with its commit}; nothing where coverage was never measured."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def write(path, figures):
    """Folders that were not measured this time keep their figure, with the commit it is of."""
    known = {**read(path), **figures}
    with open(path + ".partial", "w", encoding="utf-8") as file:
        json.dump(dict(sorted(known.items())), file, indent=1)
        file.write("\n")
    os.rename(path + ".partial", path)
