"""Sandboxes behind gVisor: what is only theirs. What they share with every other wall is in
tests/conformance."""
import datetime
import glob
import json
import os
import re
import signal
import time

import atoll
import paused_time
import wall_pool


def group_file(sandbox, name):
    pattern = f"/sys/fs/cgroup/**/atoll/*/{sandbox}/run/{name}"
    return atoll.read(glob.glob(pattern, recursive=True)[0])


def sentry_pids(sandbox):
    """Of the sentry and of the processes that it runs programs in."""
    return [int(line) for line in group_file(sandbox, "2/cgroup.procs").split()]


def sentry_pid(sandbox):
    """The sentry is the one that runsc was executed in, which all others are children of."""
    return min(sentry_pids(sandbox))


def limit_memory_from_outside(sandbox, more):
    """What it has and `more`, by the group of either version."""
    for used, limit in (("memory.usage_in_bytes", "memory.limit_in_bytes"),
                        ("run/memory.current", "run/memory.max")):
        for path in glob.glob(f"/sys/fs/cgroup/**/atoll/*/{sandbox}/{limit}", recursive=True):
            current = int(atoll.read(path[:-len(limit)] + used))
            with open(path, "w", encoding="ascii") as file:
                file.write(str(current + more))


def parent_of(pid):
    return int(re.search(r"^PPid:\t(\d+)$", atoll.read(f"/proc/{pid}/status"), re.MULTILINE)[1])


def is_running(pid):
    return bool(re.search(r"^State:\t[^ZX]", atoll.read(f"/proc/{pid}/status"), re.MULTILINE))


class Gvisor(atoll.ImageTest):
    template = "gvisor"
    platform = "systrap"

    def make(self, **fields):
        return self.atoll.create(isolation="gvisor", **fields)["id"]

    def test_what_each_one_is(self):
        """One sandbox does for all of it."""
        box = self.make()
        for check in (self.check_kernel, self.check_walls, self.check_fixed_limits,
                      self.check_doctor):
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
        self.assertEqual((receipt["driver"], receipt["platform"]), ("gvisor", self.platform))
        facts = {fact["name"]: fact["inside"] for fact in receipt["facts"]}
        self.check_release(facts["runsc.version"])
        age = int(facts["runsc.age_days"])
        released = re.search("(20[0-9]{6})", facts["runsc.version"])[1]
        day = datetime.datetime.strptime(released, "%Y%m%d").replace(tzinfo=datetime.timezone.utc)
        self.assertIn((datetime.datetime.now(datetime.timezone.utc) - day).days - age, (0, 1))
        shown = self.atoll.cli("receipt", "show", box)
        self.assertIn(b"runsc.version", shown.stdout)
        self.assertEqual(b"days old" in shown.stderr, age > 365, shown.stderr)

    def check_release(self, version):
        """The one that the template pins, and no older one."""
        manifest = atoll.read(os.path.join(os.path.dirname(atoll.IMAGE), self.template,
                                           "template.toml"))
        self.assertEqual(re.search('^version = "(.*)"$', manifest, re.MULTILINE)[1], version)

    def check_fixed_limits(self, box):
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{box}",
                                    {"limits": {"memory_bytes": 1 << 30}})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "not_behind_this_wall"))

    def check_doctor(self, _):
        report = json.loads(self.atoll.cli("doctor", "--json").stdout)
        found = next(one["found"] for one in report["findings"] if one["name"] == "gvisor")
        self.assertRegex(found, "runsc of 20[0-9-]{8}")
        self.assertEqual("newer: atoll template build gvisor" in found, self.template != "gvisor")

    def test_what_runs_it_is_no_template(self):
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": self.template})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "template_is_monitor"))

    def test_a_sentry_that_is_killed_fails_its_sandbox_and_leaves_nothing(self):
        box = self.make()
        self.check_killed(box, sentry_pid(box))

    def test_a_memory_bomb_is_oom_when_nobody_was_there_to_be_told(self):
        """The keeper tells of it for a second, in which atolld stands still here."""
        box = self.make(limits={"memory_bytes": 512 << 20})
        keeper = parent_of(sentry_pid(box))
        # A moment for atolld to be stopped: told in time, it has the same verdict.
        code = "import time; print('ready', flush=True); time.sleep(2); b = bytearray(256 << 20)"
        started = self.atoll.start(box, ["python3", "-c", code])
        atoll.wait_for("the program", lambda: self.atoll.output(box, started["id"]))
        # The limit around the whole comes first, so that no exec's own does.
        limit_memory_from_outside(box, 64 << 20)
        daemon = self.atoll.daemon_pid
        os.kill(daemon, signal.SIGSTOP)
        try:
            atoll.wait_for("the keeper to end", lambda: not is_running(keeper))
        finally:
            os.kill(daemon, signal.SIGCONT)
        done = self.atoll.wait_ended(box, started["id"])
        self.assertEqual(done["verdict"], "oom", done)
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

    def test_one_that_is_frozen_again_and_again_goes_on(self):
        """By a pause, and by the rest that follows when nothing is asked of it."""
        box = self.make()
        for _ in range(2):
            for deed in ("pause", "resume"):
                self.atoll.request("POST", f"/v1/sandboxes/{box}/{deed}")
            time.sleep(1)
            self.assertEqual(self.atoll.execute(box, ["echo", "well"])["stdout"], "well\n")
        self.atoll.delete(box)

    def test_paused_time_counts_for_nothing(self):
        box = self.make()
        paused_time.check_exec(self.atoll, box, paused_time.WAIT, 2000)
        self.atoll.delete(box)


