"""The path of one request: create, run, verdict, delete; and what the program sees."""
import glob
import json
import os
import unittest

import atoll

FACTS = r"""
import json, os, socket
lines = open("/proc/self/status").read().splitlines()
status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
def attempt(action):
    try:
        action()
        return "succeeded"
    except OSError as error:
        return error.strerror
print(json.dumps({
    "uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(),
    "capabilities": [status["Cap" + name].strip() for name in ("Inh", "Prm", "Eff", "Bnd", "Amb")],
    "no_new_privs": status["NoNewPrivs"].strip(),
    "namespaces": {name: os.readlink("/proc/self/ns/" + name) for name in
                   ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time")},
    "pids": [int(name) for name in os.listdir("/proc") if name.isdigit()],
    "interfaces": [line.split(":")[0].strip() for line in list(open("/proc/net/dev"))[2:]],
    "fds": sorted(os.listdir("/proc/self/fd")),
    "hostname": socket.gethostname(),
    "home": os.environ["HOME"], "cwd": os.getcwd(),
    "devices": sorted(os.listdir("/dev")),
    "connect": attempt(lambda: socket.create_connection(("1.1.1.1", 80), timeout=2)),
    "write_image": attempt(lambda: open("/usr/bin/x", "w")),
    "write_home": attempt(lambda: open("/home/user/x", "w")),
    "mounts": open("/proc/self/mounts").read(),
}))
"""


class Run(atoll.SystemTest):
    def setUp(self):
        self.sandbox = self.atoll.create()["id"]

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def test_verdict_ok_with_separate_streams(self):
        code = "import sys; print('out'); print('err', file=sys.stderr)"
        done = self.atoll.python(self.sandbox, code)
        self.assertEqual(done["verdict"], "ok")
        self.assertEqual(done["exit_code"], 0)
        self.assertEqual(done["stdout"], "out\n")
        self.assertEqual(done["stderr"], "err\n")
        self.assertGreater(done["usage"]["peak_memory_bytes"], 1 << 20)
        self.assertGreater(done["timings"]["run_ms"], 0)

    def test_verdict_nonzero(self):
        done = self.atoll.python(self.sandbox, "raise SystemExit(3)")
        self.assertEqual((done["verdict"], done["exit_code"]), ("nonzero", 3))

    def test_verdict_signal(self):
        done = self.atoll.execute(self.sandbox, ["sh", "-c", "kill -SEGV $$"])
        self.assertEqual((done["verdict"], done["signal"]), ("signal", 11))

    def test_verdict_wall_time_keeps_partial_output(self):
        code = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
        done = self.atoll.python(self.sandbox, code, timeout_ms=5000)
        self.assertEqual(done["verdict"], "wall_time")
        self.assertEqual(done["stdout"], "begun\n")

    def test_wall_time_ends_what_ignores_signals_and_double_forks(self):
        code = ("import os, signal, time\n"
                "for s in range(1, 65):\n"
                "    try: signal.signal(s, signal.SIG_IGN)\n"
                "    except (OSError, ValueError): pass\n"
                "for _ in range(3):\n"
                "    if os.fork() == 0: os.setsid()\n"
                "time.sleep(60)")
        done = self.atoll.python(self.sandbox, code, timeout_ms=2000 * atoll.SLOW)
        self.assertEqual(done["verdict"], "wall_time")

        def few_left():  # they are killed, and end when they have a processor
            left = self.atoll.execute(self.sandbox, ["sh", "-c", "ls /proc | grep -c '^[0-9]'"])
            return int(left["stdout"]) <= 6
        atoll.wait_for("the others to end", few_left)

    def test_verdict_killed(self):
        exec_id = self.atoll.start(self.sandbox, ["sleep", "60"])["id"]
        path = f"/v1/sandboxes/{self.sandbox}/execs/{exec_id}/signal"
        self.assertEqual(self.atoll.request("POST", path, {"signal": "TERM"}).status, 204)
        done = self.atoll.wait_ended(self.sandbox, exec_id)
        self.assertEqual((done["verdict"], done["signal"]), ("killed", 15))

    def test_missing_program_is_the_programs_failure(self):
        done = self.atoll.execute(self.sandbox, ["no-such-program"])
        self.assertEqual((done["verdict"], done["exit_code"]), ("nonzero", 127))
        self.assertIn("no-such-program", done["stderr"])

    def test_background_child_that_holds_the_pipe_does_not_hang_the_call(self):
        done = self.atoll.execute(self.sandbox, ["sh", "-c", "sleep 100 & echo done"])
        self.assertEqual((done["verdict"], done["stdout"]), ("ok", "done\n"))
        self.assertLess(done["usage"]["wall_ms"], 100_000, "it waited for the child")

    def test_output_that_is_not_utf8_comes_as_base64(self):
        done = self.atoll.python(self.sandbox, "import os; os.write(1, bytes([255, 254]))")
        self.assertEqual(done["stdout_base64"], "//4=")

    def test_what_the_program_sees(self):
        done = self.atoll.python(self.sandbox, FACTS)
        self.assertEqual(done["verdict"], "ok", done["stderr"])
        facts = json.loads(done["stdout"])
        self.assertEqual((facts["uid"], facts["gid"], facts["groups"]), (1000, 1000, []))
        self.assertEqual(facts["capabilities"], ["0000000000000000"] * 5)
        self.assertEqual(facts["no_new_privs"], "1")
        for name, link in facts["namespaces"].items():
            self.assertNotEqual(link, os.readlink(f"/proc/self/ns/{name}"), name)
        self.assertLess(max(facts["pids"]), 100)
        self.assertEqual(facts["interfaces"], ["lo"])
        self.assertEqual(facts["fds"], ["0", "1", "2", "3"])  # 3 is the listing itself
        self.assertIn(self.sandbox[:8], facts["hostname"])
        self.assertEqual((facts["home"], facts["cwd"]), ("/home/user", "/home/user"))
        self.assertNotIn("sda", facts["devices"])
        self.assertNotIn("kvm", facts["devices"])
        self.assertEqual(facts["connect"], "Connection refused")
        self.assertEqual(facts["write_image"], "Permission denied")
        self.assertEqual(facts["write_home"], "succeeded")
        for line in facts["mounts"].splitlines():
            options = line.split()[3].split(",")
            self.assertIn("nosuid", options, line)

    def test_root_inside_has_only_the_declared_capabilities(self):
        done = self.atoll.execute(self.sandbox, ["cat", "/proc/self/status"], user="root")
        status = dict(line.split(":\t", 1) for line in done["stdout"].splitlines() if ":\t" in line)
        # CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID NET_BIND_SERVICE SYS_CHROOT
        declared = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 10, 18))
        self.assertEqual(int(status["CapEff"], 16), declared)
        self.assertEqual(int(status["CapBnd"], 16), declared)
        self.assertEqual(status["NoNewPrivs"].strip(), "1")

    def test_limits_are_written_where_the_kernel_reads_them(self):
        sandbox = self.atoll.create(limits={"memory_bytes": 64 << 20, "pids": 32, "cpu": 0.5,
                                            "disk_bytes": 16 << 20})["id"]
        try:
            found = self.limits_of(sandbox)
            self.assertEqual(found["memory"], 64 << 20)
            self.assertEqual(found["pids"], 32)
            self.assertEqual(found["cpu"], 0.5)
            hog = self.atoll.python(sandbox, "x = bytearray(256 << 20); print(len(x))")
            self.assertNotEqual(hog["verdict"], "ok")
            fill = self.atoll.execute(sandbox, ["sh", "-c", "head -c 64m /dev/zero > /home/user/x"])
            self.assertNotEqual(fill["verdict"], "ok")
            self.assertIn("quota", fill["stderr"].lower())
        finally:
            self.atoll.delete(sandbox)

    @staticmethod
    def limits_of(sandbox):
        def first(*names):
            for name in names:
                for top in ("/sys/fs/cgroup/*/atoll/*", "/sys/fs/cgroup/atoll/*"):
                    for path in glob.glob(f"{top}/{sandbox}/{name}"):
                        return atoll.read(path).split()
            raise AssertionError(f"no group holds {names}")
        quota = first("run/cpu.max", "cpu.cfs_quota_us")
        period = quota[1:] or first("cpu.cfs_period_us")
        return {"memory": int(first("run/memory.max", "memory.limit_in_bytes")[0]),
                "pids": int(first("run/pids.max", "pids.max")[0]),
                "cpu": int(quota[0]) / int(period[0])}


