"""Every process of Atoll dies at every named point, and at random moments under load. Afterwards
what was acknowledged is there, what was not is whole or gone, and the host is as it was.

The points are compiled in (src/base/crash_point.h) and armed by files in <run>/crash. `make test`
takes a fifth of them, another one after each commit, and the same random moments for a commit.
"""
import collections
import os
import random
import signal
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
import atoll  # noqa: E402
import chosen  # noqa: E402

LONG = os.environ.get("ATOLL_TEST_LONG") == "1"
RANDOM_KILLS = 200 if LONG else 20
READY_SECONDS = 1.0
PART = "ATOLL_CHAOS_PART"
# What is promised to survive ten times at each point.
STATE_ROUNDS = 10 if LONG else 1
STATE_REQUESTS = ("keep", "fork", "roll_back", "store", "delete", "seal", "rest", "squeeze",
                  "keep_at_rest", "delete_at_rest")

# Where atolld dies, and the request on whose way that is, or several.
DAEMON_POINTS = {
    "create.row": "create", "create.launched": "create", "create.attached": "create",
    "create.running": "create", "create.ready": "serve", "idempotency.row": "create",
    "idempotency.made": "create", "idempotency.answer": "create",
    "exec.sent": "execute", "exec.row": "execute", "exec.output": "execute",
    "exec.acknowledged": "execute", "exec.exit": "execute", "exec.finished": "execute",
    "delete.begun": ("delete", "delete_at_rest"), "delete.removed": ("delete", "delete_at_rest"),
    "delete.logs": "delete", "delete.row": "delete", "input.taken": "feed",
    "patch.begun": "patch", "patch.limits": "patch", "patch.row": "patch",
    "adopt.row": "restart", "adopt.done": "restart",
    "pause.row": "pause", "pause.frozen": "pause", "resume.thawed": "pause", "resume.row": "pause",
    "release.row": "rest", "release.done": "rest",
    "wake.row": "rest", "wake.launched": "rest", "wake.done": "rest",
    "pressure.released": "squeeze",
    "snapshot.cut": ("keep", "keep_at_rest"), "snapshot.row": ("keep", "keep_at_rest"),
    "snapshot.unlisted": "keep",
    "fork.cut": ("fork", "keep_at_rest"), "fork.made": "fork", "fork.done": "fork",
    "rollback.kept": "roll_back", "rollback.row": "roll_back", "rollback.removed": "roll_back",
    "rollback.done": "roll_back",
    "volume.made": "store", "volume.row": "store", "volume.unlisted": "store",
    "seal.part": "seal", "seal.signed": "seal", "seal.stored": "seal", "seal.row": "seal",
    "import.part": "seal", "import.stored": "seal", "import.made": "seal",
    "import.unpacked": "seal", "import.kept": "seal", "collect.done": "seal",
}
# Where the warden dies. Launches and removals are children of it: launch.… and remove.… end one of
# those, the others the warden itself.
LAUNCH_STEPS = ["record", "uid_range", "pool", "layer", "image", "cgroup", "listener", "clone",
                "uid_map", "idmap", "spawner", "agent", "receipt"]
WARDEN_POINTS = {f"launch.{step}": "create" for step in LAUNCH_STEPS} | {
    "request.received": "create", "helper.started": "create", "helper.ended": "create",
    "remove.begun": "delete", "remove.groups": "delete", "remove.layer": "delete",
    "remove.uids": "delete",
    "freeze.note": "pause", "freeze.group": "pause", "thaw.group": "pause",
    "release.layer": "rest",
    "snapshot.frozen": ("keep", "keep_at_rest"), "snapshot.cut": ("keep", "keep_at_rest"),
    "snapshot.remove": "keep",
    "volume.create": "store", "volume.remove": "store",
}
# Where an agent dies; most are frames that it was sent.
AGENT_POINTS = {
    "hello": "create", "welcome": "create", "reap": "create",
    "start": "execute", "launched": "execute", "report": "execute", "acknowledge": "execute",
    "exit_acknowledge": "execute",
    "input": "feed", "input_end": "feed", "signal": "signal", "resize": "terminal",
    "open_files": "upload", "channel_data": "upload",
    "channel_credit": "download", "channel_close": "cancel", "open_port": "port",
}


