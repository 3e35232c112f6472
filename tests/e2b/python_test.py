"""E2B's Python packages, unmodified, against Atoll: sandboxes, commands, terminals, files."""
import asyncio
import datetime
import http.client
import itertools
import json
import os
import re
import threading
import time
import unittest
import urllib.error
import urllib.request

import clients

clients.enter_python()

import door  # noqa: E402
import e2b  # noqa: E402
from e2b import AsyncSandbox, CommandExitException, Sandbox, SandboxQuery  # noqa: E402


class Client(door.DoorTest):
    shared = True

    def create(self, **options):
        sandbox = Sandbox.create(timeout=120, **options)
        self.addCleanup(sandbox.kill)
        return sandbox


class Sandboxes(Client):
    def test_lives_and_ends(self):
        sandbox = self.create(metadata={"who": "me"}, envs={"GREETING": "hello"})
        self.assertTrue(sandbox.is_running())
        info = sandbox.get_info()
        self.assertEqual(info.sandbox_id, sandbox.sandbox_id)
        self.assertEqual(info.metadata, {"who": "me"})
        self.assertEqual(info.template_id, "base")
        self.assertEqual(sandbox.commands.run("echo $GREETING").stdout, "hello\n")
        again = Sandbox.connect(sandbox.sandbox_id)
        self.assertEqual(again.commands.run("echo 1").stdout, "1\n")
        self.assertTrue(sandbox.kill())
        self.assertFalse(sandbox.kill())
        self.assertFalse(sandbox.is_running())
        with self.assertRaises(e2b.SandboxNotFoundException):
            sandbox.get_info()
        with self.assertRaises(e2b.SandboxNotFoundException):
            Sandbox.connect(sandbox.sandbox_id)
        with self.assertRaises((e2b.SandboxNotFoundException, e2b.TimeoutException)):
            sandbox.commands.run("true")

    def test_keys_have_the_shape_that_clients_insist_on(self):
        made = json.loads(self.atoll.cli("key", "create", "--e2b", "--json").stdout)
        self.assertRegex(made["key"], "^e2b_[0-9a-f]{40}$")
        sandbox = self.create(api_key=made["key"])
        self.assertTrue(sandbox.is_running())

    def test_time_is_set_anew_and_runs_out(self):
        sandbox = self.create()
        sandbox.set_timeout(600)
        left = sandbox.get_info().end_at - datetime.datetime.now(datetime.timezone.utc)
        self.assertAlmostEqual(left.total_seconds(), 600, delta=10)
        Sandbox.connect(sandbox.sandbox_id, timeout=60)  # never shortens
        left = sandbox.get_info().end_at - datetime.datetime.now(datetime.timezone.utc)
        self.assertGreater(left.total_seconds(), 500)
        sandbox.set_timeout(1)
        door.atoll.wait_for("the end", lambda: not sandbox.is_running())
        with self.assertRaises(e2b.SandboxNotFoundException):
            sandbox.set_timeout(10)

    def test_is_listed_by_metadata_order_and_page(self):
        mark = str(time.time())
        ids = [self.create(metadata={"a k": "b c&d", "mark": mark}).sandbox_id for _ in range(3)]
        query = SandboxQuery(metadata={"a k": "b c&d", "mark": mark})
        pages = Sandbox.list(query=query, limit=2)
        first = [info.sandbox_id for info in pages.next_items()]
        self.assertTrue(pages.has_next)
        second = [info.sandbox_id for info in pages.next_items()]
        self.assertFalse(pages.has_next)
        self.assertEqual(first + second, ids[::-1])  # the newest first
        self.assertEqual(Sandbox.list(query=SandboxQuery(metadata={"mark": "x"})).next_items(), [])
        paused = SandboxQuery(metadata={"mark": mark}, state=[e2b.SandboxState.PAUSED])
        self.assertEqual(Sandbox.list(query=paused).next_items(), [])

    def test_refuses_what_it_does_not_have_in_words(self):
        with self.assertRaisesRegex(Exception, "no-such-template"):
            Sandbox.create("no-such-template")
        with self.assertRaises(e2b.AuthenticationException):
            Sandbox.create(api_key="e2b_" + "0" * 40)
        for network in ({"egress_proxy": {"address": "proxy.example:1080"}},
                        {"rules": {"api.example": [{"transform": {"headers": {
                            "Authorization": "${e2b.identity.tokens.aws}"}}}]}}):
            with self.assertRaisesRegex(Exception, "501"):
                self.create(network=network)

    def test_sleeps_with_its_processes_and_wakes(self):
        sandbox = self.create()
        command = sandbox.commands.run("sleep 1000", background=True)
        sandbox.files.write("/tmp/note", "kept")
        self.assertTrue(sandbox.pause())
        self.assertFalse(sandbox.pause(), "it was paused already")
        self.assertFalse(sandbox.is_running())
        self.assertEqual(Sandbox.get_info(sandbox.sandbox_id).state, e2b.SandboxState.PAUSED)
        paused = SandboxQuery(state=[e2b.SandboxState.PAUSED])
        listed = [info.sandbox_id for info in Sandbox.list(query=paused).next_items()]
        self.assertEqual(listed, [sandbox.sandbox_id])
        again = Sandbox.connect(sandbox.sandbox_id, timeout=120)
        self.assertTrue(again.is_running())
        self.assertEqual(again.files.read("/tmp/note"), "kept")
        self.assertIn(command.pid, [one.pid for one in again.commands.list()])

    def test_sleeps_at_its_end_and_is_woken_by_use(self):
        lifecycle = {"on_timeout": "pause", "auto_resume": True}
        sandbox = Sandbox.create(timeout=1, lifecycle=lifecycle)
        self.addCleanup(sandbox.kill)
        door.atoll.wait_for("the pause", lambda: Sandbox.get_info(
            sandbox.sandbox_id).state == e2b.SandboxState.PAUSED, 15)
        self.assertEqual(sandbox.commands.run("echo woken").stdout, "woken\n")

    def test_is_kept_made_again_and_forked(self):
        sandbox = self.create()
        sandbox.files.write("/tmp/note", "first")
        snapshot = sandbox.create_snapshot()
        sandbox.files.write("/tmp/note", "second")
        made = self.create(template=snapshot.snapshot_id)
        self.assertEqual(made.files.read("/tmp/note"), "first")
        listed = Sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id).next_items()
        self.assertEqual([one.snapshot_id for one in listed], [snapshot.snapshot_id])
        named = sandbox.create_snapshot(name="my-state")
        self.assertEqual(named.names, ["my-state"])
        other = sandbox.create_snapshot(name="my-state:v2")
        self.assertEqual(self.create(template="my-state").files.read("/tmp/note"), "second")
        self.assertEqual(self.create(template="my-state:v2").files.read("/tmp/note"), "second")
        for name, ids in (("my-state", [named, other]), ("my-state:v2", [other]), ("none", []),
                          (named.snapshot_id, [named])):
            listed = Sandbox.list_snapshots(name=name).next_items()
            self.assertEqual([one.snapshot_id for one in listed], [one.snapshot_id for one in ids])
        pages = Sandbox.list_snapshots(name="my-state", limit=1)
        for each in (named, other):
            self.assertEqual([one.snapshot_id for one in pages.next_items()], [each.snapshot_id],
                             "the token holds although its snapshot has gone")
            self.assertTrue(Sandbox.delete_snapshot(each.snapshot_id))
        with self.assertRaisesRegex(Exception, "my-state"):
            self.create(template="my-state")
        forks = sandbox.fork(count=2, timeout=60)
        self.assertEqual(len(forks), 2)
        for fork in forks:
            self.addCleanup(fork.kill)
            self.assertEqual(fork.files.read("/tmp/note"), "second")
        self.assertTrue(Sandbox.delete_snapshot(snapshot.snapshot_id))
        self.assertFalse(Sandbox.delete_snapshot(snapshot.snapshot_id))

    def test_tells_what_it_uses(self):
        sandbox = self.create()
        before = sandbox.get_metrics()[-1]
        self.assertGreater(before.mem_total, before.mem_used)
        code = ("import os; held = b'x' * (64 << 20); "
                "file = open('/home/user/f', 'wb'); file.write(os.urandom(32 << 20)); "
                "file.flush(); os.fsync(file.fileno())\nwhile True: pass")
        sandbox.files.write("/tmp/busy.py", code)
        sandbox.commands.run("python3 /tmp/busy.py", background=True)

        def is_seen():
            now = sandbox.get_metrics()[-1]
            return (now.mem_used > before.mem_used + (60 << 20) and now.cpu_used_pct > 20
                    and now.disk_used > before.disk_used + (30 << 20))
        door.atoll.wait_for("the use to be measured", is_seen, 120)
        points = sandbox.get_metrics()
        self.assertGreater(len(points), 1)
        self.assertEqual(points, sorted(points, key=lambda point: point.timestamp))
        for point in points:
            self.assertLessEqual(point.cpu_used_pct, 100)
            self.assertLessEqual(point.disk_used, point.disk_total)
        long_ago = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
        self.assertEqual(sandbox.get_metrics(start=long_ago, end=long_ago), [])
        key = {"X-API-Key": os.environ["E2B_API_KEY"], "Authorization": ""}
        gone = self.create()
        gone.kill()
        ids = f"{sandbox.sandbox_id},{gone.sandbox_id}"
        answer = self.atoll.request("GET", f"/sandboxes/metrics?sandbox_ids={ids}", headers=key)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(list(answer.json["sandboxes"]), [sandbox.sandbox_id])
        self.assertGreater(answer.json["sandboxes"][sandbox.sandbox_id]["memUsed"], 60 << 20)
        answer = self.atoll.request("GET", "/sandboxes/metrics?sandbox_ids=%2F", headers=key)
        self.assertEqual((answer.status, answer.json["code"]), (400, 400))
        sandbox.kill()
        with self.assertRaises(e2b.SandboxNotFoundException):
            sandbox.get_metrics()

    def test_has_no_internet_and_is_given_names(self):
        sandbox = self.create()
        code = "import socket; socket.create_connection(('example.com', 80), 5)"
        with self.assertRaises(CommandExitException):
            sandbox.commands.run(f'python3 -c "{code}"')
        sandbox.update_network({"allow_out": ["example.com"], "deny_out": ["0.0.0.0/0"]})
        self.assertEqual(sandbox.commands.run(
            "python3 -c \"import socket; print(socket.gethostbyname('example.com'))\""
        ).stdout[:7], "198.18.")
        sandbox.update_network({"allow_out": ["192.0.2.7", "198.51.100.0/24"]})
        with self.assertRaisesRegex(Exception, "allowOut"):
            sandbox.update_network({"allow_out": ["not_a_name!"]})

    def test_ports_are_reached_with_the_token(self):
        sandbox = self.create()
        sandbox.files.write("/tmp/www/index.html", "served")
        sandbox.commands.run("python3 -m http.server 8000 --directory /tmp/www", background=True)
        token = {"e2b-traffic-access-token": sandbox.traffic_access_token}
        by_fields = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "8000"}
        by_host = {"Host": sandbox.get_host(8000)}

        def get(headers):
            request = urllib.request.Request(os.environ["E2B_API_URL"] + "/", headers=headers)
            try:
                with urllib.request.urlopen(request) as answer:
                    return answer.status, answer.read()
            except urllib.error.HTTPError as error:
                return error.code, error.read()
        door.atoll.wait_for("the server", lambda: get({**token, **by_fields})[0] == 200)
        for way in (by_fields, by_host):
            self.assertEqual(get({**token, **way}), (200, b"served"))
            self.assertEqual(get(way)[0], 401)
            self.assertEqual(get({"e2b-traffic-access-token": "0" * 64, **way})[0], 401)

    def test_strangers_are_kept_out(self):
        sandbox, other = self.create(), self.create()
        envd = {"E2b-Sandbox-Id": sandbox.sandbox_id, "E2b-Sandbox-Port": "49983"}
        code = {**envd, "E2b-Sandbox-Port": "49999"}
        wrong = {"X-Access-Token": other._envd_access_token}
        for target, fields in (("/files?path=/etc/passwd", envd), ("/contexts", code)):
            for token in ({}, wrong, {"e2b-traffic-access-token": other.traffic_access_token}):
                answer = self.atoll.request("GET", target, headers={**fields, **token,
                                                                    "Authorization": "Basic eA=="})
                self.assertEqual(answer.status, 401, (target, answer.body))
        answer = self.atoll.request("GET", f"/sandboxes/{sandbox.sandbox_id}",
                                    headers={"X-API-Key": "e2b_" + "1" * 40})
        self.assertEqual((answer.status, answer.json["code"]), (401, 401))
        acme = self.atoll.request("POST", "/v1/keys", {"tenant": "acme", "e2b": True}).json["key"]
        answer = self.atoll.request("GET", f"/sandboxes/{sandbox.sandbox_id}",
                                    headers={"X-API-Key": acme})
        self.assertEqual((answer.status, answer.json["code"]), (404, 404))

    def test_a_command_that_runs_when_it_is_killed_fails_as_with_e2b(self):
        sandbox = self.create()

        def kill():
            door.atoll.wait_for("the command", sandbox.commands.list)
            sandbox.kill()
        killing = threading.Thread(target=kill)
        killing.start()
        with self.assertRaises(e2b.TimeoutException):
            sandbox.commands.run("sleep 300")
        killing.join()


