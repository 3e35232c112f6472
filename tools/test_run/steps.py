"""Steps of a run: each has a limit, after which it is ended and named, and a budget, which the
report compares with what it took."""

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

from test_run.machine import cpu_seconds

TAIL_LINES = 60


@dataclass
class Step:
    name: str
    limit_seconds: int  # a hang ends here
    budget_seconds: int  # on two quiet cores, with nothing cached
    seconds: float = 0.0
    cpu_seconds: float = 0.0  # of the whole machine
    outcome: str = "not run"

    def to_json(self):
        return {"name": self.name, "seconds": round(self.seconds, 1), "outcome": self.outcome,
                "cpu_seconds": round(self.cpu_seconds, 1), "budget_seconds": self.budget_seconds}


class StepFailed(Exception):
    """The step has said why."""


def say(text):
    print(f"test: {text}", file=sys.stderr, flush=True)


class Steps:
    """What has been run of a plan, in the order of its beginning. Steps may run side by side."""

    def __init__(self, logs):
        self.logs, self.steps, self.running = logs, [], set()
        self.lock = threading.Lock()
        os.makedirs(logs, exist_ok=True)

    def run(self, step, command, environment=None, shown=False):
        """The exit code. Output goes to a file, and to the terminal as well if it is `shown`."""
        with self.lock:
            self.steps.append(step)
        say(f"{step.name} …")
        begin, cpu = time.monotonic(), cpu_seconds()
        log = os.path.join(self.logs, step.name.replace(" ", "-") + ".log")
        try:
            code = self.wait(step, command, environment, log, shown)
        finally:
            step.seconds = time.monotonic() - begin
            step.cpu_seconds = cpu_seconds() - cpu
        step.outcome = "ok" if code == 0 else f"exit code {code}"
        say(f"{step.name}: {step.outcome}, {step.seconds:.0f} s")
        return code

    def wait(self, step, command, environment, log, shown):
        with open(log, "ab") as file:
            process = subprocess.Popen(
                command, env={**os.environ, **(environment or {})}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE if shown else file, stderr=subprocess.STDOUT,
                start_new_session=True)
            self.running.add(process)
            try:
                if shown:
                    threading.Thread(target=copy, args=(process.stdout, file), daemon=True).start()
                return process.wait(step.limit_seconds)
            except subprocess.TimeoutExpired:
                step.outcome = f"ended after its limit of {step.limit_seconds} s"
                say(f"{step.name}: {step.outcome}; its log is {log}")
                raise StepFailed from None
            finally:
                end_group(process)
                self.running.discard(process)

    def must(self, step, command, **options):
        """A step without which nothing that follows makes sense."""
        if self.run(step, command, **options) != 0:
            self.show_log(step)
            raise StepFailed

    def show_log(self, step):
        with open(os.path.join(self.logs, step.name.replace(" ", "-") + ".log"),
                  encoding="utf-8", errors="replace") as file:
            sys.stderr.writelines(file.readlines()[-TAIL_LINES:])
        sys.stderr.flush()

    def end_all(self):
        for process in list(self.running):
            end_group(process)


def copy(stream, file):
    for line in iter(stream.readline, b""):
        file.write(line)
        file.flush()
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()


def end_group(process):
    """What it started, too: it leads a process group of its own."""
    if process.poll() is None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
