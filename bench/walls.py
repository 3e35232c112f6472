"""One row per wall: what a start, an exec, a system call, a fork, the network and the disk cost
behind each that this host offers, and next to it the same programs by others."""

import http.client
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import atoll
import measures
import peers
from report import Row

WALLS = {"jail": 30, "gvisor": 15, "microvm": 9}  # tries
IDLE = {"jail": 40, "gvisor": 10, "microvm": 6}  # alive at once
POOL = 1
AT_REST = 1  # seconds, after which one of the pool stands still
INSIDE = Path(__file__).with_name("inside.py").read_text()
SERVER = "import http.server as h, socketserver as s; s.TCPServer.allow_reuse_address = True; " \
         "s.TCPServer(('127.0.0.1', 8000), h.SimpleHTTPRequestHandler).serve_forever()"
PATIENCE = 120
UNITS = {"syscall": ("µs", 1), "fork": ("ms", 1000), "loopback": ("µs", 1), "disk": ("ms", 1000),
         "files": ("ms", 1000)}


class Client:
    """Of one Atoll, on one connection."""

    def __init__(self, running):
        self.key = running.key
        self.connection = http.client.HTTPConnection(running.url.removeprefix("http://"),
                                                     timeout=PATIENCE)

    def call(self, method, path, body=None, wanted=(200, 201, 202, 204)):
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        self.connection.request(method, path, json.dumps(body) if body is not None else None,
                                headers)
        response = self.connection.getresponse()
        text = response.read()
        if response.status not in wanted:
            raise RuntimeError(f"{method} {path}: {response.status} {text.decode()}")
        return response.status, text

    def create(self, template):
        return json.loads(self.call("POST", "/v1/sandboxes", {"template": template})[1])

    def execute(self, box, command, wait=True):
        done = json.loads(self.call("POST", f"/v1/sandboxes/{box}/execs",
                                    {"cmd": command, "wait": wait})[1])
        if wait and done["verdict"] != "ok":
            raise RuntimeError(f"{command[0]} ended as {done['verdict']}: {done['stderr']}")
        return done

    def follow(self, box, command):
        """When the first output came, and when the end."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json",
                   "Accept": "text/event-stream"}
        self.connection.request("POST", f"/v1/sandboxes/{box}/execs",
                                json.dumps({"cmd": command}), headers)
        times = {}
        for line in self.connection.getresponse():
            times.setdefault(line.strip(), time.perf_counter())
        return times[b"event: stdout"], times[b"event: exit"]

    def delete(self, box):
        self.call("DELETE", f"/v1/sandboxes/{box}")


def timed(function):
    begin = time.perf_counter()
    function()
    return (time.perf_counter() - begin) * 1000


def with_floor(image, wall, directory):
    """The image as a template whose floor is the wall, with a pool that has always one size."""
    for name in ("digest", "image.erofs"):
        os.symlink((image.parent / name).resolve(), Path(directory, name))
    manifest = (image.parent / "template.toml").read_text()
    for old, new in ((f'name = "{image.parent.name}"', f'name = "{wall}-floor"'),
                     ('isolation = "jail"', f'isolation = "{wall}"'),
                     ("\nwarm = 4\n", f"\nwarm = {POOL}\nmax = {POOL}\n")):
        if old not in manifest:
            raise RuntimeError(f"{image.parent}/template.toml has no {old}")
        manifest = manifest.replace(old, new, 1)
    Path(directory, "template.toml").write_text(manifest)
    return directory


def add_templates(running, image, wall):
    if wall != "jail":
        running.cli("template", "add", image.parent.parent / wall)
    with tempfile.TemporaryDirectory() as directory:
        running.cli("template", "add", with_floor(image, wall, directory))


def measure_pool(client, wall, tries, running):
    """Create and print(1): one of the pool, and one that is made while it is empty."""
    found = {measure: [] for measure in (measures.WALL_POOL, measures.WALL_POOL_FIRST,
                                         measures.WALL_RESTORED, measures.WALL_RESTORED_FIRST)}
    for _ in range(tries):
        wait_full(running, POOL)
        boxes = []
        for whole, part, pooled in ((measures.WALL_POOL, measures.WALL_POOL_FIRST, True),
                                    (measures.WALL_RESTORED, measures.WALL_RESTORED_FIRST, False)):
            begin = time.perf_counter()
            made = client.create(f"{wall}-floor")
            boxes.append(made["id"])
            first, end = client.follow(made["id"], peers.PYTHON)
            if made["timings"]["from_pool"] == pooled and made["timings"]["from_zygote"]:
                found[whole].append((end - begin) * 1000)
                found[part].append((first - begin) * 1000)
        for box in boxes:
            client.delete(box)
    return [Row(measure, wall, samples, note=f"{len(samples)} of {tries}")
            for measure, samples in found.items()]


def measure_memory(client, wall, running):
    """The fall of MemAvailable over some that do nothing, divided."""
    wait_full(running, POOL)
    before, boxes = atoll.settled_available_kib(), []
    for _ in range(IDLE[wall]):
        wait_full(running, POOL)
        boxes.append(client.create(f"{wall}-floor")["id"])
    wait_full(running, POOL)
    each = (before - atoll.settled_available_kib()) / 1024 / len(boxes)
    for box in boxes:
        client.delete(box)
    return [Row(measures.WALL_IDLE, wall, value=each, unit="MiB", note=f"{len(boxes)} alive")]


def wait_full(running, size):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        time.sleep(0.5)  # also, so that what was removed is gone
        if running.pool_size() >= size:
            time.sleep(AT_REST)
            return
    raise RuntimeError("the pool does not fill")


def measure_start(client, wall, tries):
    samples = []
    for _ in range(tries):
        made = {}
        samples.append(timed(lambda made=made: made.update(client.create(f"{wall}-floor"))))
        client.delete(made["id"])
    return [Row(measures.WALL_START, wall, samples)]


def wait_for_server(client, path):
    for _ in range(600):
        if client.call("GET", path, wanted=(200, 404, 502, 503))[0] == 200:
            return
        time.sleep(0.05)
    raise RuntimeError("the server inside does not answer")


def measure_inside(client, wall, tries):
    box = client.create(f"{wall}-floor")["id"]
    execs = [timed(lambda: client.execute(box, ["/bin/true"])) for _ in range(2 * tries)]
    rows = [Row(measures.WALL_EXEC, wall, execs[2:])]
    shown = client.execute(box, ["python3", "-c", INSIDE, "/tmp/bench"])["stdout"]
    rows += inside_rows(wall, json.loads(shown))
    client.execute(box, ["python3", "-c", SERVER], wait=False)
    path = f"/v1/sandboxes/{box}/ports/8000/"
    wait_for_server(client, path)
    asked = [timed(lambda: client.call("GET", path)) for _ in range(2 * tries)]
    rows.append(Row(measures.WALL_PORT, wall, asked[2:]))
    client.delete(box)
    return rows


def inside_rows(who, figures, left_out=()):
    found = []
    for name, value in figures.items():
        unit, divisor = UNITS[name]
        if name not in left_out:
            found.append(Row(measures.WALL_INSIDE[name], who, value=value / divisor, unit=unit))
    return found


def measure_wall(arguments, wall):
    tries = WALLS[wall]
    rows = []
    with atoll.running(arguments, "--no-warm-pool") as running:
        add_templates(running, arguments.image, wall)
        client = Client(running)
        rows += measure_start(client, wall, tries)
        rows += measure_inside(client, wall, tries)
    with atoll.running(arguments, template=False) as running:
        add_templates(running, arguments.image, wall)
        rows += measure_pool(Client(running), wall, tries, running)
        rows += measure_memory(Client(running), wall, running)
    return rows


def measure(arguments):
    rows = []
    for wall in WALLS:
        image = arguments.image.parent.parent / wall / "image.erofs"
        if wall != "jail" and not image.exists():
            rows.append(Row(measures.WALL_START, wall, error=f"make images IMAGES={wall}"))
            continue
        atoll.say(f"wall {wall} ...")
        try:
            rows += measure_wall(arguments, wall)
        except (RuntimeError, subprocess.CalledProcessError, OSError) as error:
            rows.append(Row(measures.WALL_START, wall, error=str(error)))
    return rows


def run_once(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return None, lines[-1]
    return json.loads(done.stdout), ""


def measure_peers(job):
    """The same program by others; their /tmp is memory, so nothing is said of their disk."""
    command = ["python3", "-c", INSIDE, "/tmp/bench"]
    found = {}
    if shutil.which("bwrap"):
        found["bwrap"] = run_once(peers.bubblewrap(job.root, command))
    for runtime in ("crun", "runc", "runsc"):
        if shutil.which(runtime):
            found[runtime] = run_oci(runtime, job, command)
    rows = []
    for who, (figures, error) in found.items():
        if figures is None:
            rows.append(Row(measures.WALL_INSIDE["syscall"], who, error=error))
        else:
            rows += inside_rows(who, figures, ("disk", "files"))
    return rows


def run_oci(runtime, job, command):
    bundle = job.work / f"{runtime}-inside"
    peers.write_bundle(bundle, job.root, command, f"/{job.token}-{runtime}-inside")
    first = ""
    for number, (options, wrapper, _) in enumerate(peers.attempts(runtime)):
        start = [*wrapper, runtime, "--root", str(bundle / "state"), *options, "run", "--bundle",
                 str(bundle), f"{job.token}-inside-{number}"]
        figures, error = run_once(start)
        if figures:
            return figures, ""
        first = first or error
    return None, first
