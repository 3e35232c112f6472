"""A real Atoll for a test: its own state directory, its own port, root, real kernel.

Every test that creates ends by looking for traces of its Atoll (processes, mounts, cgroups,
network namespaces, loop devices, uid ranges, files): there must be none. What any of them left on
the host is looked for once, when all have ended (host_look.py).
"""
import fcntl
import glob
import http.client
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import reporting
import traces
import turns
from traces import is_zombie, processes, read  # noqa: F401

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("ATOLL_BIN", os.path.join(ROOT, "build", "release", "bin"))
IMAGE = os.environ.get("ATOLL_IMAGE", os.path.join(ROOT, "build", "images", "python"))
TOOLBOX = os.path.join(os.path.dirname(IMAGE), "toolbox")


def find_monitor(*names):
    """The folder of the first of these images that is built, else that of the first."""
    folders = [os.path.join(os.path.dirname(IMAGE), name) for name in names]
    built = [one for one in folders if os.path.exists(os.path.join(one, "image.erofs"))]
    return (built + folders)[0]


MONITORS = {"gvisor": find_monitor("gvisor", "gvisor-debian"), "microvm": find_monitor("microvm")}
# How much slower than hardware this host is: tests/guest is emulated.
SLOW = int(os.environ.get("ATOLL_TEST_SLOW", "1"))
# Machines are emulated, and none is tried with KVM, which would come and go by itself, unless this
# says that KVM works here.
KVM = os.environ.get("ATOLL_TEST_KVM") == "1"
MOST_IDLE = 30.0  # seconds in which a connection is used again; after 75 the server closes it


def wait_for(what, condition, seconds=60.0):
    seconds *= SLOW
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {seconds} s in vain for {what}")