class Witness:
    """What was acknowledged, and whether it still holds."""

    def __init__(self, test, home):
        self.test, self.home = test, home
        self.lock = threading.Lock()
        self.sandboxes = {}   # id → the metadata it was made with
        self.files = {}       # (sandbox, path) → bytes
        self.execs = {}       # (sandbox, exec) → stdout
        self.doubtful = set()  # sandboxes whose deletion or agent's death was under way

    def made(self, answer):
        with self.lock:
            self.sandboxes[answer["id"]] = answer["metadata"]

    def forget(self, sandbox):
        with self.lock:
            self.sandboxes.pop(sandbox, None)
            self.doubtful.discard(sandbox)

    def doubt(self, sandbox):
        with self.lock:
            self.doubtful.add(sandbox)

    def check(self):
        client = atoll.Atoll(self.home.directory)
        for sandbox, metadata in list(self.sandboxes.items()):
            shown = client.request("GET", f"/v1/sandboxes/{sandbox}")
            if sandbox in self.doubtful and (shown.status == 404 or
                                             shown.json["state"] != "running"):
                continue
            self.test.assertEqual(shown.status, 200, f"acknowledged sandbox {sandbox} is lost")
            self.test.assertEqual(shown.json["metadata"], metadata)
            self.test.assertEqual(shown.json["state"], "running", shown.json)
            done = client.execute(sandbox, ["echo", "alive"])
            self.test.assertEqual((done["verdict"], done["stdout"]), ("ok", "alive\n"))
        for (sandbox, path), content in list(self.files.items()):
            if sandbox in self.doubtful or sandbox not in self.sandboxes:
                continue
            read = client.request("GET", f"/v1/sandboxes/{sandbox}/files{path}")
            self.test.assertEqual((read.status, read.body), (200, content), path)
        for (sandbox, exec_id), output in list(self.execs.items()):
            if sandbox in self.doubtful or sandbox not in self.sandboxes:
                continue
            done = client.wait_ended(sandbox, exec_id)
            self.test.assertEqual(done["verdict"], "ok", done)
            self.test.assertEqual(client.output(sandbox, exec_id), output)
        client.close()


