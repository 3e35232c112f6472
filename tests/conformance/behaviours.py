"""What a sandbox does, whatever the wall around it: one function each, named as docs/isolation.md
names it."""
import io
import json
import os
import tarfile

import atoll

SERVER = "import http.server as h; h.HTTPServer(('127.0.0.1', 8000), h.SimpleHTTPRequestHandler)" \
         ".serve_forever()"
BOMB = "import os\nwhile True:\n  try: os.fork()\n  except OSError: raise SystemExit(7)"
MANY_CHILDREN = "import os, time\nfor i in range(100):\n  try:\n    if os.fork() == 0: " \
                "time.sleep(60)\n  except OSError: time.sleep(0.5); os._exit(7)"
GROWING = "import time\nkept = []\nwhile True: kept.append(bytearray(4 << 20)); time.sleep(0.05)"
LOOKUP = "import socket; print(socket.gethostbyname('{}'))"
BEHAVIOURS = []


def behaviour(name):
    def add(function):
        BEHAVIOURS.append((name, function))
        return function
    return add


class Box:
    """A sandbox behind the wall that is tried."""

    def __init__(self, service, isolation, **fields):
        self.atoll, self.isolation = service, isolation
        self.shown = service.create(isolation=isolation, **fields)
        self.id = self.shown["id"]
        self.path = f"/v1/sandboxes/{self.id}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.atoll.delete(self.id)

    def run(self, shell, **fields):
        return self.atoll.execute(self.id, ["sh", "-c", shell], **fields)

    def python(self, code, **fields):
        return self.atoll.python(self.id, code, **fields)

    def processes(self):
        """How many there are inside; nothing while there is no room for one that counts them."""
        counted = self.python("import os; print(sum(n.isdigit() for n in os.listdir('/proc')))")
        return counted["stdout"].strip() if counted["verdict"] == "ok" else None

    def call(self, method, path, body=None, expect=200, **options):
        answer = self.atoll.request(method, self.path + path, body, **options)
        assert answer.status == expect, (path, answer.status, answer.body)
        return answer


def equal(seen, wanted):
    assert seen == wanted, f"{seen!r} instead of {wanted!r}"


@behaviour("says which wall it has, is listed, and is gone when it is deleted")
def lifecycle(service, isolation):
    with Box(service, isolation) as box:
        equal(box.shown["isolation"], isolation)
        equal(box.call("GET", "").json["state"], "running")
        listed = service.request("GET", "/v1/sandboxes").json["sandboxes"]
        equal([each["id"] for each in listed], [box.id])
    equal(service.request("GET", box.path).status, 404)


@behaviour("runs programs: both streams, exit code, variables, directory, user")
def execs(service, isolation):
    with Box(service, isolation) as box:
        done = box.run("echo out; echo err >&2; echo $NAME; pwd; id -un; exit 3",
                       env={"NAME": "value"}, cwd="/tmp")
        equal(done["stdout"], "out\nvalue\n/tmp\nuser\n")
        equal((done["stderr"], done["verdict"], done["exit_code"]), ("err\n", "nonzero", 3))


@behaviour("takes input while a program runs, and its end")
def standard_input(service, isolation):
    with Box(service, isolation) as box:
        started = service.start(box.id, ["cat"], stdin_open=True)
        path = f"/execs/{started['id']}/stdin"
        raw = {"Content-Type": "application/octet-stream"}
        box.call("POST", path + "?offset=0", b"first ", headers=raw)
        box.call("POST", path + "?offset=6&eof=true", b"last", headers=raw)
        done = service.wait_ended(box.id, started["id"])
        equal((done["stdout"], done["verdict"]), ("first last", "ok"))


@behaviour("gives output again from any offset")
def offsets(service, isolation):
    with Box(service, isolation) as box:
        done = box.run("printf 0123456789")
        answer = box.call("GET", f"/execs/{done['id']}/output?stream=stdout&offset=4")
        equal(answer.body, b"456789")


