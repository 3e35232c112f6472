"""What a test leaves to chance: it is the same for every run of one commit in `make test`, so that
who runs the tests again has the same tests; and is new each time with ATOLL_TEST_LONG=1."""
import os
import subprocess
import time

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))


def git(*arguments):
    """Empty where this is no repository."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    done = subprocess.run(command, cwd=os.path.dirname(os.path.abspath(__file__)),
                          capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def commits():
    """How many there are up to this one."""
    return int(git("rev-list", "--count", "HEAD") or 0)


def seed(variable):
    """Printed, and taken from that variable where it is set: so a failure can be tried again."""
    fixed = int(git("rev-parse", "--short=8", "HEAD") or "0", 16)
    chosen = int(os.environ.get(variable) or (time.time_ns() % 1_000_000 if LONG else fixed))
    print(f"{variable}={chosen}", flush=True)
    return chosen


def fifth(things, variable):
    """All of them with ATOLL_TEST_LONG=1; else every fifth, so that five commits in a row have had
    all. The variable names another part, from 0 to 4."""
    part = os.environ.get(variable)
    if LONG and part is None:
        return list(things)
    part = commits() % 5 if part is None else int(part)
    print(f"{variable}={part}", flush=True)
    return list(things)[part::5]
