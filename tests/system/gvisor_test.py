"""Sandboxes behind gVisor: what is only theirs. What they share with every other wall is in
tests/conformance."""
import glob
import os
import tempfile
import time

import atoll


def group_file(sandbox, name):
    pattern = f"/sys/fs/cgroup/**/atoll/*/{sandbox}/run/{name}"
    return atoll.read(glob.glob(pattern, recursive=True)[0])


def sentry_pids(sandbox):
    """Of the sentry and of the processes that it runs programs in."""
    return [int(line) for line in group_file(sandbox, "2/cgroup.procs").split()]


def sentry_pid(sandbox):
    """The sentry is the one that runsc was executed in, which all others are children of."""
    return min(sentry_pids(sandbox))


class Gvisor(atoll.ImageTest):
    template = "gvisor"

    def make(self, **fields):
        return self.atoll.create(isolation="gvisor", **fields)["id"]

    def test_what_each_one_is(self):
        """One sandbox does for all of it."""
        box = self.make()
        for check in (self.check_kernel, self.check_walls, self.check_fixed_limits):
            with self.subTest(check.__name__):
                check(box)
        self.atoll.delete(box)

    def check_kernel(self, box):
        done = self.atoll.execute(box, ["sh", "-c", "dmesg; uname -r; ls /sys; cat /proc/1/comm"])
        self.assertNotIn(os.uname().release, done["stdout"])
        devices = self.atoll.execute(box, ["sh", "-c", "cat /proc/net/dev"])["stdout"]
        self.assertEqual([line.split(":")[0].strip() for line in devices.splitlines()
                          if ":" in line], ["lo"])

    def check_walls(self, box):
        for pid in sentry_pids(box):
            status = atoll.read(f"/proc/{pid}/status")
            facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            self.assertEqual({facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd",
                                                       "CapAmb")}, {"0" * 16}, status)
            self.assertEqual(facts["NoNewPrivs"], "1")
            self.assertGreaterEqual(int(facts["Seccomp_filters"]), 2, "ours and gVisor's own")
            self.assertGreater(int(facts["Uid"].split()[0]), 65535)
        receipt = self.atoll.request("GET", f"/v1/sandboxes/{box}/receipt").json["receipt"]
        self.assertEqual((receipt["driver"], receipt["platform"]), ("gvisor", "systrap"))
        facts = {fact["name"]: fact["inside"] for fact in receipt["facts"]}
        self.assertRegex(facts["runsc.version"], "20[0-9]{6}")
        self.assertGreater(int(facts["runsc.age_days"]), 365)
        shown = self.atoll.cli("receipt", "show", box)
        self.assertIn(b"runsc.version", shown.stdout)
        self.assertIn(b"days old", shown.stderr)

    def check_fixed_limits(self, box):
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{box}",
                                    {"limits": {"memory_bytes": 1 << 30}})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "not_behind_this_wall"))

    def test_what_runs_it_is_no_template(self):
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "gvisor"})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "template_is_monitor"))

    def test_a_sentry_that_is_killed_fails_its_sandbox_and_leaves_nothing(self):
        box = self.make()
        started = self.atoll.start(box, ["sleep", "60"])
        os.kill(sentry_pid(box), 9)
        begin = time.monotonic()
        self.assertEqual(self.atoll.wait_ended(box, started["id"])["verdict"], "sandbox_gone")

        def cleaned():
            return not glob.glob(f"/sys/fs/cgroup/**/atoll/*/{box}", recursive=True)
        atoll.wait_for("its groups to go", cleaned)
        print(f"cleaned up after {time.monotonic() - begin:.2f} s")
        self.assertEqual(self.atoll.request("GET", f"/v1/sandboxes/{box}").json["state"], "failed")
        self.atoll.delete(box)

    def test_programs_go_on_when_the_warden_dies(self):
        box = self.make()
        started = self.atoll.start(box, ["sh", "-c", "sleep 2; echo survived"])
        os.kill(self.atoll.warden_pid, 9)
        done = self.atoll.wait_ended(box, started["id"])
        self.assertEqual((done["stdout"], done["verdict"]), ("survived\n", "ok"))

        def deleted():
            return self.atoll.request("DELETE", f"/v1/sandboxes/{box}").status in (204, 404)
        atoll.wait_for("the delete", deleted)

    def test_programs_of_other_architectures_harm_nobody(self):
        """A call by int 0x80 is none that gVisor has; ours must not kill what runs it."""
        box = self.make()
        code = "import ctypes, mmap; m = mmap.mmap(-1, 4096, prot=7); " \
               "m.write(bytes.fromhex('b814000000cd80c3')); " \
               "a = ctypes.addressof(ctypes.c_char.from_buffer(m)); " \
               "print(ctypes.CFUNCTYPE(ctypes.c_int)(a)())"
        self.atoll.python(box, code)
        self.assertEqual(self.atoll.execute(box, ["echo", "well"])["stdout"], "well\n")
        self.atoll.delete(box)

    def test_paused_time_counts_for_nothing(self):
        box = self.make()
        started = self.atoll.start(box, ["sh", "-c", "sleep 1.5; echo done"], timeout_ms=4000)
        self.atoll.request("POST", f"/v1/sandboxes/{box}/pause")
        time.sleep(5)
        self.atoll.request("POST", f"/v1/sandboxes/{box}/resume")
        done = self.atoll.wait_ended(box, started["id"])
        self.assertEqual((done["stdout"], done["verdict"]), ("done\n", "ok"))
        self.atoll.delete(box)