@behaviour("terminals have a size that can change")
def terminals(service, isolation):
    with Box(service, isolation) as box:
        code = "import os, sys; size = os.get_terminal_size; print(os.isatty(0), size()); " \
               "sys.stdin.readline(); print(size())"
        started = service.start(box.id, ["python3", "-c", code], pty={"cols": 80, "rows": 24},
                                stdin_open=True)
        path = f"/execs/{started['id']}"

        def said():
            return b"columns=80" in service.output(box.id, started["id"])
        atoll.wait_for("the first size", said)
        box.call("POST", path + "/resize", {"cols": 100, "rows": 30}, expect=204)
        box.call("POST", path + "/stdin?offset=0", b"\n",
                 headers={"Content-Type": "application/octet-stream"})
        text = service.wait_ended(box.id, started["id"])["stdout"]
        assert "True" in text and "columns=100, lines=30" in text, text


@behaviour("verdicts: ok, nonzero, signal, killed, wall_time, cpu_time")
def verdicts(service, isolation):
    with Box(service, isolation) as box:
        equal(box.run("true")["verdict"], "ok")
        equal(box.run("false")["verdict"], "nonzero")
        equal(box.run("kill -SEGV $$")["verdict"], "signal")
        equal(box.run("sleep 60", timeout_ms=300)["verdict"], "wall_time")
        spent = box.run("while :; do :; done", limits={"cpu_time_ms": 300}, timeout_ms=60000)
        equal(spent["verdict"], "cpu_time")
        started = service.start(box.id, ["sleep", "60"])
        box.call("POST", f"/execs/{started['id']}/signal", {"signal": "KILL"}, expect=204)
        equal(service.wait_ended(box.id, started["id"])["verdict"], "killed")


@behaviour("memory, processes, disk and output are limited, and the verdict names the limit")
def limits(service, isolation):
    wanted = {"memory_bytes": 128 << 20, "pids": 32, "disk_bytes": 32 << 20,
              "output_bytes": 100000}
    with Box(service, isolation, limits=wanted) as box:
        before = box.processes()
        equal(box.python("b = bytearray(1 << 30)")["verdict"], "oom")
        equal(box.python(BOMB)["verdict"], "pids_limit")
        atoll.wait_for("the bomb to end", lambda: box.processes() == before)
        equal(box.run("head -c 64M /dev/zero > /tmp/full")["verdict"], "disk_limit")
        box.run("rm /tmp/full")
        cut = box.run("head -c 150000 /dev/zero")
        equal((cut["verdict"], cut["stdout_bytes"], cut["stdout_cut"]), ("ok", 100000, 50000))
        equal(box.run("echo well")["stdout"], "well\n")


@behaviour("a forbidden system call ends the program that made it, or is refused")
def forbidden(service, isolation):
    with Box(service, isolation) as box:
        code = "import ctypes, os; l = ctypes.CDLL(None, use_errno=True); " \
               "print(l.unshare(0x10000000), l.mount(b'x', b'/', b'tmpfs', 0, None))"
        equal(box.python(code)["stdout"], "-1 -1\n")


@behaviour("root inside owns what is inside, and nothing outside")
def root_inside(service, isolation):
    with Box(service, isolation) as box:
        done = box.run("id -u; touch /etc/made && echo made; mount -t tmpfs x /mnt || echo refused",
                       user="root")
        equal(done["stdout"], "0\nmade\nrefused\n")
        equal(box.run("sudo id -u")["stdout"], "0\n")
        assert not os.path.exists("/etc/made")