class Volumes(Client):
    def setUp(self):
        super().setUp()
        self.volume = e2b.Volume.create("My_volume-1")
        self.addCleanup(self.destroy)

    def destroy(self):
        e2b.Volume.destroy(self.volume.volume_id)
        self.assertEqual(e2b.Volume.list(), [])

    def test_are_made_listed_found_and_removed(self):
        self.assertEqual([(one.volume_id, one.name) for one in e2b.Volume.list()],
                         [(self.volume.volume_id, "My_volume-1")])
        info = e2b.Volume.get_info(self.volume.volume_id)
        self.assertEqual((info.name, info.token), ("My_volume-1", self.volume.token))
        with self.assertRaises(e2b.VolumeException):
            e2b.Volume.create("My_volume-1")
        with self.assertRaises(e2b.VolumeException):
            e2b.Volume.create("no/name")
        with self.assertRaises(e2b.VolumeNotFoundException):
            e2b.Volume.get_info("none")
        self.assertFalse(e2b.Volume.destroy("none"))

    def check_files(self):
        """Whether a sandbox has it or not."""
        volume = self.volume
        written = volume.write_file("/a b/\u00e4.txt", "text", mode=0o640)
        self.assertEqual((written.path, written.size, written.mode, written.uid, written.gid),
                         ("/a b/\u00e4.txt", 4, 0o640, 1000, 1000))
        self.assertEqual(volume.read_file("/a b/\u00e4.txt"), "text")
        volume.write_file("raw", b"\0\xff", uid=0)
        self.assertEqual(volume.read_file("raw", format="bytes"), b"\0\xff")
        self.assertEqual(volume.get_info("/raw").uid, 0)
        self.assertEqual(b"".join(volume.read_file("/raw", format="stream")), b"\0\xff")
        with self.assertRaises(e2b.VolumePathNotFoundException):
            volume.make_dir("/x/y")
        self.assertEqual(volume.make_dir("/x/y", force=True).type.value, "directory")
        self.assertEqual(volume.update_metadata("/x/y", mode=0o700).mode, 0o700)
        with self.assertRaisesRegex(e2b.VolumeException, "owner"):
            volume.update_metadata("/x/y", uid=7)
        self.assertEqual(sorted(one.path for one in volume.list("/")), ["/a b", "/raw", "/x"])
        self.assertEqual(len(volume.list("/", depth=2)), 5)
        with self.assertRaises(e2b.VolumePathNotFoundException):
            volume.list("/none")
        for path in ("/a b", "/x", "raw"):
            volume.remove(path)
        self.assertFalse(volume.exists("/x"))
        with self.assertRaises(e2b.VolumePathNotFoundException):
            volume.remove("/x")
        self.assertEqual(volume.list("/"), [])

    def test_have_files_without_a_sandbox(self):
        self.check_files()
        self.assertEqual(Sandbox.list().next_items(), [])

    def test_are_mounted_and_reached_beside_the_sandbox(self):
        self.volume.write_file("seen", "before")
        sandbox = self.create(volume_mounts={"/mnt/data": self.volume})
        self.assertEqual(sandbox.files.read("/mnt/data/seen"), "before")
        self.volume.remove("seen")
        sandbox.commands.run("echo inside > /mnt/data/from")
        self.assertEqual(self.volume.read_file("from"), "inside\n")
        self.volume.remove("from")
        self.check_files()
        with self.assertRaisesRegex(Exception, "writes to the volume"):
            self.create(volume_mounts={"/mnt/data": self.volume})
        with self.assertRaises(e2b.VolumeException):
            e2b.Volume.destroy(self.volume.volume_id)
        sandbox.kill()

    def test_belong_to_who_has_the_token(self):
        stranger = e2b.Volume(self.volume.volume_id, "My_volume-1", "0" * 64)
        with self.assertRaisesRegex(Exception, "401"):
            stranger.list("/")

    def test_paths_stay_inside(self):
        with self.assertRaises(e2b.VolumePathNotFoundException):
            self.volume.read_file("/../etc/passwd")
        with self.assertRaises(e2b.VolumeException):
            self.volume.remove("/..")