class GvisorPool(atoll.ImageTest):
    """A template whose floor is gVisor, with a pool of one."""
    template = "gvisor"
    pool = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory() as directory:
            for name in ("digest", "image.erofs"):
                os.symlink(os.path.join(atoll.IMAGE, name), os.path.join(directory, name))
            manifest = atoll.read(os.path.join(atoll.IMAGE, "template.toml"))
            for old, new in (('name = "python"', 'name = "python-gvisor"'),
                             ('isolation = "jail"', 'isolation = "gvisor"'),
                             ("warm = 4", "warm = 1\nmax = 1")):
                assert old in manifest
                manifest = manifest.replace(old, new, 1)
            with open(os.path.join(directory, "template.toml"), "w") as file:
                file.write(manifest)
            cls.atoll.cli("template", "add", directory)

    def take(self):
        """From the pool, once there is one in it, which then stands still."""
        def waiting():
            frozen = glob.glob("/sys/fs/cgroup/**/atoll/*/*/run/cgroup.freeze", recursive=True)
            metrics = self.atoll.request("GET", "/metrics").body.decode()
            full = "\natoll_warm_pool_size 5\n" in metrics  # and the four jails of `python`
            return full and [path for path in frozen if atoll.read(path).strip() == "1"]
        atoll.wait_for("a sandbox in the pool", waiting)
        begin = time.monotonic()
        made = self.atoll.create(template="python-gvisor")
        print(f"created in {1000 * (time.monotonic() - begin):.1f} ms", flush=True)
        self.assertTrue(made["timings"]["from_pool"], made)
        self.assertEqual(made["isolation"], "gvisor")
        return made["id"]

    def test_those_of_the_pool_go_on_when_they_are_taken_and_share_no_identity(self):
        seen = []
        for _ in range(2):
            box = self.take()
            begin = time.monotonic()
            done = self.atoll.request("POST", f"/v1/sandboxes/{box}/execs", {
                "cmd": ["python3", "-c", "print(1)"], "wait": True}).json
            print(f"print(1) after {1000 * (time.monotonic() - begin):.1f} ms", flush=True)
            self.assertEqual((done["stdout"], done["verdict"]), ("1\n", "ok"))
            code = "import os; print(os.urandom(16).hex(), " \
                   "open('/proc/sys/kernel/random/boot_id').read())"
            seen += self.atoll.python(box, code)["stdout"].split()
            self.atoll.delete(box)
        self.assertEqual(len(set(seen)), 4, seen)


if __name__ == "__main__":
    atoll.main()