@behaviour("files: write, read a range, list, move, remove, archives both ways")
def files(service, isolation):
    raw = {"Content-Type": "application/octet-stream"}
    with Box(service, isolation) as box:
        box.call("PUT", "/files/tmp/a/b.txt", b"0123456789", expect=201, headers=raw)
        part = box.call("GET", "/files/tmp/a/b.txt", expect=206, headers={"Range": "bytes=2-4"})
        equal(part.body, b"234")
        names = [each["name"] for each in box.call("GET", "/files/tmp/a?list").json["entries"]]
        equal(names, ["b.txt"])
        box.call("POST", "/files/tmp/a/b.txt?move", {"to": "/tmp/a/c.txt"})
        equal(box.run("cat /tmp/a/c.txt")["stdout"], "0123456789")
        packed = box.call("GET", "/archive?path=/tmp/a").body
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            assert any(name.endswith("c.txt") for name in tar.getnames()), tar.getnames()
        tar_type = {"Content-Type": "application/x-tar"}
        box.call("PUT", "/archive?path=/tmp/copy", packed, headers=tar_type)
        equal(box.run("cat $(find /tmp/copy -name c.txt)")["stdout"], "0123456789")
        box.call("DELETE", "/files/tmp/a?recursive=true", expect=204)
        box.call("GET", "/files/tmp/a/c.txt", expect=404)


@behaviour("what a program leaves in /tmp/outputs is kept")
def artifacts(service, isolation):
    with Box(service, isolation) as box:
        box.run("mkdir -p /tmp/outputs; echo kept > /tmp/outputs/note.txt")
        listed = box.call("GET", "/artifacts").json["artifacts"]
        equal([each["name"] for each in listed], ["note.txt"])
        equal(box.call("GET", "/artifacts/note.txt").body, b"kept\n")


@behaviour("servers inside are listed and reached")
def ports(service, isolation):
    with Box(service, isolation) as box:
        service.start(box.id, ["python3", "-c", SERVER], timeout_ms=600000, cwd="/etc")

        def listening():
            return 8000 in [each["port"] for each in box.call("GET", "/ports").json["ports"]]
        atoll.wait_for("the server to listen", listening)
        assert b"root" in box.call("GET", "/ports/8000/passwd").body


def wait_audited(box):
    def audited():
        text = json.dumps(box.call("GET", "/egress").json)
        return "conformance.example" in text and "192.0.2.1" in text
    atoll.wait_for("both attempts in the audit", audited)


@behaviour("nothing leaves, and an attempt is in the audit")
def no_network(service, isolation):
    with Box(service, isolation) as box:
        equal(box.python(LOOKUP.format("conformance.example"))["verdict"], "nonzero")
        code = "import socket; socket.create_connection(('192.0.2.1', 80), 5)"
        equal(box.python(code)["verdict"], "nonzero")
        wait_audited(box)


@behaviour("an allowed name has an address that stands for it")
def allowed_name(service, isolation):
    with Box(service, isolation, network={"allow": ["conformance.example"]}) as box:
        address = box.python(LOOKUP.format("conformance.example"))["stdout"]
        assert address.startswith("198.18.") or address.startswith("198.19."), address
        equal(box.python(LOOKUP.format("other.example"))["verdict"], "nonzero")


@behaviour("contexts keep their state from run to run")
def contexts(service, isolation):
    with Box(service, isolation) as box:
        context = box.call("POST", "/contexts", {}, expect=201).json["id"]
        runs = f"/contexts/{context}/runs"
        box.call("POST", runs, {"code": "x = 41", "wait": True})
        done = box.call("POST", runs, {"code": "print(x + 1)", "wait": True}).json
        equal((done["verdict"], done["stdout"]), ("ok", "42\n"))


@behaviour("a receipt names the wall and is signed")
def receipts(service, isolation):
    with Box(service, isolation) as box:
        receipt = box.call("GET", "/receipt")
        equal(receipt.json["receipt"]["driver"], isolation)
        verified = service.cli("receipt", "verify", "-", input=receipt.body)
        equal(verified.returncode, 0)