class Chaos(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.atoll = atoll.Atoll()
        cls.crash = os.path.join(cls.atoll.run_directory, "crash")
        os.makedirs(cls.crash)
        os.chmod(cls.atoll.run_directory, 0o755)
        os.chmod(cls.crash, 0o777)
        cls.atoll.up()
        cls.atoll.add_starting("serving", "true")

    def setUp(self):
        self.witness = Witness(self, self.atoll)
        self.acknowledged = collections.Counter()  # requests by their name
        self.atoll.close()
        self.atoll.wait_ready()
        self.sandbox = self.create()

    def tearDown(self):
        for name in os.listdir(self.crash):
            os.unlink(os.path.join(self.crash, name))
        self.atoll.close()
        self.atoll.wait_ready()
        self.remove_all()

    def remove_all(self):
        def none_left():
            shown = self.atoll.request("GET", "/v1/sandboxes?limit=1000").json["sandboxes"]
            for each in shown:
                self.atoll.try_request("DELETE", f"/v1/sandboxes/{each['id']}")
            return not shown and self.atoll.warden_pid and self.atoll.subvolumes() == []
        atoll.wait_for("every sandbox to be gone", none_left)

    # The requests. Each runs against a server that may die in the middle: status 0. Those that are
    # not sent again until they succeed say whether they were acknowledged.

    def do(self, request):
        if getattr(self, request)() is not False:
            self.acknowledged[request] += 1

    def check_acknowledged(self, requests):
        """One that always fails reaches points, too: without a kill, each succeeds."""
        self.sandbox = self.create()
        for request in sorted(set(requests) - {"restart"}):
            with self.subTest(request=request):
                if not self.acknowledged[request]:
                    self.do(request)
                self.assertGreater(self.acknowledged[request], 0, "it is never acknowledged")

    def again_until(self, status, method, path, body=None):
        """Sent again, as a client would, until it is answered so."""
        def answered():
            answer = self.atoll.try_request(method, path, body)
            return answer.status == status and (answer,)
        return atoll.wait_for(f"{method} {path} to be done", answered)[0]

    def pause(self):
        for verb, state in (("pause", "paused"), ("resume", "running")):
            answer = self.again_until(200, "POST", f"/v1/sandboxes/{self.sandbox}/{verb}")
            self.assertEqual(answer.json["state"], state)

    def rest(self):
        """What was paused for long has its files, whoever dies while its memory is given back or it
        goes on; and nobody is told that it runs before it does."""
        path, kind = f"/v1/sandboxes/{self.sandbox}", {"Content-Type": "application/octet-stream"}
        written = self.atoll.request("PUT", f"{path}/files/tmp/kept", b"kept", headers=kind)
        self.assertIn(written.status, (200, 201))
        self.lay_down(path)
        resumed = self.again_until(200, "POST", f"{path}/resume").json
        self.assertEqual((resumed["state"], resumed["pause"]), ("running", None))
        self.again_until(200, "PATCH", path, {"files_only_after_ms": None})
        self.assertEqual(self.again_until(200, "GET", f"{path}/files/tmp/kept").body, b"kept")

    def lay_down(self, path):
        self.again_until(200, "PATCH", path, {"files_only_after_ms": 1})
        self.again_until(200, "POST", f"{path}/pause")

        def rests():
            shown = self.atoll.try_request("GET", path)
            return shown.status == 200 and shown.json["pause"] and not shown.json["pause"]["memory"]
        atoll.wait_for("its memory to be given back", rests)

    def delete_at_rest(self):
        """What has only its files goes with them."""
        made = self.again_until(201, "POST", "/v1/sandboxes", {"template": "python"}).json["id"]
        self.lay_down(f"/v1/sandboxes/{made}")

        def gone():
            return self.atoll.try_request("DELETE", f"/v1/sandboxes/{made}").status in (204, 404)
        atoll.wait_for("the sandbox to be gone", gone)

    def keep_at_rest(self):
        """What has only its files is kept and forked as any other, and has them afterwards."""
        path, kind = f"/v1/sandboxes/{self.sandbox}", {"Content-Type": "application/octet-stream"}
        written = self.atoll.request("PUT", f"{path}/files/tmp/kept", b"kept", headers=kind)
        self.assertIn(written.status, (200, 201))
        self.lay_down(path)
        kept = self.again_until(201, "POST", f"{path}/snapshots", {}).json["id"]
        self.again_until(201, "POST", f"{path}/fork", {"count": 1})
        child = self.again_until(201, "POST", "/v1/sandboxes", {"snapshot": kept}).json["id"]
        read = self.again_until(200, "GET", f"/v1/sandboxes/{child}/files/tmp/kept")
        self.assertEqual(read.body, b"kept")
        for each in self.again_until(200, "GET", "/v1/snapshots").json["snapshots"]:
            self.delete_snapshot(each["id"])
        self.again_until(200, "POST", f"{path}/resume")
        self.again_until(200, "PATCH", path, {"files_only_after_ms": None})
        self.assertEqual(self.again_until(200, "GET", f"{path}/files/tmp/kept").body, b"kept")

    def squeeze(self):
        """One that needs the memory of another gets it, and that one has its files."""
        total = next(int(line.split()[1]) for line in atoll.read("/proc/meminfo").splitlines()
                     if line.startswith("MemTotal:"))
        path, kind = f"/v1/sandboxes/{self.sandbox}", {"Content-Type": "application/octet-stream"}
        written = self.atoll.request("PUT", f"{path}/files/tmp/kept", b"kept", headers=kind)
        self.assertIn(written.status, (200, 201))
        # More than half of what the host may promise, which is four times what it has.
        large = {"limits": {"memory_bytes": total * 1024 * 4 * 3 // 5}}
        self.again_until(200, "PATCH", path, {"files_only_under_pressure": True, **large})
        self.again_until(200, "POST", f"{path}/pause")
        other = self.again_until(201, "POST", "/v1/sandboxes", {"template": "python", **large})
        self.assertFalse(self.again_until(200, "GET", path).json["pause"]["memory"])
        self.again_until(204, "DELETE", f"/v1/sandboxes/{other.json['id']}")
        self.again_until(200, "POST", f"{path}/resume")
        self.assertEqual(self.again_until(200, "GET", f"{path}/files/tmp/kept").body, b"kept")
        small = {"limits": {"memory_bytes": 256 << 20}}
        self.again_until(200, "PATCH", path, {"files_only_under_pressure": False, **small})

    def keep(self):
        """A snapshot that was acknowledged is there with its files, and goes when it is deleted."""
        written = self.atoll.request("PUT", f"/v1/sandboxes/{self.sandbox}/files/tmp/kept", b"kept",
                                     headers={"Content-Type": "application/octet-stream"})
        self.assertIn(written.status, (200, 201))
        made = self.again_until(201, "POST", f"/v1/sandboxes/{self.sandbox}/snapshots", {})
        snapshot = made.json["id"]
        self.again_until(200, "GET", f"/v1/snapshots/{snapshot}")
        child = self.again_until(201, "POST", "/v1/sandboxes", {"snapshot": snapshot}).json["id"]
        read = self.again_until(200, "GET", f"/v1/sandboxes/{child}/files/tmp/kept")
        self.assertEqual(read.body, b"kept")
        for each in self.again_until(200, "GET", "/v1/snapshots").json["snapshots"]:
            self.delete_snapshot(each["id"])
        self.assertEqual(self.again_until(200, "GET", "/v1/snapshots").json["snapshots"], [])

    def seal(self):
        """A sealed snapshot leaves, comes back and is whole, or nobody sees it; in the end neither
        a blob nor a sandbox of ours is left."""
        kind = {"Content-Type": "application/octet-stream"}
        path = f"/v1/sandboxes/{self.sandbox}/files/tmp/kept"
        self.assertIn(self.atoll.request("PUT", path, b"kept" * 100_000, headers=kind).status,
                      (200, 201))
        made = self.again_until(201, "POST", f"/v1/sandboxes/{self.sandbox}/snapshots", {}).json
        self.again_until(200, "POST", f"/v1/snapshots/{made['id']}/seal")
        pack = self.again_until(200, "GET", f"/v1/snapshots/{made['id']}/pack").body
        self.again_until(201, "POST", "/v1/snapshots", pack)
        for each in self.again_until(200, "GET", "/v1/snapshots").json["snapshots"]:
            body = {"snapshot": each["id"]}
            child = self.again_until(201, "POST", "/v1/sandboxes", body).json["id"]
            read = self.again_until(200, "GET", f"/v1/sandboxes/{child}/files/tmp/kept")
            self.assertEqual(read.body, b"kept" * 100_000)
            if each["stage"] == "sealed":
                again = self.again_until(200, "GET", f"/v1/snapshots/{each['id']}/pack").body
                self.assertEqual(again, pack)
            self.again_until(204, "DELETE", f"/v1/sandboxes/{child}")
            self.delete_snapshot(each["id"])
        blobs = os.path.join(self.atoll.directory, "daemon", "blobs")
        atoll.wait_for("no blob to be left", lambda: not any(
            names for _, _, names in os.walk(blobs)), 20)

    def delete_snapshot(self, snapshot):
        path = f"/v1/snapshots/{snapshot}?children=adopt"

        def gone():
            return self.atoll.try_request("DELETE", path).status in (204, 404)
        atoll.wait_for("the snapshot to be gone", gone)

    def roll_back(self):
        """Either nothing happened or it is rolled back; the sandbox is there and can be used."""
        kept = f"/v1/sandboxes/{self.sandbox}/files/tmp/kept"
        kind = {"Content-Type": "application/octet-stream"}
        self.assertIn(self.atoll.request("PUT", kept, b"first", headers=kind).status, (200, 201))
        made = self.again_until(201, "POST", f"/v1/sandboxes/{self.sandbox}/snapshots", {})
        self.assertIn(self.atoll.request("PUT", kept, b"second", headers=kind).status, (200, 201))
        body = {"snapshot": made.json["id"]}
        undo = self.again_until(200, "POST", f"/v1/sandboxes/{self.sandbox}/rollback", body)
        self.assertEqual(self.again_until(200, "GET", kept).body, b"first")
        self.again_until(200, "GET", f"/v1/snapshots/{undo.json['undo']}")
        for each in self.again_until(200, "GET", "/v1/snapshots").json["snapshots"]:
            self.again_until(204, "DELETE", f"/v1/snapshots/{each['id']}?children=adopt")

    def fork(self):
        """Whatever a fork that was not acknowledged has made, its snapshot is gone."""
        self.again_until(201, "POST", f"/v1/sandboxes/{self.sandbox}/fork", {"count": 2})
        self.assertEqual(self.again_until(200, "GET", "/v1/snapshots").json["snapshots"], [])

    def store(self):
        """A volume that was acknowledged is there with its files, and goes when it is deleted."""
        body = {"name": "chaos", "bytes": 16 << 20}

        def there():
            # 409: made by the call whose answer was lost.
            return self.atoll.try_request("POST", "/v1/volumes", body).status in (201, 409)
        atoll.wait_for("the volume to be there", there)
        wanted = {"template": "python", "volumes": [{"name": "chaos", "path": "/srv/chaos"}]}
        user = self.again_until(201, "POST", "/v1/sandboxes", wanted).json["id"]
        self.again_until(409, "DELETE", "/v1/volumes/chaos")
        self.again_until(204, "DELETE", f"/v1/sandboxes/{user}")

        def gone():
            return self.atoll.try_request("DELETE", "/v1/volumes/chaos").status in (204, 404)
        atoll.wait_for("the volume to be gone", gone)
        self.assertEqual(self.again_until(200, "GET", "/v1/volumes").json["volumes"], [])

    def create(self, client=None):
        body = {"template": "python", "metadata": {"number": str(random.random())}}
        headers = {"Idempotency-Key": f"chaos-{random.random()}"}
        client = client or self.atoll
        answer = client.try_request("POST", "/v1/sandboxes", body, headers=headers)
        if answer.status == 201:
            self.witness.made(answer.json)
            return answer.json["id"]
        # Sent again, as a client would: there must be one sandbox, not two.
        def again():
            answer = client.try_request("POST", "/v1/sandboxes", body, headers=headers)
            return answer.status == 201 and answer.json
        made = atoll.wait_for("the create to succeed when sent again", again, 120)

        def listed():
            answer = client.try_request("GET", "/v1/sandboxes?limit=1000")
            return answer.status == 200 and [
                each["id"] for each in answer.json["sandboxes"]
                if each["metadata"] == body["metadata"] and each["state"] == "running"]
        self.assertEqual(atoll.wait_for("the list", listed), [made["id"]])
        self.witness.made(made)
        return made["id"]

    def serve(self):
        """Of a create that waited for a program nothing is left, unless it was answered."""
        body = {"template": "serving", "metadata": {"number": str(random.random())}}
        made = self.again_until(201, "POST", "/v1/sandboxes", body).json
        listed = self.again_until(200, "GET", "/v1/sandboxes?limit=1000").json["sandboxes"]
        same = [each["id"] for each in listed if each["metadata"] == body["metadata"]]
        self.assertEqual(same, [made["id"]])

    def execute(self, sandbox=None, client=None):
        sandbox, client = sandbox or self.sandbox, client or self.atoll
        code = "for i in range(2000): print(i)"
        answer = client.try_request("POST", f"/v1/sandboxes/{sandbox}/execs",
                                    {"cmd": ["python3", "-c", code]})
        if answer.status == 202:
            expected = b"".join(b"%d\n" % i for i in range(2000))
            self.witness.execs[(sandbox, answer.json["id"])] = expected
        return answer.status == 202

    def feed(self):
        answer = self.atoll.try_request("POST", f"/v1/sandboxes/{self.sandbox}/execs",
                                        {"cmd": ["cat"], "stdin_open": True})
        if answer.status != 202:
            return False
        exec_id, data = answer.json["id"], os.urandom(100_000)
        path = f"/v1/sandboxes/{self.sandbox}/execs/{exec_id}/stdin?offset=0&eof=true"

        def fed():
            sent = self.atoll.try_request("POST", path, data, headers={
                "Content-Type": "application/octet-stream"})
            return sent.status in (200, 409)
        try:
            atoll.wait_for("the input to be taken", fed)
        except AssertionError:
            if self.sandbox not in self.witness.doubtful:
                raise
            return False
        self.witness.execs[(self.sandbox, exec_id)] = data
        return True

    def upload(self, sandbox=None, client=None):
        sandbox, client = sandbox or self.sandbox, client or self.atoll
        path, data = f"/home/user/f{random.random()}", os.urandom(200_000)
        answer = client.try_request("PUT", f"/v1/sandboxes/{sandbox}/files{path}", data, headers={
            "Content-Type": "application/octet-stream"})
        if answer.status in (200, 201):
            self.witness.files[(sandbox, path)] = data
        return answer.status in (200, 201)

    def patch(self):
        body = {"limits": {"memory_bytes": 300 << 20, "pids": 100}}
        answer = self.atoll.try_request("PATCH", f"/v1/sandboxes/{self.sandbox}", body)
        self.atoll.close()
        self.atoll.wait_ready()
        shown = self.atoll.request("GET", f"/v1/sandboxes/{self.sandbox}").json["limits"]
        if answer.status == 200:
            self.assertEqual(shown["memory_bytes"], 300 << 20)
        return answer.status == 200

    def delete(self, client=None):
        sandbox = self.create(client)
        self.witness.doubt(sandbox)
        client = client or self.atoll
        if client.try_request("DELETE", f"/v1/sandboxes/{sandbox}").status != 204:
            return False
        self.assertIn(client.try_request("GET", f"/v1/sandboxes/{sandbox}").status, (0, 404))
        self.witness.forget(sandbox)
        return True

    def signal(self):
        """Who was told that it was sent finds the program ended by it."""
        answer = self.atoll.try_request("POST", f"/v1/sandboxes/{self.sandbox}/execs",
                                        {"cmd": ["sleep", "60"]})
        if answer.status != 202:
            return False
        path = f"/v1/sandboxes/{self.sandbox}/execs/{answer.json['id']}/signal"
        if self.atoll.try_request("POST", path, {"signal": "TERM"}).status != 204:
            return False
        done = self.atoll.wait_ended(self.sandbox, answer.json["id"])
        if self.sandbox in self.witness.doubtful:
            return done["verdict"] == "killed"
        self.assertEqual(done["verdict"], "killed", done)
        return True

    def make_big(self, size):
        """A file of that size; false where the program may not have run to its end."""
        answer = self.atoll.try_request("POST", f"/v1/sandboxes/{self.sandbox}/execs", {
            "shell": f"head -c {size} /dev/zero > /home/user/big", "wait": True})
        return answer.status == 200 and answer.json["verdict"] == "ok"

    def download(self):
        """All of a file, or an answer that is cut short."""
        if not self.make_big(4 << 20):
            return False
        answer = self.atoll.try_request("GET", f"/v1/sandboxes/{self.sandbox}/files/home/user/big")
        if answer.status != 200:
            return False
        self.assertEqual(answer.body, bytes(4 << 20))
        return True

    def cancel(self):
        """A reader that goes away in the middle: the channel is given up."""
        if not self.make_big(64 << 20):
            return False
        host, port = self.atoll.address.rsplit(":", 1)
        with socket.create_connection((host, int(port))) as peer:
            peer.sendall((f"GET /v1/sandboxes/{self.sandbox}/files/home/user/big HTTP/1.1\r\n"
                          f"Host: localhost\r\nAuthorization: Bearer {self.atoll.key}\r\n"
                          "\r\n").encode())
            return peer.recv(1000).startswith(b"HTTP/1.1 200 ")

    def port(self):
        """The agent says that nobody listens there."""
        answer = self.atoll.try_request("GET", f"/v1/sandboxes/{self.sandbox}/ports/8000/")
        return answer.status == 502 and answer.json["error"]["code"] == "port_not_listening"

    def terminal(self):
        """Its new size is what a program sees that asks for it afterwards."""
        code = "import os, sys; sys.stdin.readline(); print(os.get_terminal_size())"
        answer = self.atoll.try_request("POST", f"/v1/sandboxes/{self.sandbox}/execs", {
            "cmd": ["python3", "-c", code], "pty": {"cols": 80, "rows": 24}, "stdin_open": True})
        if answer.status != 202:
            return False
        path = f"/v1/sandboxes/{self.sandbox}/execs/{answer.json['id']}"
        resized = self.atoll.try_request("POST", f"{path}/resize", {"cols": 100, "rows": 30})
        typed = self.atoll.try_request("POST", f"{path}/stdin?offset=0", b"\n", headers={
            "Content-Type": "application/octet-stream"})
        if (resized.status, typed.status) != (204, 200):
            return False
        done = self.atoll.wait_ended(self.sandbox, answer.json["id"])
        if self.sandbox in self.witness.doubtful:
            return done["verdict"] == "ok"
        self.assertIn("columns=100, lines=30", done["stdout"])
        return True

    def restart(self):
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)

    # The kills.

    def arm(self, program, point):
        path = os.path.join(self.crash, f"{program}.{point}")
        with open(path, "w"):
            os.chmod(path, 0o666)
        return path

    def check_ready_again(self, since):
        """On a connection of its own: others go on with their work as soon as they can."""
        client = atoll.Atoll(self.atoll.directory)
        client.wait_ready()
        took = time.monotonic() - since
        client.close()
        if LONG:  # otherwise only printed: whoever else works on this host decides about it
            self.assertLess(took, READY_SECONDS)
        return took

    def die_at(self, program, point, request):
        armed, daemon = self.arm(program, point), self.atoll.daemon_pid
        failures = []

        def attempt():
            try:
                self.do(request)
            except Exception as failure:  # of any kind: told below
                failures.append(failure)
        work = threading.Thread(target=attempt)
        work.start()
        atoll.wait_for(f"{program} to reach {point}",
                       lambda: failures or not os.path.exists(armed))
        died = time.monotonic()
        if program == "atolld":
            atoll.wait_for("its end", lambda: self.atoll.daemon_pid != daemon)
        took = self.check_ready_again(died)
        work.join()
        self.atoll.close()
        for failure in failures:
            raise failure
        self.witness.check()
        self.check_isolates()
        return took

    def check_isolates(self):
        """As many isolates as sandboxes that have one, and no agent without a sandbox."""
        def equal():
            shown = self.atoll.request("GET", "/v1/sandboxes?limit=1000").json["sandboxes"]
            running = sorted(each["id"] for each in shown if each["state"] == "running")
            if not self.atoll.warden_pid:
                return False
            layers = sorted("s" + name[1:] for name in self.atoll.subvolumes())  # or kept: "p"
            return layers == running
        atoll.wait_for("isolates and rows to agree", equal)

    def die_at_all(self, program, points):
        slowest = 0.0
        pairs = chosen.fifth([(point, request) for point, requests in points.items() for request in
                              ((requests,) if isinstance(requests, str) else requests)], PART)
        for point, request in pairs:
            for _ in range(STATE_ROUNDS if request in STATE_REQUESTS else 1):
                with self.subTest(program=program, point=point, request=request):
                    slowest = max(slowest, self.die_at(program, point, request))
        self.check_acknowledged(request for _, request in pairs)
        print(f"{program}: {len(pairs)} of its points, ready again after at most {slowest:.2f} s")

    def test_daemon_at_each_point(self):
        self.die_at_all("atolld", DAEMON_POINTS)

    def test_warden_at_each_point(self):
        self.die_at_all("atoll-warden", WARDEN_POINTS)

    def test_agent_at_each_point(self):
        pairs = chosen.fifth(AGENT_POINTS.items(), PART)
        for point, request in pairs:
            with self.subTest(point=point):
                armed = self.arm("atoll-agent", point)
                if request == "create":
                    answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
                    self.assertIn(answer.status, (201, 503), answer.body)
                    self.assertFalse(os.path.exists(armed))
                    continue
                self.sandbox = self.create()
                self.witness.doubt(self.sandbox)
                self.assertFalse(os.path.exists(armed), "the warden took the point")
                self.do(request)

                def failed():
                    shown = self.atoll.request("GET", f"/v1/sandboxes/{self.sandbox}").json
                    return shown["state"] == "failed"
                atoll.wait_for(f"the sandbox to fail at {point}", failed)
                for each in self.atoll.request(
                        "GET", f"/v1/sandboxes/{self.sandbox}/execs").json["execs"]:
                    self.assertEqual(each["state"], "ended")
        self.check_acknowledged(request for _, request in pairs)
        self.witness.check()
        self.check_isolates()

    def test_random_kills_under_load(self):
        stop = threading.Event()

        def work():
            client = atoll.Atoll(self.atoll.directory)
            mine = []
            while not stop.is_set():
                try:
                    mine.append(self.create(client))
                    done["execute"] += self.execute(mine[-1], client)
                    done["upload"] += self.upload(mine[-1], client)
                    if len(mine) > 3:
                        gone = mine.pop(0)
                        self.witness.doubt(gone)
                        if client.try_request("DELETE", f"/v1/sandboxes/{gone}").status == 204:
                            self.witness.forget(gone)
                            done["delete"] += 1
                except Exception as failure:  # of any kind: told below
                    failures.append(failure)
                    return
            client.close()
        failures, done = [], collections.Counter()
        chance = random.Random(chosen.seed("ATOLL_CHAOS_SEED"))
        workers = [threading.Thread(target=work) for _ in range(2)]
        for worker in workers:
            worker.start()
        slowest = 0.0
        for _ in range(RANDOM_KILLS):
            time.sleep(chance.uniform(0.0, 0.2))
            victim = chance.choice(["daemon", "daemon", "warden", "agent"])
            if victim == "agent":
                self.kill_an_agent()
                continue
            pid = getattr(self.atoll, f"{victim}_pid")
            if not pid:
                continue
            os.kill(pid, signal.SIGKILL)
            died = time.monotonic()
            if victim == "daemon":
                slowest = max(slowest, self.check_ready_again(died))
        stop.set()
        for worker in workers:
            worker.join()
        self.assertEqual(failures, [])
        self.atoll.close()
        self.atoll.wait_ready()
        print(f"acknowledged under load: {dict(done)}")
        self.acknowledged += done
        self.check_acknowledged(("execute", "upload", "delete"))
        self.witness.check()
        self.check_isolates()
        print(f"{RANDOM_KILLS} random kills, {len(self.witness.sandboxes)} sandboxes kept, "
              f"ready again after at most {slowest:.2f} s")

    def kill_an_agent(self):
        with self.witness.lock:
            known = [each for each in self.witness.sandboxes if each != self.sandbox]
        if not known:
            return
        sandbox = random.choice(known)
        self.witness.doubt(sandbox)
        try:
            os.kill(self.atoll.agent_pid(sandbox), signal.SIGKILL)
        except (OSError, IndexError, ValueError):
            pass  # it was just being deleted


if __name__ == "__main__":
    atoll.main()