class GvisorOfDebian(Gvisor):
    """Where there is no image of the template gvisor, the other one runs them."""
    template = "gvisor-debian"

    def check_release(self, version):
        self.assertRegex(version, "^0[.]0~20[0-9]{6}")


class GvisorPool(wall_pool.WallPool, atoll.ImageTest):
    wall = template = "gvisor"

    def check_restored(self, box):
        """Its timings say so; beside that it has a sentry of its own."""
        self.assertTrue(sentry_pids(box))


class GvisorByPtrace(Gvisor):
    """What a host has whose kernel refuses systrap."""
    platform = "ptrace"

    @classmethod
    def up_options(cls):
        return ("--gvisor-platform", "ptrace")

    def test_it_is_tried_and_said(self):
        def tried():
            return self.atoll.request("GET", "/v1/limits").json["sentries"]["platform"]
        self.assertEqual(atoll.wait_for("the trial", tried), "ptrace")
        box = self.make()
        self.assertIn("--platform=ptrace", atoll.read(f"/proc/{sentry_pid(box)}/cmdline"))
        self.assertIn(b"; by ptrace", self.atoll.cli("doctor", check=False).stdout)
        self.atoll.delete(box)


class GvisorFiles(atoll.ImageTest):
    """What is kept of a sandbox behind gVisor, beyond what tests/conformance looks at."""
    template = "gvisor"
    MAKE = """
        set -e; cd /home/user
        mkdir -p tree/deep; echo text > tree/deep/file; ln tree/deep/file tree/hard
        ln -s deep/file tree/soft; mkfifo tree/pipe; chmod 640 tree/deep/file
        touch -d '2001-02-03 04:05:06 UTC' tree/deep/file
        head -c 3000000 /dev/urandom > tree/large; truncate -s 1G tree/sparse
        printf 'odd\\nname' > 'tree/odd
name'
        python3 -c "import os; os.setxattr('tree/large', 'user.note', b'kept')"
    """
    AS_ROOT = """
        set -e; rm -r /usr/share/doc; mkdir /usr/share/doc; echo mine > /usr/share/doc/mine
        rm /etc/debian_version; echo changed >> /etc/passwd; chown 1234:4321 /home/user/tree/hard
    """
    SHOW = """
        cd /home/user; stat -c '%n %F %a %u %g %h %s' tree/* tree/odd*; stat -c %y tree/deep/file
        sha256sum tree/large tree/deep/file; readlink tree/soft
        python3 -c "import os; print(os.getxattr('tree/large', 'user.note'))"
        ls -la --time-style=+ /usr/share/doc | tail -n +4; ls /etc/debian_version
        tail -1 /etc/passwd
    """

    def show(self, box):
        return self.atoll.execute(box, ["sh", "-c", self.SHOW])["stdout"]

    def snapshot(self, box):
        answer = self.atoll.request("POST", f"/v1/sandboxes/{box}/snapshots", {})
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json["id"]

    def make_from(self, snapshot):
        made = self.atoll.request("POST", "/v1/sandboxes", {"snapshot": snapshot})
        self.assertEqual(made.status, 201, made.body)
        self.assertEqual(made.json["isolation"], "gvisor", "the wall of the snapshot")
        return made.json["id"]

    def test_everything_about_files_is_kept_and_programs_go_on(self):
        box = self.atoll.create(isolation="gvisor")["id"]
        for user, script in (("user", self.MAKE), ("root", self.AS_ROOT)):
            done = self.atoll.execute(box, ["sh", "-c", script], user=user)
            self.assertEqual((done["verdict"], done["stderr"]), ("ok", ""), done)
        counting = self.atoll.start(box, ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo $i; "
                                                      "sleep 0.2; done"])
        shown = self.show(box)
        kept = self.snapshot(box)
        self.assertEqual(self.show(box), shown)
        self.atoll.execute(box, ["rm", "-r", "/home/user/tree"])
        self.assertEqual(self.atoll.wait_ended(box, counting["id"])["stdout"].split(),
                         [str(i) for i in range(1, 9)])
        copy = self.make_from(kept)
        self.assertEqual(self.show(copy), shown)
        again = self.make_from(self.snapshot(copy))
        self.assertEqual(self.show(again), shown, "a copy of a copy")
        for one in (box, copy, again):
            self.atoll.delete(one)

    def test_a_full_disk_is_kept_again_and_again(self):
        """Each time all that is in it is written once more, beside what earlier snapshots hold."""
        box = self.atoll.create(isolation="gvisor", limits={"disk_bytes": 64 << 20})["id"]
        kept = []
        for _ in range(3):
            done = self.atoll.execute(box, ["sh", "-c", "cat /dev/urandom > /home/user/full"])
            self.assertEqual(done["verdict"], "disk_limit")
            kept.append(self.snapshot(box))
        copy = self.make_from(kept[-1])
        sums = {self.atoll.execute(one, ["sha256sum", "/home/user/full"])["stdout"]
                for one in (box, copy)}
        self.assertEqual(len(sums), 1)
        done = self.atoll.execute(copy, ["sh", "-c", "echo more > /home/user/more"])
        self.assertEqual(done["verdict"], "disk_limit", "its limit is that of the first")
        for one in (box, copy):
            self.atoll.delete(one)
        for snapshot in reversed(kept):  # the last first, for it is a child of the others
            self.assertEqual(self.atoll.request("DELETE", f"/v1/snapshots/{snapshot}").status, 204)


class GvisorToolbox(atoll.ImageTest):
    template = "gvisor"
    toolbox = True

    def test_it_is_there_and_cannot_be_changed(self):
        box = self.atoll.create(isolation="gvisor")["id"]
        self.assertIn("IPython", self.atoll.execute(
            box, ["sh", "-c", "ls -R /opt/atoll | grep -m1 -x IPython"])["stdout"])
        touched = self.atoll.execute(box, ["touch", "/opt/atoll/x"], user="root")
        self.assertIn("Read-only", touched["stderr"])
        self.atoll.delete(box)


if __name__ == "__main__":
    atoll.main()