class Commands(door.DoorTest):
    shared = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sandbox = Sandbox.create(timeout=600)

    def test_give_output_and_exit_codes(self):
        result = self.sandbox.commands.run("echo out; echo err >&2")
        self.assertEqual((result.stdout, result.stderr, result.exit_code), ("out\n", "err\n", 0))
        with self.assertRaises(CommandExitException) as raised:
            self.sandbox.commands.run("echo before; exit 3")
        self.assertEqual(raised.exception.exit_code, 3)
        self.assertEqual(raised.exception.stdout, "before\n")
        big = self.sandbox.commands.run("python3 -c \"print('ä' * 500000)\"")
        self.assertEqual(big.stdout, "ä" * 500000 + "\n")

    def test_find_no_room_among_too_many_and_say_so(self):
        manifest = 'name = "crowded"\n[image]\ntemplate = "base"\n[defaults]\npids = 32\n'
        self.atoll.request("POST", "/v1/templates", {"manifest": manifest})
        door.atoll.wait_for("the template", lambda: self.atoll.request(
            "GET", "/v1/templates/crowded/build").json["state"] == "built", 60)
        sandbox = Sandbox.create("crowded", timeout=600)
        self.addCleanup(sandbox.kill)
        # Whatever becomes free is taken at once: when it is full it stays so.
        sandbox.files.write("/tmp/many.py", "import os, time\nwhile True:\n  try:\n"
                            "    if os.fork() == 0: time.sleep(600)\n  except OSError:\n"
                            "    print('full', flush=True)\n    time.sleep(0.01)\n")
        full = threading.Event()
        handle = sandbox.commands.run("exec python3 /tmp/many.py", background=True)
        threading.Thread(daemon=True, target=lambda: next(
            (full.set() for out, _, _ in handle if out), None)).start()
        self.assertTrue(full.wait(60))
        with self.assertRaisesRegex(e2b.RateLimitException,
                                    "as many processes run as the sandbox may have"):
            sandbox.commands.run("true")

    def test_have_a_user_a_directory_and_variables(self):
        run = self.sandbox.commands.run
        self.assertEqual(run("whoami; pwd").stdout, "user\n/home/user\n")
        self.assertEqual(run("whoami", user="root").stdout, "root\n")
        self.assertEqual(run("pwd", cwd="/tmp").stdout, "/tmp\n")
        self.assertEqual(run("echo $A", envs={"A": "b c"}).stdout, "b c\n")
        with self.assertRaises(e2b.InvalidArgumentException):
            run("true", cwd="/no/such/place")
        with self.assertRaises(e2b.AuthenticationException):
            run("true", user="nobody-here")

    def test_stream_to_callbacks(self):
        seen = []
        self.sandbox.commands.run("for i in 1 2 3; do echo $i; sleep 0.1; done",
                                  on_stdout=seen.append)
        self.assertEqual("".join(seen), "1\n2\n3\n")
        self.assertGreater(len(seen), 1)

    def test_run_in_the_background_are_listed_joined_and_killed(self):
        commands = self.sandbox.commands
        code = "until [ -e /tmp/joined ]; do sleep 0.1; done; echo late; sleep 60"
        handle = commands.run(code, background=True)
        listed = {process.pid: process for process in commands.list()}
        self.assertEqual(listed[handle.pid].cmd, "/bin/bash")
        self.assertIn("sleep 60", listed[handle.pid].args[-1])
        left = commands.connect(handle.pid)
        left.disconnect()
        joined = commands.connect(handle.pid)
        commands.run("touch /tmp/joined")
        self.assertEqual(next(iter(joined))[0], "late\n")
        commands.run(f"kill -0 {handle.pid}")
        self.assertTrue(commands.kill(handle.pid))
        with self.assertRaises(CommandExitException):
            handle.wait()
        with self.assertRaises(CommandExitException):
            commands.run(f"kill -0 {handle.pid}")
        self.assertFalse(commands.kill(handle.pid))
        with self.assertRaises(e2b.NotFoundException):
            commands.connect(999999)

    def test_end_when_their_time_is_up(self):
        with self.assertRaises(e2b.TimeoutException):
            self.sandbox.commands.run("sleep 7777", timeout=1)
        find = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 777[7]' || true"
        door.atoll.wait_for("the process to be killed",
                            lambda: self.sandbox.commands.run(find).stdout == "0\n")

    def test_take_input(self):
        commands = self.sandbox.commands
        handle = commands.run("cat", background=True, stdin=True)
        commands.send_stdin(handle.pid, "one ")
        commands.stream_input(handle.pid, ["two ", b"three"])
        commands.close_stdin(handle.pid)
        self.assertEqual(handle.wait().stdout, "one two three")
        handle = commands.run("sleep 30", background=True)
        with self.assertRaises(e2b.SandboxException):
            commands.send_stdin(handle.pid, "x")
        handle.kill()

    def test_have_terminals(self):
        seen = []
        pty = self.sandbox.pty
        handle = pty.create(e2b.PtySize(rows=24, cols=80))
        pty.send_stdin(handle.pid, b"echo A$((1+1))B; tput cols\n")
        pty.resize(handle.pid, e2b.PtySize(rows=30, cols=100))
        pty.send_stdin(handle.pid, b"stty size; exit\n")
        handle.wait(on_pty=lambda data: seen.append(bytes(data)))
        text = b"".join(seen)
        self.assertIn(b"A2B", text)
        self.assertIn(b"30 100", text)
        handle = pty.create(e2b.PtySize(rows=24, cols=80))
        self.assertTrue(pty.kill(handle.pid))