class Neighbours(atoll.SystemTest):
    def test_two_sandboxes_share_nothing(self):
        one, two = self.atoll.create()["id"], self.atoll.create()["id"]
        secret = "echo secret > /tmp/f; echo secret > /dev/shm/f"
        self.atoll.execute(one, ["sh", "-c", secret])
        seen = self.atoll.execute(two, ["sh", "-c", "ls /tmp /dev/shm; ls /home/user"])
        self.assertNotIn("f", seen["stdout"].split())
        owners = set()
        for sandbox in (one, two):
            pid = self.atoll.agent_pid(sandbox)
            owners.add(os.stat(f"/proc/{pid}").st_uid)
        self.assertEqual(len(owners), 2)
        self.assertTrue(all(uid >= 0x40000000 for uid in owners))
        for sandbox in (one, two):
            self.atoll.delete(sandbox)

    def test_idle_sandbox_is_deleted_and_a_busy_one_is_not(self):
        busy = self.atoll.create()["id"]
        running = self.atoll.start(busy, ["sleep", "600"])
        changed = self.atoll.request("PATCH", f"/v1/sandboxes/{busy}", {"idle_ttl_ms": 1000})
        self.assertEqual(changed.status, 200, changed.body)
        idle = self.atoll.create(idle_ttl_ms=1000)["id"]

        def is_gone(sandbox):
            return self.atoll.request("GET", f"/v1/sandboxes/{sandbox}").status == 404

        atoll.wait_for("the end of the idle sandbox", lambda: is_gone(idle))
        self.assertEqual(self.atoll.show_exec(busy, running["id"])["state"], "running")
        self.atoll.request("POST", f"/v1/sandboxes/{busy}/execs/{running['id']}/signal",
                           {"signal": "KILL"})
        atoll.wait_for("the end of the other", lambda: is_gone(busy))

    def test_bad_input_creates_nothing(self):
        before = self.atoll.subvolumes()
        for body in ({"template": "nope"}, {"template": "python", "x": 1},
                     {"template": "python", "limits": {"pids": 1}}, b"\xff", b"[" * 100000):
            answer = self.atoll.request("POST", "/v1/sandboxes", body)
            self.assertIn(answer.status, (400, 404), answer.body)
            self.assertTrue(answer.json["error"]["remedy"])
        self.assertEqual(self.atoll.request("GET", "/v1/sandboxes", key="wrong").status, 401)
        self.assertEqual(self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"], [])
        self.assertEqual(self.atoll.subvolumes(), before)


if __name__ == "__main__":
    atoll.main()
