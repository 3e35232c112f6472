"""Pause, snapshots and forks on the real kernel."""
import datetime
import glob
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atoll  # noqa: E402
import paused_time  # noqa: E402

# Prints a number every few milliseconds, for ever, and keeps its state in memory.
COUNTER = "import time, os\nn = 0\nwhile True:\n print(os.getpid(), n, flush=True)\n n += 1\n" \
          " time.sleep(0.02)"


LONG = os.environ.get("ATOLL_TEST_LONG") == "1"


def available_kib():
    return int(atoll.read("/proc/meminfo").split("MemAvailable:")[1].split()[0])


class Pause(atoll.SystemTest):
    def call(self, method, path, body=None, expect=200):
        answer = self.atoll.request(method, path, body)
        self.assertEqual(answer.status, expect, answer.body)
        return answer.json if answer.body else None

    def pause(self, sandbox):
        shown = self.call("POST", f"/v1/sandboxes/{sandbox}/pause")
        self.assertEqual((shown["state"], shown["ends_at"]), ("paused", None))

    def resume(self, sandbox):
        self.assertEqual(self.call("POST", f"/v1/sandboxes/{sandbox}/resume")["state"], "running")

    def cpu_us(self, sandbox):
        pattern = f"/sys/fs/cgroup/**/atoll/*/{sandbox}/run/cpu.stat"
        stat = atoll.read(glob.glob(pattern, recursive=True)[0])
        return int(stat.split("usage_usec ")[1].split()[0])

    def lines(self, sandbox, exec_id):
        return self.atoll.output(sandbox, exec_id).decode().splitlines()

    def kill(self, pid_of, pid):
        os.kill(pid, signal.SIGKILL)
        atoll.wait_for("a new process", lambda: (getattr(self.atoll, pid_of) or pid) != pid)
        self.atoll.close()
        self.atoll.wait_ready()

    def test_programs_stand_still_with_their_pids_whoever_dies(self):
        sandbox = self.atoll.create()["id"]
        counter = self.atoll.start(sandbox, ["python3", "-c", COUNTER])["id"]
        atoll.wait_for("numbers", lambda: len(self.lines(sandbox, counter)) > 5)
        self.pause(sandbox)
        # What was printed before may still be under way.
        before = atoll.settled(lambda: self.lines(sandbox, counter))
        cpu = self.cpu_us(sandbox)
        time.sleep(0.3)
        self.kill("daemon_pid", self.atoll.daemon_pid)
        self.kill("warden_pid", self.atoll.warden_pid)
        shown = self.call("GET", f"/v1/sandboxes/{sandbox}")
        self.assertEqual(shown["state"], "paused")
        self.assertEqual(self.cpu_us(sandbox), cpu, "it used the processor")
        self.assertEqual(self.lines(sandbox, counter), before, "it printed")
        # Who waits for its process has not waited for its socket.
        atoll.wait_for("the warden", lambda: self.atoll.request(
            "POST", f"/v1/sandboxes/{sandbox}/resume").status == 200)
        after = atoll.wait_for("more numbers", lambda: (
            lambda lines: len(lines) > len(before) + 5 and lines)(self.lines(sandbox, counter)))
        pid = before[0].split()[0]
        self.assertEqual(after, [f"{pid} {n}" for n in range(len(after))], "nothing lost or anew")
        self.atoll.delete(sandbox)

    def test_frozen_time_is_nobodys_wall_time(self):
        """Of an exec and of a run; atolld dies meanwhile: the rest of the time is on the rows."""
        sandbox = self.atoll.create()["id"]
        context = self.call("POST", f"/v1/sandboxes/{sandbox}/contexts", {"language": "python"},
                            201)["id"]
        runs = f"/v1/sandboxes/{sandbox}/contexts/{context}/runs"
        code = "import os, time\n" \
               f"while not os.path.exists('{paused_time.GO_ON}'): time.sleep(0.05)\nprint('done')"
        for timeout_ms in (2000, 4000, 8000, 16000):  # more where the host is too slow to tell
            pausing = paused_time.Pausing(self.atoll, sandbox, timeout_ms)
            run = self.call("POST", runs, {"code": code, "timeout_ms": timeout_ms, "wait": False},
                            202)["run"]
            exec_id = self.atoll.start(sandbox, ["sh", "-c", paused_time.WAIT],
                                       timeout_ms=timeout_ms)["id"]
            pausing.pause(lambda: self.kill("daemon_pid", self.atoll.daemon_pid))
            ended = [self.atoll.wait_ended(sandbox, exec_id),
                     self.call("GET", f"{runs}/{run}?wait_ms=60000")]
            pausing.end()
            if all([pausing.is_fair(each["verdict"]) for each in ended]):
                break
        for each in ended:
            self.assertEqual((each["verdict"], each["stdout"]), ("ok", "done\n"))
            self.assertLessEqual(each["usage"]["wall_ms"], pausing.awake_ms + 1)
        self.atoll.delete(sandbox)

    def test_use_is_refused_or_wakes(self):
        for auto_resume in (False, True):
            sandbox = self.atoll.create(auto_resume=auto_resume)["id"]
            home = f"/v1/sandboxes/{sandbox}"
            server = "import http.server as h; h.HTTPServer(('', 8000), " \
                     "h.SimpleHTTPRequestHandler).serve_forever()"
            self.atoll.start(sandbox, ["python3", "-c", server])
            atoll.wait_for("the server", lambda: self.atoll.request(
                "GET", f"{home}/ports/8000/").status == 200)
            uses = [("POST", f"{home}/execs", {"cmd": ["true"], "wait": True}),
                    ("GET", f"{home}/files/tmp?list", None),
                    ("PUT", f"{home}/files/tmp/file", b"bytes"),
                    ("POST", f"{home}/contexts", {"language": "python"}),
                    ("POST", f"{home}/execs/e1/signal", {"signal": "CONT"}),
                    ("GET", f"{home}/ports/8000/", None)]
            for method, path, body in uses:
                self.pause(sandbox)
                kind = {"Content-Type": "application/octet-stream"} if body == b"bytes" else None
                answer = self.atoll.request(method, path, body, headers=kind)
                if auto_resume:
                    self.assertIn(answer.status, (200, 201, 204), (path, answer.body))
                    self.assertEqual(self.call("GET", home)["state"], "running", path)
                else:
                    error = answer.json["error"]
                    self.assertEqual((answer.status, error["code"]), (409, "sandbox_paused"), path)
                    self.assertIn("/resume", error["remedy"])
            self.assertEqual(self.call("GET", f"{home}/execs")["execs"][0]["id"], "e1",
                             "what is stored can be read")
            self.atoll.delete(sandbox)

    def test_the_end_of_a_ttl_may_pause(self):
        sandbox = self.atoll.create(on_ttl="pause", auto_resume=True)["id"]
        home = f"/v1/sandboxes/{sandbox}"
        counter = self.atoll.start(sandbox, ["python3", "-c", COUNTER])["id"]
        self.call("PATCH", home, {"ttl_ms": 100})
        atoll.wait_for("the pause", lambda: self.call("GET", home)["state"] == "paused")
        listed = self.call("GET", "/v1/sandboxes?state=paused")["sandboxes"]
        self.assertIn(sandbox, [row["id"] for row in listed])
        self.call("PATCH", home, {"ttl_ms": 600_000})
        before = time.time()
        self.assertEqual(self.atoll.execute(sandbox, ["echo", "on"])["stdout"], "on\n")
        ends_at = datetime.datetime.fromisoformat(self.call("GET", home)["ends_at"].replace(
            "Z", "+00:00"))
        self.assertGreaterEqual(ends_at.timestamp(), before + 599.9, "the ttl counts anew")
        self.assertEqual(self.atoll.show_exec(sandbox, counter)["state"], "running")
        self.atoll.delete(sandbox)

    def released(self, sandbox):
        shown = self.call("GET", f"/v1/sandboxes/{sandbox}")
        return shown["pause"] and not shown["pause"]["memory"] and shown

    def test_memory_is_given_back_where_that_is_allowed(self):
        never = self.atoll.create()["id"]
        sandbox = self.atoll.create(files_only_after_ms=300, name="sleeper")["id"]
        home = f"/v1/sandboxes/{sandbox}"
        context = self.call("POST", f"{home}/contexts", {
            "language": "python", "cwd": "/tmp", "env": {"GREETING": "hello"}}, 201)["id"]
        runs = f"{home}/contexts/{context}/runs"
        self.call("POST", runs, {"code": "known = 1", "wait": True})
        counter = self.atoll.start(sandbox, ["python3", "-c", COUNTER])["id"]
        self.atoll.execute(sandbox, ["sh", "-c", "cd /home/user; echo kept >file; chmod 640 file"])
        self.pause(never)
        self.pause(sandbox)
        shown = atoll.wait_for("its memory to be given back", lambda: self.released(sandbox))
        lost = {(one["what"], one["id"]) for one in shown["pause"]["not_carried"]}
        self.assertEqual(lost, {("exec", counter), ("context_state", context)})
        self.assertEqual((shown["state"], shown["generation"]), ("paused", 1))
        groups = glob.glob(f"/sys/fs/cgroup/**/atoll/*/{sandbox}", recursive=True)
        self.assertEqual(groups, [], "something of it is left")
        self.assertEqual(self.atoll.show_exec(sandbox, counter)["verdict"], "sandbox_gone")
        self.assertTrue(self.call("GET", f"/v1/sandboxes/{never}")["pause"]["memory"])
        for method, path, body in (("POST", f"{home}/execs", {"cmd": ["true"]}),
                                   ("GET", f"{home}/files/home/user/file", None),
                                   ("POST", runs, {"code": "1"}),
                                   ("GET", f"{home}/receipt", None)):
            error = self.call(method, path, body, 409)["error"]
            self.assertEqual(error["code"], "sandbox_paused", path)
        self.assertEqual([one["id"] for one in self.call("GET", f"{home}/contexts")["contexts"]],
                         [context])
        self.kill("warden_pid", self.atoll.warden_pid)
        self.kill("daemon_pid", self.atoll.daemon_pid)
        self.assertTrue(self.released(sandbox))
        resumed = self.call("POST", f"{home}/resume")
        self.assertEqual((resumed["state"], resumed["generation"], resumed["pause"]),
                         ("running", 2, None))
        self.assertEqual({(one["what"], one["id"]) for one in resumed["not_carried"]}, lost)
        self.assertEqual(self.atoll.execute(sandbox, ["sh", "-c", "cat /home/user/file; stat -c %a "
                                                      "/home/user/file"])["stdout"], "kept\n640\n")
        code = "import os; print('known' in globals(), os.getcwd(), os.environ['GREETING'])"
        run = self.call("POST", runs, {"code": code, "wait": True})
        self.assertEqual(run["stdout"], "False /tmp hello\n")
        # And again, by the command line.
        self.pause(sandbox)
        atoll.wait_for("its memory to be given back", lambda: self.released(sandbox))
        done = self.atoll.cli("resume", "sleeper")
        self.assertIn(b"context_state " + context.encode() + b" is lost", done.stderr)
        for each in (sandbox, never):
            self.atoll.delete(each)
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])

    def test_a_use_wakes_what_has_only_its_files(self):
        made = self.atoll.cli("create", "--auto-resume", "--files-only-after", "200ms")
        sandbox = made.stdout.decode().strip()
        self.atoll.execute(sandbox, ["sh", "-c", "mkdir /tmp/outputs; echo out >/tmp/outputs/kept"])
        self.pause(sandbox)
        atoll.wait_for("its memory to be given back", lambda: self.released(sandbox))
        self.assertEqual(self.atoll.execute(sandbox, ["cat", "/tmp/outputs/kept"])["stdout"],
                         "out\n")
        self.pause(sandbox)
        atoll.wait_for("its memory to be given back", lambda: self.released(sandbox))
        # Its artifacts are kept when it is deleted, as of any.
        self.atoll.delete(sandbox)
        kept = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}/artifacts/kept")
        self.assertEqual((kept.status, kept.body), (200, b"out\n"))
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])

    def test_what_has_only_its_files_is_deleted_without_a_start(self):
        sandbox = self.atoll.create(files_only_after_ms=1)["id"]
        self.atoll.execute(sandbox, ["sh", "-c", "echo kept >/home/user/file"])
        self.pause(sandbox)
        atoll.wait_for("its memory to be given back", lambda: self.released(sandbox))
        # The warden makes a record of each isolate here before anything else of it.
        records = os.path.join(self.atoll.run_directory, "isolates")
        before = os.stat(records).st_mtime_ns
        self.atoll.delete(sandbox)
        self.assertEqual(os.stat(records).st_mtime_ns, before, "it was started")
        self.call("GET", f"/v1/sandboxes/{sandbox}", expect=404)
        self.assertEqual(self.atoll.subvolumes(), [])

    def test_what_has_only_its_files_is_kept_forked_and_compared(self):
        sandbox = self.atoll.create(files_only_after_ms=1)["id"]
        home = f"/v1/sandboxes/{sandbox}"
        self.atoll.execute(sandbox, ["sh", "-c", "cd /home/user; echo one >file"])
        first = self.call("POST", f"{home}/snapshots", {}, 201)["id"]
        self.atoll.execute(sandbox, ["sh", "-c", "cd /home/user; echo two >file; echo >more"])
        self.pause(sandbox)
        atoll.wait_for("its memory to be given back", lambda: self.released(sandbox))
        kept = self.call("POST", f"{home}/snapshots", {"label": "at rest"}, 201)
        self.assertEqual(kept["parent"], first)
        diff = self.call("GET", f"{home}/diff?from={first}&path=/home/user")
        told = {(change["what"], change["path"]) for change in diff["changes"]}
        self.assertEqual(told, {("changed", "/home/user/file"), ("added", "/home/user/more")})
        children = [each["id"] for each in
                    self.call("POST", f"{home}/fork", {"count": 3}, 201)["sandboxes"]]
        children.append(self.call("POST", "/v1/sandboxes", {"snapshot": kept["id"]}, 201)["id"])
        for child in children:
            done = self.atoll.execute(child, ["sh", "-c", "cat ~/file; echo mine >~/file"])
            self.assertEqual(done["stdout"], "two\n")
        groups = glob.glob(f"/sys/fs/cgroup/**/atoll/*/{sandbox}", recursive=True)
        self.assertEqual(groups, [], "it was woken")
        self.assertTrue(self.released(sandbox))
        self.call("POST", f"{home}/resume")
        self.assertEqual(self.atoll.execute(sandbox, ["cat", "/home/user/file"])["stdout"],
                         "two\n")
        for each in (sandbox, *children):
            self.atoll.delete(each)
        for each in (kept["id"], first):
            self.call("DELETE", f"/v1/snapshots/{each}", expect=204)
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])

    def test_who_was_paused_first_makes_room(self):
        """As much as the host may promise is four times its memory, which no sandbox can have more
        of. Two take most of half of it; each of the others asks for two fifths of the rest."""
        total = next(int(line.split()[1]) for line in atoll.read("/proc/meminfo").splitlines()
                     if line.startswith("MemTotal:"))
        held = [self.atoll.create(limits={"memory_bytes": total * 1024 * 95 // 100})["id"]
                for _ in range(2)]
        limits = {"memory_bytes": total * 1024 * 21 // 10 * 2 // 5}
        made = self.atoll.cli("create", "--files-only-under-pressure").stdout.decode().strip()
        self.call("PATCH", f"/v1/sandboxes/{made}", {"limits": limits})
        sandboxes = [made, self.atoll.create(limits=limits, files_only_under_pressure=True)["id"]]
        for each in sandboxes:
            self.atoll.execute(each, ["sh", "-c", f"echo {each} >/home/user/file"])
            self.pause(each)
        keeps = self.atoll.create()["id"]
        self.pause(keeps)
        time.sleep(1.5)
        self.assertFalse(any(self.released(each) for each in sandboxes), "nothing was short")
        third = self.atoll.create(limits=limits)["id"]
        self.assertEqual([bool(self.released(each)) for each in sandboxes], [True, False])
        self.call("POST", f"/v1/sandboxes/{sandboxes[0]}/resume")
        self.assertTrue(self.released(sandboxes[1]), "one that goes on needs room too")
        self.assertEqual(self.atoll.execute(sandboxes[0], ["cat", "/home/user/file"])["stdout"],
                         sandboxes[0] + "\n")
        body = {"template": "python", "limits": limits}
        error = self.call("POST", "/v1/sandboxes", body, 503)["error"]
        self.assertEqual(error["code"], "no_capacity")
        self.assertTrue(self.call("GET", f"/v1/sandboxes/{keeps}")["pause"]["memory"])
        self.atoll.delete(third)
        self.call("POST", f"/v1/sandboxes/{sandboxes[1]}/resume")
        self.assertEqual(self.atoll.execute(sandboxes[1], ["cat", "/home/user/file"])["stdout"],
                         sandboxes[1] + "\n")
        for each in (*sandboxes, *held, keeps):
            self.atoll.delete(each)
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])

    def test_many_pauses_at_once_and_the_command_line(self):
        sandbox = self.atoll.create(name="work")["id"]
        counter = self.atoll.start(sandbox, ["python3", "-c", COUNTER])["id"]
        failures = []

        def toggle(verb):
            client = atoll.Atoll(self.atoll.directory)
            for _ in range(20):
                answer = client.request("POST", f"/v1/sandboxes/{sandbox}/{verb}")
                if answer.status != 200:
                    failures.append(answer.body)
            client.close()
        threads = [threading.Thread(target=toggle, args=(verb,))
                   for verb in ("pause", "resume") * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])
        self.atoll.cli("pause", "work")
        self.assertIn(b"paused", self.atoll.cli("ls").stdout)
        before = len(self.lines(sandbox, counter))
        self.atoll.cli("resume", "work")
        atoll.wait_for("numbers", lambda: len(self.lines(sandbox, counter)) > before)
        self.atoll.cli("pause", "work")
        self.atoll.cli("rm", "work")