@behaviour("stands still when it is paused, and goes on with its processes")
def pauses(service, isolation):
    with Box(service, isolation) as box:
        code = "import time\nwhile True: print(1, flush=True); time.sleep(0.01)"
        started = service.start(box.id, ["python3", "-c", code])["id"]
        atoll.wait_for("output", lambda: service.output(box.id, started))
        equal(box.call("POST", "/pause").json["state"], "paused")
        # What was printed before may still be under way.
        printed = atoll.settled(lambda: len(service.output(box.id, started)))
        with Box(service, "jail") as other:  # in which the same program goes on meanwhile
            beside = service.start(other.id, ["python3", "-c", code])["id"]
            atoll.wait_for("output beside it", lambda: len(service.output(other.id, beside)) > 20)
        equal(len(service.output(box.id, started)), printed)
        equal(box.call("POST", "/resume").json["state"], "running")
        atoll.wait_for("more", lambda: len(service.output(box.id, started)) > printed)


@behaviour("gives its memory back when it was paused for long, and has its files after that")
def rests(service, isolation):
    with Box(service, isolation, files_only_after_ms=100) as box:
        box.run("echo kept > /home/user/note")
        box.call("POST", "/pause")
        atoll.wait_for("its memory", lambda: not box.call("GET", "").json["pause"]["memory"])
        equal(box.call("POST", "/resume").json["state"], "running")
        equal(box.run("cat /home/user/note")["stdout"], "kept\n")


@behaviour("snapshots and forks have its files, and say what they do not carry")
def snapshots(service, isolation):
    with Box(service, isolation) as box:
        box.run("echo kept > /home/user/note")
        kept = box.call("POST", "/snapshots", {}, expect=201).json["id"]
        made = service.request("POST", "/v1/sandboxes", {"snapshot": kept, "isolation": isolation})
        equal(made.status, 201)
        service.start(box.id, ["sleep", "60"])
        forked = box.call("POST", "/fork", {"count": 2}, expect=201).json
        assert forked["not_carried"], forked
        children = [made.json["id"]] + [each["id"] for each in forked["sandboxes"]]
        for child in children:
            equal(service.execute(child, ["cat", "/home/user/note"])["stdout"], "kept\n")
            service.delete(child)
        equal(service.request("DELETE", f"/v1/snapshots/{kept}").status, 204)


@behaviour("is rolled back, and the rollback is undone")
def rollback(service, isolation):
    with Box(service, isolation) as box:
        box.run("echo first > /home/user/note")
        kept = box.call("POST", "/snapshots", {}, expect=201).json["id"]
        box.run("echo second > /home/user/note")
        undo = box.call("POST", "/rollback", {"snapshot": kept}).json["undo"]
        equal(box.run("cat /home/user/note")["stdout"], "first\n")
        box.call("POST", "/rollback", {"snapshot": undo})
        equal(box.run("cat /home/user/note")["stdout"], "second\n")


@behaviour("programs go on while atolld is killed")
def restart(service, isolation):
    with Box(service, isolation) as box:
        started = service.start(box.id, ["sh", "-c", "sleep 1; echo survived"])
        os.kill(service.daemon_pid, 9)
        service.close()
        service.wait_ready()
        done = service.wait_ended(box.id, started["id"])
        equal((done["stdout"], done["verdict"]), ("survived\n", "ok"))


@behaviour("an agent that dies fails its sandbox and ends its programs")
def dead_agent(service, isolation):
    with Box(service, isolation) as box:
        started = service.start(box.id, ["sleep", "60"])
        os.kill(service.agent_pid(box.id), 9)
        equal(service.wait_ended(box.id, started["id"])["verdict"], "sandbox_gone")
        equal(box.call("GET", "").json["state"], "failed")


def refusal(box, method, path, body, field=None):
    error = box.call(method, path, body, expect=400).json["error"]
    equal((error["code"], error.get("field")), ("not_behind_this_wall", field))
    assert error["remedy"]