def pool_size(directory):
    """A pool takes its room from the start, and many tests run side by side."""
    space = os.statvfs(directory)
    return str(min(4 << 30, space.f_bavail * space.f_frsize // 4))


def lock_holder(path):
    """The pid that holds the POSIX lock on a file."""
    asked = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        with open(path) as file:
            kind, _, _, _, pid = struct.unpack("hhqqi", fcntl.fcntl(file, fcntl.F_GETLK, asked))
    except OSError:
        return None
    return pid if kind != fcntl.F_UNLCK else None


def inventory():
    """What a leak would change, on the whole host: of tests that run alone (main)."""
    return {kind: len(entries) for kind, entries in traces.of_host().items()}


def settled(take=inventory):
    """Two equal ones in a row: what others are about to take away must not count as ours."""
    last = take()

    def is_settled():
        nonlocal last
        time.sleep(0.3)
        before, last = last, take()
        return before == last
    wait_for("the host to be still", is_settled)
    return last


def wait_until_as(before, take=inventory):
    """Until the host is as it was; zombies of others may have been reaped meanwhile."""
    def restored():
        after = take()
        return after == {**before, "zombies": min(after["zombies"], before["zombies"])}
    try:
        wait_for("the host to be as before", restored)
    except AssertionError:
        raise AssertionError(f"left behind (never retried): before {before}, after {take()}")


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)


class Atoll:
    used_at = 0.0  # when the connection was, last

    def __init__(self, directory=None):
        self.directory = directory or tempfile.mkdtemp(prefix="atoll-system-")
        os.chmod(self.directory, 0o755)
        self.run_directory = os.path.join(self.directory, "run")
        self.connection = None

    def cli(self, *arguments, check=True, **options):
        return self.run_cli(os.path.join(BIN, "atoll"), arguments, check, options)

    def run_cli(self, program, arguments, check, options):
        command = [program, "--state-dir", self.directory, *arguments]
        done = subprocess.run(command, capture_output=True, timeout=120, **options)
        if check and done.returncode != 0:
            raise AssertionError(f"{command} ended with {done.returncode}: {done.stderr.decode()}")
        return done

    def up(self, *arguments, pool=False, toolbox=False):
        """Without a warm pool, whose isolates come and go by themselves, unless it is wanted."""
        if not pool:
            arguments = ("--no-warm-pool", *arguments)
        # The host is shared: what others on it make the kernel keep is not this Atoll's to judge.
        if "--kernel-memory-growth" not in arguments:
            arguments = ("--kernel-memory-growth", str(1 << 40), *arguments)
        if "--pool-size" not in arguments:
            arguments = ("--pool-size", pool_size(self.directory), *arguments)
        if "--kvm-trial" not in arguments:
            arguments = ("--kvm-trial", str(8 * SLOW if KVM else 0), *arguments)
        if not os.path.isdir(os.path.join(self.directory, "templates", "python")):
            with tempfile.TemporaryDirectory() as directory:
                self.cli("template", "add", self.with_steady_pool(directory) if pool else IMAGE)
        if toolbox:
            self.cli("template", "add", TOOLBOX)
        self.cli("up", "--detach", "--listen", "127.0.0.1:0", *arguments)
        return self

    @staticmethod
    def with_manifest(directory, change):
        """The image with another manifest, which `change` makes of its own."""
        for name in ("digest", "image.erofs"):
            os.symlink(os.path.join(IMAGE, name), os.path.join(directory, name))
        manifest = read(os.path.join(IMAGE, "template.toml"))
        changed = change(manifest)
        assert changed != manifest
        with open(os.path.join(directory, "template.toml"), "w") as file:
            file.write(changed)
        return directory

    @classmethod
    def with_steady_pool(cls, directory):
        """The image with a pool that has the same size however much is asked for."""
        return cls.with_manifest(directory, lambda manifest: manifest.replace(
            "\nwarm = 4\n", "\nwarm = 4\nmax = 4\n"))

    def add_starting(self, name, ready):
        """A template that starts a program in each sandbox, which is ready when that succeeds."""
        start = f"\n[start]\ncommand = 'sleep 1000'\nready = '{ready}'\nready_timeout = '5m'\n"
        with tempfile.TemporaryDirectory() as directory:
            self.cli("template", "add", self.with_manifest(
                directory, lambda manifest: manifest.replace('"python"', f'"{name}"', 1) + start))

    def down(self):
        self.close()
        self.cli("down")

    def destroy(self):
        """Also looks for what is still there of it."""
        self.down()
        self.check_gone()
        shutil.rmtree(self.directory)

    def traces(self):
        found = traces.of_atoll(self.directory)
        return {kind: entries for kind, entries in found.items() if entries}

    def check_gone(self, seconds=60.0):
        try:
            wait_for("nothing to be there of this Atoll", lambda: not self.traces(), seconds)
        except AssertionError:
            left = self.traces()
            if left:
                raise AssertionError(f"left behind (never retried): {left}") from None

    def inventory(self):
        """How much of each kind there is, with all that is mounted for the warden."""
        found = {kind: len(entries) for kind, entries in traces.of_atoll(self.directory).items()}
        mounted = len(read(f"/proc/{self.warden_pid}/mountinfo").splitlines())
        return {**found, "mounts": mounted}

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None

    @property
    def address(self):
        return read(os.path.join(self.run_directory, "daemon", "address")).strip()

    @property
    def key(self):
        return read(os.path.join(self.directory, "daemon", "local.key")).strip()

    def groups(self, pattern):
        """Of its sandboxes, in all hierarchies: "*/run" is of each."""
        own = f"/sys/fs/cgroup/**/atoll/{traces.run_tag(self.run_directory)}/{pattern}"
        return glob.glob(own, recursive=True)

    @property
    def daemon_pid(self):
        return lock_holder(os.path.join(self.run_directory, "daemon", "atolld.lock"))

    @property
    def warden_pid(self):
        return lock_holder(os.path.join(self.run_directory, "warden.lock"))

    @property
    def supervisor_pid(self):
        return lock_holder(os.path.join(self.directory, "supervisor.lock"))

    @staticmethod
    def agent_pid(sandbox):
        pattern = f"/sys/fs/cgroup/**/atoll/*/{sandbox}/agent/cgroup.procs"
        return int(read(glob.glob(pattern, recursive=True)[0]).split()[0])

    def fds(self):
        return {name: len(os.listdir(f"/proc/{pid}/fd"))
                for name, pid in (("atolld", self.daemon_pid), ("warden", self.warden_pid))}

    @property
    def pool(self):
        """Where layers are, in the mounts of the warden."""
        return f"/proc/{self.warden_pid}/root{self.run_directory}/pool"

    def subvolumes(self):
        return sorted(os.listdir(self.pool))

    def request(self, method, path, body=None, key=None, headers=None):
        """One request on a kept connection; one that broke, or that the server may be about to
        close because it was idle, is made anew."""
        sent = {"Authorization": f"Bearer {key or self.key}", **(headers or {})}
        data = None
        if body is not None:
            data = body if isinstance(body, (bytes, str)) else json.dumps(body)
            sent.setdefault("Content-Type", "application/json")
        if time.monotonic() - self.used_at > MOST_IDLE:
            self.close()
        if self.connection is None:
            host, port = self.address.rsplit(":", 1)
            self.connection = http.client.HTTPConnection(host, int(port), timeout=120)
        try:
            try:
                self.connection.request(method, path, data, sent)
            except (BrokenPipeError, ConnectionResetError):
                if not data or self.connection.sock is None:
                    raise
                # A refusal may come before the whole body was read: it is there to be read.
            response = self.connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
            self.used_at = time.monotonic()
            return answer
        except (OSError, http.client.HTTPException):
            self.close()
            raise

    def try_request(self, *arguments, **options):
        try:
            return self.request(*arguments, **options)
        except (OSError, ValueError, http.client.HTTPException):
            return Answer(0, {}, b"")

    def wait_ready(self):
        def ready():
            return self.try_request("GET", "/readyz").status == 200
        wait_for("Atoll to be ready", ready)

    def create(self, **fields):
        answer = self.request("POST", "/v1/sandboxes", {"template": "python", **fields})
        assert answer.status == 201, answer.body
        return answer.json

    def execute(self, sandbox, cmd, **fields):
        body = {"cmd": cmd, "wait": True, **fields}
        answer = self.request("POST", f"/v1/sandboxes/{sandbox}/execs", body)
        assert answer.status == 200, answer.body
        return answer.json

    def python(self, sandbox, code, **fields):
        return self.execute(sandbox, ["python3", "-c", code], **fields)

    def start(self, sandbox, cmd, **fields):
        answer = self.request("POST", f"/v1/sandboxes/{sandbox}/execs", {"cmd": cmd, **fields})
        assert answer.status == 202, answer.body
        return answer.json

    def show_exec(self, sandbox, exec_id):
        answer = self.request("GET", f"/v1/sandboxes/{sandbox}/execs/{exec_id}")
        assert answer.status == 200, answer.body
        return answer.json

    def output(self, sandbox, exec_id, stream="stdout"):
        path = f"/v1/sandboxes/{sandbox}/execs/{exec_id}/output?stream={stream}"
        answer = self.request("GET", path)
        assert answer.status == 200, answer.body
        return answer.body

    def wait_ended(self, sandbox, exec_id, seconds=60):
        def ended():
            answer = self.try_request("GET", f"/v1/sandboxes/{sandbox}/execs/{exec_id}")
            return answer.status == 200 and answer.json["state"] == "ended" and answer.json
        return wait_for(f"{exec_id} to end", ended, seconds)

    def delete(self, sandbox):
        """Also while the warden is being restarted, which is a 503 that asks for another try."""
        def deleted():
            answer = self.request("DELETE", f"/v1/sandboxes/{sandbox}")
            assert answer.status in (204, 503), answer.body
            return answer.status == 204
        wait_for("the delete to be done", deleted)


class SystemTest(unittest.TestCase):
    """One Atoll for the tests of a class, of which nothing may be there after it. Classes of a file
    that are `shared` and start it alike have one for all of them, each without sandboxes of the
    one before."""
    atoll: Atoll
    pool = False
    toolbox = False
    shared = False

    @classmethod
    def up_options(cls):
        return ()

    @classmethod
    def setUpClass(cls):
        kind = (cls.up_options(), cls.pool, cls.toolbox)
        if cls.shared and Kept.kind == kind:
            cls.atoll = Kept.atoll
            return
        Kept.end()
        cls.atoll = Atoll().up(*cls.up_options(), pool=cls.pool, toolbox=cls.toolbox)
        if cls.shared:
            Kept.kind, Kept.atoll = kind, cls.atoll
            unittest.addModuleCleanup(Kept.end)

    @classmethod
    def tearDownClass(cls):
        if Kept.atoll is not cls.atoll:
            destroy(cls.atoll)
            return
        for left in cls.atoll.request("GET", "/v1/sandboxes?limit=1000").json["sandboxes"]:
            cls.atoll.delete(left["id"])


class Kept:
    """The Atoll of the classes that share one."""
    kind, atoll = None, None

    @classmethod
    def end(cls):
        kept, cls.kind, cls.atoll = cls.atoll, None, None
        if kept:
            destroy(kept)


def destroy(atoll):
    atoll.destroy()
    assert not os.path.exists(atoll.directory)


class ImageTest(SystemTest):
    """Of a template whose image not every run of the tests builds: skipped then, with a word."""
    template = ""

    @classmethod
    def setUpClass(cls):
        image = os.path.join(os.path.dirname(IMAGE), cls.template)
        if not os.path.exists(os.path.join(image, "image.erofs")):
            reason = f"the image of {cls.template} is not built: make images IMAGES={cls.template}"
            print(f"SKIPPED: {reason}", flush=True)
            raise unittest.SkipTest(reason)
        super().setUpClass()
        if cls.template != "python":
            cls.atoll.cli("template", "add", image)

    def held_by(self, box):
        """All that is there of a sandbox, but for its row and its logs."""
        layer = [name for name in self.atoll.subvolumes() if box in name]
        groups = glob.glob(f"/sys/fs/cgroup/**/atoll/*/{box}", recursive=True)
        run = [os.path.join(self.atoll.run_directory, part, box) for part in ("agents", "isolates")]
        return groups + layer + [path for path in run if os.path.exists(path)]

    def check_killed(self, box, pid):
        """kill -9 of what runs it: its execs end and nothing is left, within a second where nothing
        else keeps the host busy."""
        started = [self.atoll.start(box, ["sleep", "60"])["id"] for _ in range(3)]
        self.assertGreaterEqual(len(self.held_by(box)), 4)
        begin = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        for each in started:
            self.assertEqual(self.atoll.wait_ended(box, each)["verdict"], "sandbox_gone")
        ended = time.monotonic() - begin
        wait_for("all of it to go", lambda: not self.held_by(box))
        cleaned = time.monotonic() - begin
        print(f"execs ended after {ended:.2f} s, all was gone after {cleaned:.2f} s", flush=True)
        self.assertEqual(self.atoll.request("GET", f"/v1/sandboxes/{box}").json["state"], "failed")
        self.atoll.delete(box)
        if os.environ.get("ATOLL_TEST_LONG"):
            self.assertLess(cleaned, 1.0)


def main(alone=False):
    """Alone: no tests of others run meanwhile, on the whole host (turns.py). The long tests are,
    because they have limits of time."""
    if os.geteuid() != 0:
        print("SKIPPED: system tests need root, because they build real isolates")
        sys.exit(77)
    turn = turns.take_turn(alone or bool(os.environ.get("ATOLL_TEST_LONG")))
    if not os.path.exists(os.path.join(IMAGE, "image.erofs")):
        print(f"FAILED: there is no image in {IMAGE}; `make test` builds it")
        sys.exit(1)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        reporting.main()
    finally:
        turn.close()