class Files(door.DoorTest):
    shared = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sandbox = Sandbox.create(timeout=600)

    def test_are_written_and_read(self):
        files = self.sandbox.files
        info = files.write("notes/a ü.txt", "häß")
        self.assertEqual(info.path, "/home/user/notes/a ü.txt")
        self.assertEqual(files.read("notes/a ü.txt"), "häß")
        data = os.urandom(3_000_000)
        files.write("/tmp/big", data)
        self.assertEqual(bytes(files.read("/tmp/big", format="bytes")), data)
        self.assertEqual(b"".join(files.read("/tmp/big", format="stream")), data)
        files.write("/tmp/empty", "")
        self.assertEqual(files.read("/tmp/empty"), "")
        with self.assertRaises(e2b.FileNotFoundException):
            files.read("/tmp/no-such-file")
        with self.assertRaises(e2b.InvalidArgumentException):
            files.read("/tmp")
        many = files.write_files([{"path": f"/tmp/many/{i}", "data": str(i)} for i in range(12)])
        self.assertEqual(len(many), 12)
        self.assertEqual(files.read("/tmp/many/11"), "11")

    def test_carry_metadata_and_may_come_gzipped(self):
        files = self.sandbox.files
        files.write("/tmp/meta", "x" * 100000, metadata={"author": "me"}, gzip=True)
        self.assertEqual(files.get_info("/tmp/meta").metadata, {"author": "me"})
        self.assertEqual(files.read("/tmp/meta", gzip=True), "x" * 100000)
        files.write("/tmp/meta", "y")
        self.assertFalse(files.get_info("/tmp/meta").metadata)

    def test_are_listed_looked_at_moved_and_removed(self):
        files = self.sandbox.files
        self.assertTrue(files.make_dir("/tmp/tree/one/two"))
        self.assertFalse(files.make_dir("/tmp/tree/one/two"))
        files.write("/tmp/tree/one/f", "12345")
        self.sandbox.commands.run("ln -s one/f /tmp/tree/link")
        self.assertEqual([entry.name for entry in files.list("/tmp/tree")], ["link", "one"])
        deep = [entry.path for entry in files.list("/tmp/tree", depth=3)]
        self.assertEqual(deep, ["/tmp/tree/link", "/tmp/tree/one", "/tmp/tree/one/f",
                                "/tmp/tree/one/two"])
        info = files.get_info("/tmp/tree/one/f")
        self.assertEqual((info.size, info.owner, info.group, info.permissions, info.mode),
                         (5, "user", "user", "-rw-r--r--", 0o644))
        self.assertEqual(info.type, e2b.FileType.FILE)
        link = files.get_info("/tmp/tree/link")
        self.assertEqual(link.symlink_target, "/tmp/tree/one/f")
        self.assertTrue(link.permissions.startswith("L"))
        moved = files.rename("/tmp/tree/one/f", "/tmp/tree/new/g")
        self.assertEqual(moved.path, "/tmp/tree/new/g")
        self.assertFalse(files.exists("/tmp/tree/one/f"))
        self.assertTrue(files.exists("/tmp/tree/new/g"))
        files.remove("/tmp/tree")
        files.remove("/tmp/tree")
        self.assertFalse(files.exists("/tmp/tree"))
        for call in (lambda: files.list("/tmp/tree"), lambda: files.get_info("/tmp/tree"),
                     lambda: files.rename("/tmp/tree", "/tmp/x")):
            with self.assertRaises(e2b.FileNotFoundException):
                call()
        with self.assertRaises(e2b.InvalidArgumentException):
            files.list("/etc/passwd")

    def test_of_any_size_take_no_memory(self):
        size = (1024 if door.LONG else 256) << 20
        # With room for it: as much as a sandbox of the template has is not enough.
        answer = self.atoll.request("POST", "/v1/sandboxes", {
            "template": "python", "limits": {"disk_bytes": 3 << 30}})
        self.assertEqual(answer.status, 201, answer.body)
        sandbox = Sandbox.connect(answer.json["id"])
        self.addCleanup(sandbox.kill)
        block = os.urandom(1 << 20)
        head = (b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n")
        parts = itertools.chain([head], itertools.repeat(block, size >> 20), [b"\r\n--b--\r\n"])
        connection = http.client.HTTPConnection(*self.atoll.address.split(":"), timeout=120)
        target = sandbox.upload_url("/home/user/large").split(self.atoll.address)[1]
        connection.request("POST", target, parts, encode_chunked=True, headers={
            "Content-Type": "multipart/form-data; boundary=b", "Transfer-Encoding": "chunked"})
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()
        read = sum(len(piece) for piece in
                   sandbox.files.read("/home/user/large", format="stream"))
        self.assertEqual(read, size)
        status = door.atoll.read(f"/proc/{self.atoll.daemon_pid}/status")
        most_kib = int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))
        print(f"{size >> 20} MiB up and down left atolld at {most_kib >> 10} MiB", flush=True)
        self.assertLess(most_kib, 100 << 10)

    def test_belong_to_the_named_user(self):
        made = self.sandbox.files.write("secret", "s", user="root")  # in the home of root
        self.assertEqual(self.sandbox.files.read(made.path, user="root"), "s")
        with self.assertRaisesRegex(Exception, "[Pp]ermission denied"):
            self.sandbox.files.read(made.path)

    def test_changes_are_fetched(self):
        files = self.sandbox.files
        files.make_dir("/tmp/watched")
        files.write("/tmp/watched/f", "1")
        handle = files.watch_dir("/tmp/watched")
        files.write("/tmp/watched/f", "2")
        self.sandbox.commands.run("echo 3 >/tmp/watched/g; mv /tmp/watched/g /tmp/watched/h;"
                                  " chmod 600 /tmp/watched/h; rm /tmp/watched/h")
        events = []

        def all_seen():
            events.extend((event.name, event.type.name) for event in handle.get_new_events())
            return ("h", "REMOVE") in events
        door.atoll.wait_for("the events", all_seen)
        for wanted in (("f", "WRITE"), ("g", "CREATE"), ("g", "WRITE"), ("g", "RENAME"),
                       ("h", "CREATE"), ("h", "CHMOD"), ("h", "REMOVE")):
            self.assertIn(wanted, events)
        handle.stop()
        with self.assertRaises(e2b.SandboxException):
            handle.get_new_events()
        with self.assertRaises(e2b.NotFoundException):
            files.watch_dir("/tmp/no-such-directory")

    def test_have_signed_links(self):
        sandbox = self.sandbox
        sandbox.files.write("/tmp/linked", "by link")
        with urllib.request.urlopen(sandbox.download_url("/tmp/linked")) as answer:
            self.assertEqual(answer.read(), b"by link")
        link = sandbox.download_url("/tmp/linked", use_signature_expiration=60)
        with urllib.request.urlopen(link) as answer:
            self.assertEqual(answer.read(), b"by link")
        body = (b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n"
                b"up\r\n--b--\r\n")
        request = urllib.request.Request(
            sandbox.upload_url("/tmp/up"), body, method="POST",
            headers={"Content-Type": "multipart/form-data; boundary=b"})
        with urllib.request.urlopen(request) as answer:
            self.assertEqual(answer.status, 200)
        self.assertEqual(sandbox.files.read("/tmp/up"), "up")
        expired = sandbox.download_url("/tmp/linked", use_signature_expiration=-10)
        forged = sandbox.download_url("/tmp/linked").replace("linked", "up")
        for url in (expired, forged):
            with self.assertRaises(urllib.error.HTTPError) as raised:
                urllib.request.urlopen(url)
            self.assertEqual(raised.exception.code, 401)


class Asynchronous(door.DoorTest):
    shared = True

    def test_the_same_without_threads(self):
        async def use():
            sandbox = await AsyncSandbox.create(timeout=120)
            events = []
            await sandbox.files.make_dir("/tmp/w")
            handle = await sandbox.files.watch_dir("/tmp/w", on_event=events.append,
                                                   recursive=True)
            await sandbox.files.make_dir("/tmp/w/sub")
            results = await asyncio.gather(*[sandbox.commands.run(f"echo {i}") for i in range(20)])
            self.assertEqual([r.stdout for r in results], [f"{i}\n" for i in range(20)])
            await sandbox.commands.run("touch /tmp/w/sub/file")
            for _ in range(100):
                if any(event.name == "sub/file" for event in events):
                    break
                await asyncio.sleep(0.05)
            self.assertIn("sub/file", [event.name for event in events])
            await handle.stop()
            self.assertTrue(await sandbox.kill())
        asyncio.run(use())


if __name__ == "__main__":
    door.atoll.main()
