"""Atoll's own figures: one Atoll with warm pools and one without are started for this run."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import measures
from report import Row

IDLE_SECONDS = 5
SETTLE_SECONDS = 3


def say(text):
    print(text, file=sys.stderr, flush=True)


class Running:
    """An Atoll for this run only."""

    def __init__(self, arguments, directory):
        self.build, self.directory = arguments.build, directory
        self.url = self.key = None

    def cli(self, *words):
        command = [self.build / "bin/atoll", "--state-dir", self.directory, *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def bench(self, *words):
        # The key goes by the environment: arguments can be read by every user of the machine.
        command = [self.build / "bin/atoll-bench", "--url", self.url, *map(str, words)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, ATOLL_KEY=self.key))

    def measure(self, *words):
        """The rows of these measures, by their name and number of clients."""
        bench = self.bench(*words)
        return rows_of(bench, *bench.communicate())

    def pool_size(self):
        headers = {"Authorization": f"Bearer {self.key}"}
        request = urllib.request.Request(f"{self.url}/metrics", headers=headers)
        with urllib.request.urlopen(request) as answer:
            text = answer.read().decode()
        return next(int(line.split()[1]) for line in text.splitlines()
                    if line.startswith("atoll_warm_pool_size "))

    def settle(self):
        """Until the pool has had the same size for a while."""
        last, same = None, 0
        for _ in range(60):
            size = self.pool_size()
            same = same + 1 if size == last else 0
            last = size
            if same == SETTLE_SECONDS:
                return
            time.sleep(1)
        raise RuntimeError("the pool does not come to rest")

    def daemon_pid(self):
        return json.loads(self.cli("status", "--json"))["processes"]["atolld"]["pid"]


def rows_of(bench, output, errors):
    if bench.returncode != 0:
        lines = errors.strip().splitlines() or [f"exit code {bench.returncode}"]
        raise RuntimeError(lines[-1])
    return {(row["measure"], row["clients"]): row for row in json.loads(output.splitlines()[-1])}


@contextlib.contextmanager
def running(arguments, *options, image=None, template=True):
    directory = tempfile.mkdtemp(prefix="atoll-bench-state-")
    os.chmod(directory, 0o755)
    atoll = Running(arguments, directory)
    try:
        if template:
            atoll.cli("template", "add", (image or arguments.image).parent)
        atoll.cli("up", "--detach", "--listen", "127.0.0.1:0", *options)
        atoll.url = json.loads(atoll.cli("status", "--json"))["url"]
        atoll.key = atoll.cli("key", "show-local").strip()
        atoll.settle()
        yield atoll
    finally:
        atoll.cli("down")
        shutil.rmtree(directory)


def note_of(row, pooled=True):
    count = len(row["samples_ms"])
    notes = [f"{row['from_pool'] * 100 // count} % from the pool"] if pooled and count else []
    if row["failed"]:
        notes.append(f"{row['failed']} failed: {row['failure']}")
    return ", ".join(notes)


def samples_row(measure, row, who="atoll", pooled=True):
    return Row(measure, who, row["samples_ms"], note=note_of(row, pooled))


def drift(samples):
    """p99 of the last third against that of the first."""
    third = max(1, len(samples) // 3)
    first, last = (Row("", "", part).percentile(99) for part in (samples[:third], samples[-third:]))
    return f"p99 {first:.1f} ms in the first third, {last:.1f} in the last"


def available_kib():
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1])
    raise RuntimeError("no MemAvailable")


def settled_available_kib():
    os.sync()
    time.sleep(SETTLE_SECONDS)
    return available_kib()


def measure_rest(atoll):
    """atolld that nobody asks for anything."""
    pid = atoll.daemon_pid()
    ticks = os.sysconf("SC_CLK_TCK")

    def used():
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / ticks
    before = used()
    time.sleep(IDLE_SECONDS)
    cpu = (used() - before) / IDLE_SECONDS * 100
    status = Path(f"/proc/{pid}/status").read_text()
    memory = next(int(line.split()[1]) for line in status.splitlines()
                  if line.startswith("VmRSS:")) / 1024
    return [Row(measures.REST, "atoll", value=memory, unit="MiB", note=f"{cpu:.1f} % of a core")]


def measure_idle(atoll, count, measure=measures.IDLE, template="python"):
    """The fall of MemAvailable over many sandboxes that do nothing, divided."""
    before = settled_available_kib()
    bench = atoll.bench("--measure", "idle", "--sandboxes", count, "--template", template)
    bench.stdout.readline()
    after = settled_available_kib()
    row = rows_of(bench, *bench.communicate())[("idle", count)]
    alive = len(row["samples_ms"])
    each = (before - after) / 1024 / max(1, alive)
    return [Row(measure, "atoll", value=each, unit="MiB",
                note=f"{alive} alive; {note_of(row)}")]


def measure_warm(arguments, atoll):
    clients = arguments.clients
    # Twice: the first comes out of the blue, before the second the pool has grown.
    first = atoll.measure("--sandboxes", arguments.burst, "--measure", "burst")
    found = {}
    for name in ("copies", "contexts", "execs", "runs"):
        atoll.settle()
        found |= atoll.measure("--runs", arguments.runs, "--warm-ups", arguments.warm_ups,
                               "--clients", clients, "--measure", name)
    rows = [
        samples_row(measures.COPY, found["create+run", 1], pooled=False),
        samples_row(measures.CONTEXT, found["context run", 1], pooled=False),
        samples_row(measures.PYTHON, found["run", 1]),
        samples_row(measures.many(measures.PYTHON, clients), found["run", clients]),
        samples_row(measures.TRUE, found["exec", 1], pooled=False),
        samples_row(measures.many(measures.TRUE, clients), found["exec", clients], pooled=False),
    ]
    atoll.settle()
    burst = atoll.measure("--sandboxes", arguments.burst, "--measure", "burst")
    rows.append(samples_row(measures.first_burst(arguments.burst),
                            first["burst", arguments.burst]))
    rows.append(samples_row(measures.burst(arguments.burst), burst["burst", arguments.burst]))
    atoll.settle()
    sustained = atoll.measure("--clients", 4, "--seconds", arguments.seconds,
                              "--measure", "sustained")["sustained", 4]
    note = drift(sustained["samples_ms"]) + ", " + note_of(sustained)
    rows.append(Row(measures.SUSTAINED, "atoll", per_second=sustained["per_second"], note=note))
    return rows


def measure_cold(arguments, atoll):
    found = atoll.measure("--runs", arguments.runs, "--warm-ups", arguments.warm_ups,
                          "--measure", "creates")
    return [samples_row(name, found[key, 1], "cold", pooled=False)
            for name, key in ((measures.PYTHON, "create+run"), (measures.CREATE, "create"),
                              (measures.FIRST_EXEC, "first exec"))]


def guarded(name, take):
    say(f"atoll: {name} ...")
    try:
        return take()
    except (RuntimeError, subprocess.CalledProcessError, OSError) as error:
        return [Row(name, "atoll", error=str(error))]


def measure_data(arguments):
    image = arguments.data_image
    if not image.exists():
        why = f"no image {image}; `make images` builds it"
        return [Row(measures.IDLE_DATA, "atoll", error=why)]
    with running(arguments, image=image) as atoll:
        return measure_idle(atoll, arguments.idle, measures.IDLE_DATA, image.parent.name)


def measure(arguments):
    rows = []
    with running(arguments) as atoll:
        rows += guarded(measures.REST, lambda: measure_rest(atoll))
        rows += guarded(measures.PYTHON, lambda: measure_warm(arguments, atoll))
        rows += guarded(measures.IDLE, lambda: measure_idle(atoll, arguments.idle))
    with running(arguments, "--no-warm-pool") as atoll:
        rows += guarded(measures.CREATE, lambda: measure_cold(arguments, atoll))
    rows += guarded(measures.IDLE_DATA, lambda: measure_data(arguments))
    return rows