class Snapshots(atoll.SystemTest):
    def call(self, method, path, body=None, expect=200):
        answer = self.atoll.request(method, path, body)
        self.assertEqual(answer.status, expect, answer.body)
        return answer.json if answer.body else None

    def cut(self, sandbox, **body):
        return self.call("POST", f"/v1/sandboxes/{sandbox}/snapshots", body, 201)

    def create_from(self, snapshot, expect=201, **fields):
        return self.call("POST", "/v1/sandboxes", {"snapshot": snapshot, **fields}, expect)

    def sh(self, sandbox, line, **fields):
        done = self.atoll.execute(sandbox, ["sh", "-c", line], **fields)
        return done["stdout"]

    def remove_all(self):
        for each in self.call("GET", "/v1/sandboxes?limit=1000")["sandboxes"]:
            self.atoll.delete(each["id"])
        for each in self.call("GET", "/v1/snapshots?limit=1000")["snapshots"]:
            self.call("DELETE", f"/v1/snapshots/{each['id']}?children=adopt", expect=204)
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])

    def tearDown(self):
        self.remove_all()

    def test_files_come_back_as_they_were(self):
        sandbox = self.atoll.create()["id"]
        self.sh(sandbox, "echo one >/home/user/file; chmod 640 /home/user/file; mkdir /home/user/d;"
                         "ln -s file /home/user/link; rm /etc/debian_version; echo run >/run/gone",
                user="root")
        look = "cd /home/user; stat -c '%n %F %a %u' *; readlink link; cat file; " \
               "ls -d /etc/debian_version " \
               "/run/gone 2>&1 | sort"
        before = self.sh(sandbox, look)
        snapshot = self.cut(sandbox, label="first", metadata={"k": "v"})
        self.assertEqual((snapshot["label"], snapshot["metadata"], snapshot["parent"],
                          snapshot["memory"], snapshot["stage"]),
                         ("first", {"k": "v"}, None, False, "local"))
        self.sh(sandbox, "echo two >/home/user/file; rm /home/user/link", user="root")
        made = self.create_from(snapshot["id"])["id"]
        self.assertIn("\n/run/gone\n", before)
        missing = "ls: cannot access '/run/gone': No such file or directory"
        self.assertEqual(sorted(self.sh(made, look).splitlines()),
                         sorted(before.replace("/run/gone", missing).splitlines()))
        now = self.sh(sandbox, "cat /home/user/file", user="root")
        self.assertEqual(now, "two\n", "it went on by itself")
        self.sh(made, "echo three >/home/user/file", user="root")
        again = self.create_from(snapshot["id"])["id"]
        self.assertEqual(self.sh(again, "cat /home/user/file", user="root"), "one\n", "it changed")

    def test_it_outlives_the_sandbox_and_every_process(self):
        sandbox = self.atoll.create()["id"]
        self.sh(sandbox, "echo kept >/home/user/file")
        snapshot = self.cut(sandbox)["id"]
        self.atoll.delete(sandbox)
        self.atoll.down()
        self.atoll.up()
        self.assertEqual([row["id"] for row in self.call("GET", "/v1/snapshots")["snapshots"]],
                         [snapshot])
        made = self.create_from(snapshot)["id"]
        self.assertEqual(self.sh(made, "cat /home/user/file"), "kept\n")

    def test_what_is_written_before_is_in_it_and_what_runs_goes_on(self):
        sandbox = self.atoll.create()["id"]
        counter = "i=0; while :; do i=$((i+1)); echo $i >>/home/user/log; done"
        writer = self.atoll.start(sandbox, ["sh", "-c", counter])["id"]
        atoll.wait_for("lines", lambda: self.sh(sandbox, "wc -l </home/user/log 2>&1") > "1")
        made = self.create_from(self.cut(sandbox)["id"])["id"]
        lines = self.sh(made, "tail -n 1000 /home/user/log").splitlines()
        first = int(lines[0])
        self.assertEqual(lines, [str(first + n) for n in range(len(lines))], "whole, no gap")
        self.assertEqual(self.atoll.show_exec(sandbox, writer)["state"], "running")
        now = int(self.sh(sandbox, "wc -l </home/user/log"))
        atoll.wait_for("more lines", lambda: int(self.sh(sandbox, "wc -l </home/user/log")) > now)

    def test_byte_limits_hold(self):
        limits = {"disk_bytes": 64 << 20}
        sandbox = self.atoll.create(limits=limits)["id"]
        self.sh(sandbox, "head -c 40000000 /dev/urandom >/home/user/forty; sync")
        snapshot = self.cut(sandbox)
        self.assertGreaterEqual(snapshot["bytes"], 40000000)
        self.assertLess(snapshot["bytes"], 50000000)
        made = self.create_from(snapshot["id"], limits=limits)["id"]
        more = ["sh", "-c", "head -c 40000000 /dev/urandom >/home/user/more"]
        done = self.atoll.execute(made, more)
        self.assertEqual(done["verdict"], "disk_limit", done)
        roomy = self.create_from(snapshot["id"], limits={"disk_bytes": 128 << 20})["id"]
        self.assertEqual(self.sh(roomy, "head -c 40000000 /dev/urandom >/home/user/more; echo $?"),
                         "0\n")
        error = self.create_from(snapshot["id"], 400, limits={"disk_bytes": 16 << 20})["error"]
        self.assertEqual(error["field"], "limits.disk_bytes")

    def test_fork_makes_many_that_differ_in_what_must_differ(self):
        sandbox = self.atoll.create(metadata={"k": "v"})["id"]
        self.sh(sandbox, "echo shared >/home/user/file")
        context = self.call("POST", f"/v1/sandboxes/{sandbox}/contexts",
                            {"language": "python", "cwd": "/tmp", "env": {"A": "b"}}, 201)["id"]
        running = self.atoll.start(sandbox, ["sleep", "60"])["id"]
        forked = self.call("POST", f"/v1/sandboxes/{sandbox}/fork", {"count": 3}, 201)
        left = {(one["what"], one["id"]) for one in forked["not_carried"]}
        self.assertEqual(left, {("exec", running), ("context_state", context)})
        ids = [one["id"] for one in forked["sandboxes"]]
        self.assertEqual(len(set(ids)), 3)
        draws = set()
        for child in ids:
            self.assertEqual(self.sh(child, "cat /home/user/file"), "shared\n")
            home = f"/v1/sandboxes/{child}/contexts"
            contexts = self.call("GET", home)["contexts"]
            self.assertEqual([(one["language"], one["cwd"]) for one in contexts],
                             [("python", "/tmp")])
            code = "import os, random, socket; print(os.environ['A'], os.getcwd(), " \
                   "random.random(), os.urandom(8).hex(), socket.gethostname())"
            run = self.call("POST", f"{home}/{contexts[0]['id']}/runs",
                            {"code": code, "wait": True})
            words = run["stdout"].split()
            self.assertEqual(words[:2], ["b", "/tmp"])
            draws.add(tuple(words[2:]))
            self.sh(child, "echo own >/home/user/file")
        self.assertEqual([len({draw[i] for draw in draws}) for i in range(3)], [3, 3, 3])
        self.assertEqual(self.sh(sandbox, "cat /home/user/file"), "shared\n")
        self.assertEqual(self.call("GET", "/v1/snapshots")["snapshots"], [])
        self.assertEqual(len(self.atoll.subvolumes()), 4)

    def roll_back(self, sandbox, snapshot, expect=200):
        path = f"/v1/sandboxes/{sandbox}/rollback"
        return self.call("POST", path, {"snapshot": snapshot}, expect)

    def test_rollback_can_be_undone_and_undone_again(self):
        made = self.atoll.create(name="work", limits={"disk_bytes": 64 << 20})
        sandbox = made["id"]
        self.sh(sandbox, "echo one >/home/user/file; echo old >/home/user/old")
        first = self.cut(sandbox)["id"]
        self.sh(sandbox, "echo two >/home/user/file; rm /home/user/old; rm /etc/debian_version",
                user="root")
        running = self.atoll.start(sandbox, ["sleep", "600"])["id"]
        contexts = f"/v1/sandboxes/{sandbox}/contexts"
        context = self.call("POST", contexts, {"language": "python", "cwd": "/tmp"}, 201)["id"]
        runs = f"{contexts}/{context}/runs"
        self.call("POST", runs, {"code": "x = 7", "wait": True})
        done = self.roll_back(sandbox, first)
        self.assertEqual({(one["what"], one["id"]) for one in done["not_carried"]},
                         {("exec", running), ("context_state", context)})
        after = done["sandbox"]
        self.assertEqual((after["id"], after["name"], after["state"], after["generation"]),
                         (sandbox, "work", "running", made["generation"] + 1))
        self.assertEqual(self.atoll.show_exec(sandbox, running)["verdict"], "sandbox_gone")
        look = "cat /home/user/file; ls -d /home/user/old /etc/debian_version 2>&1"
        self.assertEqual(self.sh(sandbox, look), "one\n/etc/debian_version\n/home/user/old\n")
        run = self.call("POST", runs, {"code": "import os; print('x' in dir(), os.getcwd())",
                                       "wait": True})
        self.assertEqual((run["verdict"], run["stdout"]), ("ok", "False /tmp\n"))
        self.sh(sandbox, "echo three >/home/user/file")
        again = self.roll_back(sandbox, done["undo"])
        self.assertEqual(self.sh(sandbox, "cat /home/user/file; ls /home/user/old 2>&1"),
                         "two\nls: cannot access '/home/user/old': No such file or directory\n")
        self.roll_back(sandbox, again["undo"])
        self.assertEqual(self.sh(sandbox, "cat /home/user/file"), "three\n")
        more = ["sh", "-c", "head -c 80000000 /dev/zero >/home/user/more"]
        self.assertEqual(self.atoll.execute(sandbox, more)["verdict"], "disk_limit")
        self.assertEqual(self.call("GET", "/v1/sandboxes/work")["id"], sandbox)

    def test_rollback_is_refused_to_another_line(self):
        sandbox, other = self.atoll.create()["id"], self.atoll.create()["id"]
        foreign = self.cut(other)["id"]
        error = self.roll_back(sandbox, foreign, 409)["error"]
        self.assertEqual(error["code"], "snapshot_of_another_line")
        self.roll_back(sandbox, "n" + "a" * 19, 404)
        child = self.create_from(foreign)["id"]
        self.sh(child, "echo own >/home/user/own")
        self.roll_back(child, foreign)  # what it came from
        self.assertEqual(self.sh(child, "ls /home/user"), "")
        self.call("POST", f"/v1/sandboxes/{child}/pause")
        self.assertEqual(self.roll_back(child, foreign, 409)["error"]["code"], "sandbox_paused")
        # What was kept by itself goes with its sandbox; what was asked for stays.
        self.assertEqual(len(self.call("GET", "/v1/snapshots")["snapshots"]), 2)
        self.atoll.delete(child)
        expired = self.atoll.create(ttl_ms=1)["id"]
        atoll.wait_for("the sweep", lambda: [row["id"] for row in self.call(
            "GET", "/v1/snapshots")["snapshots"]] == [foreign])
        atoll.wait_for("the end of the expired one", lambda: self.atoll.request(
            "GET", f"/v1/sandboxes/{expired}").status == 404)

    def changes(self, path):
        found = self.call("GET", path)
        return {(one["what"], one["path"], one["size_before"], one["size"])
                for one in found["changes"]}

    def test_diff_of_large_files_takes_no_memory(self):
        sandbox = self.atoll.create()["id"]
        self.sh(sandbox, "cd /home/user; head -c 100M /dev/zero | tee same >last")
        first = self.cut(sandbox)["id"]
        self.sh(sandbox, "cd /home/user; touch same; "
                         "printf x | dd of=last bs=1 seek=104857599 conv=notrunc status=none")
        live = f"/v1/sandboxes/{sandbox}/diff?from={first}&path=/home/user"
        size = 100 << 20
        self.assertEqual(self.changes(live), {("changed", "/home/user/last", size, size)})
        status = atoll.read(f"/proc/{self.atoll.daemon_pid}/status")
        peak_kib = int(status.split("VmHWM:")[1].split()[0])
        self.assertLess(peak_kib, 100 << 10)

    def test_diff_tells_what_was_added_changed_and_removed(self):
        sandbox = self.atoll.create()["id"]
        self.sh(sandbox, "cd /home/user; echo one >a; echo same >b; echo gone >c; mkdir d; "
                         "echo mode >e; echo link >f; seq 9 >g; echo aaaa >h")
        first = self.cut(sandbox)["id"]
        self.sh(sandbox, "cd /home/user; echo three >a; touch -d 2001-01-01 b; rm c; rmdir d; "
                         "chmod 600 e; rm f; ln -s e f; sed -i s/5/five/ g; echo new >/tmp/new; "
                         "touch -r h t; echo bbbb >h; touch -r t h; rm t; rm /etc/debian_version",
                user="root")
        home = "/home/user"
        expected = {("changed", f"{home}/a", 4, 6), ("removed", f"{home}/c", 5, None),
                    ("removed", f"{home}/d", None, None), ("changed", f"{home}/e", 5, 5),
                    ("changed", f"{home}/f", 5, None), ("changed", f"{home}/g", 18, 21),
                    ("changed", f"{home}/h", 5, 5), ("added", "/tmp/new", None, 4)}
        live = f"/v1/sandboxes/{sandbox}/diff"
        found = self.changes(live)
        version = {one for one in found if one[1] == "/etc/debian_version"}
        self.assertEqual({one[0] for one in version}, {"removed"})
        self.assertEqual(found - version, expected)
        self.assertEqual(self.changes(f"{live}?from={first}&path=/tmp"),
                         {("added", "/tmp/new", None, 4)})
        text = self.call("GET", f"{live}?from={first}&text={home}/g")["diff"]
        self.assertIn("@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n", text)
        second = self.cut(sandbox)["id"]
        self.assertEqual(self.changes(live), set(), "it is as it was last kept")
        self.assertEqual(self.changes(f"/v1/snapshots/{first}/diff?to={second}"), found)
        back = self.changes(f"/v1/snapshots/{second}/diff?to={first}")
        self.assertEqual({one[:2] for one in back if one[0] == "added"},
                         {("added", f"{home}/c"), ("added", f"{home}/d"),
                          ("added", "/etc/debian_version")})
        short = self.call("GET", f"{live}?from={first}&limit=2")
        self.assertEqual((len(short["changes"]), short["truncated"]), (2, True))
        self.assertEqual(len(self.call("GET", "/v1/sandboxes")["sandboxes"]), 1)
        self.assertEqual(len(self.call("GET", "/v1/snapshots")["snapshots"]), 2)

    def test_a_checkpoint_before_each_step(self):
        sandbox = self.atoll.create(checkpoint="each")["id"]
        for number in range(3):
            self.sh(sandbox, f"echo {number} >/home/user/file")
        context = self.call("POST", f"/v1/sandboxes/{sandbox}/contexts", {}, 201)["id"]
        self.call("POST", f"/v1/sandboxes/{sandbox}/contexts/{context}/runs",
                  {"code": "open('/home/user/file', 'w').write('9')", "wait": True})
        kept = self.call("GET", f"/v1/snapshots?sandbox={sandbox}")["snapshots"]
        self.assertEqual([one["reason"] for one in kept], ["checkpoint"] * 4)
        self.roll_back(sandbox, kept[2]["id"])  # as before the third
        self.assertEqual(self.sh(sandbox, "cat /home/user/file"), "1\n")
        self.call("PATCH", f"/v1/sandboxes/{sandbox}", {"checkpoint": "none"})
        before = len(self.call("GET", "/v1/snapshots")["snapshots"])
        self.sh(sandbox, "true")
        self.assertEqual(len(self.call("GET", "/v1/snapshots")["snapshots"]), before)

    def test_the_command_line_goes_back_and_compares(self):
        self.atoll.create(name="work")
        def run(*words):
            return self.atoll.cli(*words).stdout.decode()
        first = run("snapshot", "create", "work").strip()
        self.atoll.cli("exec", "work", "--", "sh", "-c", "echo text >/home/user/file")
        self.assertEqual(run("diff", "work").split(), ["+", "5", "/home/user/file"])
        self.assertIn("+text", run("diff", first, "work", "--text", "/home/user/file"))
        undo = run("rollback", "work", first).strip()
        self.assertEqual(run("diff", first, "work"), "")
        self.assertIn("/home/user/file", run("diff", first, undo))

    def test_the_command_line_draws_a_tree(self):
        self.atoll.create(name="work")
        def run(*words):
            return self.atoll.cli(*words).stdout.decode().strip()
        first = run("snapshot", "create", "work", "--label", "first")
        second = run("snapshot", "create", "work")
        made = run("create", "--snapshot", first)
        third = run("snapshot", "create", made)
        tree = self.atoll.cli("snapshot", "tree").stdout.decode().splitlines()
        self.assertTrue(tree[0].startswith(first) and "first" in tree[0], tree)
        self.assertTrue(tree[1].startswith("├─ " + second), tree)
        self.assertTrue(tree[2].startswith("└─ " + third), tree)
        self.assertIn(second, self.atoll.cli("snapshot", "ls", "work").stdout.decode())
        self.assertNotEqual(self.atoll.cli("snapshot", "rm", first, check=False).returncode, 0)
        self.atoll.cli("snapshot", "rm", first, "--adopt")
        self.assertEqual(self.call("GET", f"/v1/snapshots/{second}")["parent"], None)
        self.assertEqual(len(self.atoll.cli("fork", "work", "-n", "2").stdout.split()), 2)

    def test_many_forks_in_one_call(self):
        """All of them, with draws of their own. The figures of a hundred are printed, and judged in
        the long run."""
        count = 100 if LONG else 10
        sandbox = self.atoll.create()["id"]
        self.sh(sandbox, "echo shared >/home/user/file")
        free = available_kib()
        begin = time.monotonic()
        forked = self.call("POST", f"/v1/sandboxes/{sandbox}/fork", {"count": count}, 201)
        took = time.monotonic() - begin
        each = (free - available_kib()) / count / 1024
        ids = {child["id"] for child in forked["sandboxes"]}
        self.assertEqual(len(ids), count)
        print(f"{count} forks in one call: {took:.2f} s, {each:.1f} MiB each, parent frozen for "
              f"{forked['frozen_ms']} ms", flush=True)
        code = "import os, random, uuid; print(random.random(), os.urandom(8).hex(), uuid.uuid4())"
        draws = [self.atoll.python(child, code)["stdout"].split() for child in sorted(ids)]
        self.assertEqual([len(set(column)) for column in zip(*draws)], [count] * 3)
        if LONG:
            self.assertLessEqual(took, 2 * atoll.SLOW)
            self.assertLessEqual(each, 8)


if __name__ == "__main__":
    atoll.main()