def late_refusal(service, isolation):
    """Without a network device connections are made inside, and reset when they turn out to be
    denied."""
    with Box(service, isolation) as box:
        equal(box.python(LOOKUP.format("conformance.example"))["verdict"], "nonzero")
        code = "import socket; s = socket.create_connection(('192.0.2.1', 80), 5); s.recv(1)"
        assert "ConnectionResetError" in box.python(code)["stderr"]
        equal(box.run("ls /sys/class/net /dev/net 2>&1; cat /proc/net/dev | grep -vc lo:")["stdout"]
              .split()[-1], "2")  # the head of the table
        wait_audited(box)


def no_rest(service, isolation):
    with Box(service, isolation) as box:
        refusal(box, "PATCH", "", {"files_only_after_ms": 1000}, "files_only_after_ms")
        refusal(box, "PATCH", "", {"files_only_under_pressure": True}, "files_only_under_pressure")
    for leave in ({"files_only_after_ms": 1000}, {"files_only_under_pressure": True}):
        answer = service.request("POST", "/v1/sandboxes", {
            "template": "python", "isolation": isolation, **leave})
        equal((answer.status, answer.json["error"]["code"]), (400, "not_behind_this_wall"))


def no_snapshots(service, isolation):
    """Debian's runsc does not write the files of its sandboxes down."""
    with Box(service, isolation) as box:
        for path, body in (("/snapshots", {}), ("/fork", {"count": 1})):
            answer = box.call("POST", path, body, expect=400)
            equal(answer.json["error"]["code"], "not_behind_this_wall")
        equal(box.run("echo well")["stdout"], "well\n")


# What a wall does not do: the word for it in docs/isolation.md, and that it is refused.
def limits_of_sentry(service, isolation):
    """A kernel that is a program cannot keep up with a bomb of forks or of memory: that may end its
    sandbox, and nothing else. The limit of memory is told even then."""
    wanted = {"memory_bytes": 256 << 20, "pids": 32, "disk_bytes": 32 << 20,
              "output_bytes": 100000}
    with Box(service, isolation, limits=wanted) as other:
        with Box(service, isolation, limits=wanted) as box:
            verdict = box.python(BOMB)["verdict"]
            assert verdict in ("pids_limit", "oom", "sandbox_gone"), verdict
        with Box(service, isolation, limits=wanted) as box:
            equal(box.python("b = bytearray(1 << 30)")["verdict"], "oom")
        equal(other.run("echo well")["stdout"], "well\n")
    with Box(service, isolation, limits=wanted) as box:  # its children live on, and count
        equal(box.python(MANY_CHILDREN)["verdict"], "pids_limit")
    with Box(service, isolation, limits=wanted) as box:
        equal(box.python(GROWING)["verdict"], "oom")
        equal(box.run("head -c 64M /dev/zero > /tmp/full")["verdict"], "disk_limit")
        box.run("rm /tmp/full")
        cut = box.run("head -c 150000 /dev/zero")
        equal((cut["verdict"], cut["stdout_bytes"], cut["stdout_cut"]), ("ok", 100000, 50000))
        equal(box.run("echo well")["stdout"], "well\n")


NOT_YET = {
    "nothing leaves, and an attempt is in the audit": ("late", late_refusal),
    "gives its memory back when it was paused for long, and has its files after that":
        ("refused", no_rest),
}
DECLARED = {
    "gvisor": NOT_YET | {
        "memory, processes, disk and output are limited, and the verdict names the limit":
            ("but bombs", limits_of_sentry),
    },
    "microvm": NOT_YET,
}
# docs/isolation.md is about the template gvisor. What gvisor-debian does not do in its place.
DECLARED_OF_DEBIAN = {
    "snapshots and forks have its files, and say what they do not carry":
        ("refused", no_snapshots),
    "is rolled back, and the rollback is undone": ("refused", no_snapshots),
}
