"""tests/long.tsv: which long tests have passed, when, where and on which sources.

One row for each `make test-long` that passed: commit, date, host, parts ("all" or names of PARTS),
counts, and the git trees of the folders that the isolation of a sandbox depends on. `make test`
says how many commits ago the last whole run was. It fails when that is too long ago, and when such
a folder has another tree than the last long run of its part had.
"""

import datetime
import os
import platform
import subprocess

MOST_COMMITS = 60
HEAD = "commit\tdate\thost\tparts\tpassed\tfailed\tskipped\ttrees"
ALL = "all"

# The folders of each part, and which tests of ctest belong to it.
PARTS = {
    "agent": (("src/agent",),
              r"^(agent|sudo|conformance|chaos)$|^(agent|file|passwd|relay|passage)_.*_long$|"
              r"^system_(abuse|contexts|crash|exec|files|leak|processes|selftest|stream|sudo|"
              r"upgrade|warm|zygote)$"),
    "warden": (("src/warden", "src/linux"),
               r"^(warden|linux|conformance|chaos|guest)$|^warden_.*_long$|"
               r"^system_(crash|leak|names|receipt|selftest|state|upgrade|volumes)$"),
    "microvm": (("src/microvm", "templates/microvm"),
                r"^(microvm|conformance|guest_kvm)$|"
                r"^system_(hardware|hostile_guests|microvm|selftest|wall_.*)$"),
    "gvisor": (("src/gvisor", "templates/gvisor", "templates/gvisor-debian"),
               r"^(gvisor|conformance)$|^system_(gvisor|hostile_guests|selftest|wall_.*)$"),
    "egress": (("src/egress",),
               r"^egress$|^(client_hello|dns|egress|proxy|request)_.*_long$|"
               r"^system_(egress.*|wall_egress|websearch)$"),
}


def git(root, *words):
    done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def trees(root):
    """{folder: the first part of its tree's hash} of what is committed."""
    folders = sorted(folder for folders, _ in PARTS.values() for folder in folders)
    found = {folder: git(root, "rev-parse", f"HEAD:{folder}") for folder in folders}
    return {folder: tree[:12] for folder, tree in found.items() if tree}


def read(path):
    """Newest last."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except FileNotFoundError:
        return None
    if lines[:1] != [HEAD]:
        raise ValueError(f"{path} does not begin with: {HEAD}")
    return [dict(zip(HEAD.split("\t"), line.split("\t"))) for line in lines[1:]]


def tests_of(parts):
    """One regular expression for ctest."""
    return "|".join(PARTS[part][1] for part in parts)


def add(path, root, parts, total):
    """Why it could not be written down, or None."""
    if git(root, "status", "--porcelain"):
        return "there are changes that are not committed"
    known = trees(root)
    if not known:
        return "this is no checkout of git"
    row = [git(root, "rev-parse", "--short=12", "HEAD"), datetime.date.today().isoformat(),
           platform.node(), ",".join(parts) or ALL, str(total["passed"]), str(total["failed"]),
           str(total["skipped"]), " ".join(f"{name}={tree}" for name, tree in known.items())]
    is_new = not os.path.exists(path)
    with open(path, "a", encoding="utf-8") as file:
        file.write((HEAD + "\n" if is_new else "") + "\t".join(row) + "\n")
    return None


def problems(rows, root):
    """What keeps a change from landing until long tests have passed."""
    whole = [row for row in rows if row["parts"] == ALL]
    if not whole:
        yield "no whole run of make test-long is in tests/long.tsv"
        return
    since = commits_since(whole[-1], root)
    if since is not None and since > MOST_COMMITS:
        yield f"the last whole run of make test-long is {since} commits ago, over {MOST_COMMITS}"
    now = trees(root)
    for part, (folders, _) in PARTS.items():
        runs = [row for row in rows if row["parts"] == ALL or part in row["parts"].split(",")]
        tried = dict(one.split("=") for one in runs[-1]["trees"].split())
        changed = [folder for folder in folders if now.get(folder) != tried.get(folder)]
        if now and changed:
            yield (f"{', '.join(changed)} changed after the last long run of it: "
                   f"make test-long PARTS={part}")


def commits_since(row, root):
    """None where the commit is not known here, as after a rebase."""
    count = git(root, "rev-list", "--count", f"{row['commit']}..HEAD")
    return int(count) if count else None


def describe(rows, root):
    whole = [row for row in rows or () if row["parts"] == ALL]
    if not whole:
        return "the long tests have not been run as a whole yet"
    since = commits_since(whole[-1], root)
    ago = f"{since} commits ago" if since is not None else f"on {whole[-1]['date']}"
    return f"the long tests last passed as a whole {ago}, on {whole[-1]['host']}"
