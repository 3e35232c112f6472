"""E2B's own clients, as their registries have them: every version is pinned here, and they are
installed once beneath build/e2b. Where a registry or a program is missing the test says so and is
skipped, not passed."""
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INSTALLED = os.path.join(ROOT, "build", "e2b")
OLDEST_NODE = (20, 18, 1)  # "engines" of the packages


def skip(reason):
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(77)


def digest_of(*names):
    digest = hashlib.sha256()
    for name in names:
        with open(os.path.join(HERE, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def install(directory, digest, commands):
    """Runs the commands in a fresh directory, unless that was done for the same versions. One file
    of tests at a time: the others find what it has installed."""
    os.makedirs(INSTALLED, exist_ok=True)
    with open(directory + ".lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        install_in_turn(directory, digest, commands)


def install_in_turn(directory, digest, commands):
    stamp = os.path.join(directory, "installed")
    if os.path.exists(stamp) and open(stamp).read() == digest:
        return
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    for command in commands:
        done = subprocess.run(command, cwd=directory, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            last = done.stdout.decode(errors="replace").strip().splitlines()[-1:]
            shutil.rmtree(directory, ignore_errors=True)
            skip(f"the clients cannot be installed: {command[0]} said: {''.join(last)}")
    with open(stamp, "w") as file:
        file.write(digest)


def enter_python():
    """Goes on in an interpreter that has the packages e2b and e2b-code-interpreter."""
    if os.environ.get("ATOLL_E2B_PYTHON") == sys.executable:
        return
    directory = os.path.join(INSTALLED, "python")
    requirements = os.path.join(HERE, "requirements.txt")
    pip = [os.path.join("venv", "bin", "pip"), "install", "--quiet", "--no-deps",
           "--disable-pip-version-check", "--requirement", requirements]
    install(directory, digest_of("requirements.txt"),
            [[sys.executable, "-m", "venv", "venv"], pip])
    python = os.path.join(directory, "venv", "bin", "python")
    environment = dict(os.environ, ATOLL_E2B_PYTHON=python)
    os.execve(python, [python, *sys.argv], environment)


def node_directory():
    """Where the packages e2b and @e2b/code-interpreter are."""
    if not shutil.which("node") or not shutil.which("npm"):
        skip("there is no Node.js with npm on this machine")
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    version = tuple(int(part) for part in re.findall(r"\d+", said)[:3])
    if version < OLDEST_NODE or version[0] == 21:
        skip(f"the clients need Node.js 20.18.1 or 22, here is {said.strip()}")
    directory = os.path.join(INSTALLED, "node")
    files = [os.path.join(HERE, name) for name in ("package.json", "package-lock.json")]
    install(directory, digest_of("package.json", "package-lock.json"),
            [["cp", *files, "."], ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]])
    return directory
