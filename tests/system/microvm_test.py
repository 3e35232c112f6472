"""Sandboxes that are machines: what is only theirs. What they share with every other wall is in
tests/conformance."""
import fcntl
import glob
import os
import struct
import time

import atoll
import paused_time
import wall_pool


def group_file(sandbox, name):
    pattern = f"/sys/fs/cgroup/**/atoll/*/{sandbox}/run/{name}"
    return atoll.read(glob.glob(pattern, recursive=True)[0])


def machine_pid(sandbox):
    """Of QEMU, which is alone in its leaf."""
    return int(group_file(sandbox, "2/cgroup.procs").split()[0])


class Machines(wall_pool.WallClock, atoll.ImageTest):
    template = "microvm"


class Microvm(Machines):
    def make(self, **fields):
        return self.atoll.create(isolation="microvm", **fields)["id"]

    def test_what_each_machine_is(self):
        """A boot takes seconds, so one sandbox does for all of it."""
        box = self.make()
        for check in (self.check_kernel_and_devices, self.check_clock, self.check_fixed_limits,
                      self.check_walls):
            with self.subTest(check.__name__):
                check(box)
        self.atoll.delete(box)

    def check_kernel_and_devices(self, box):
        done = self.atoll.execute(box, ["sh", "-c", "uname -r; ls /sys; cat /proc/net/dev"])
        self.assertNotIn(os.uname().release, done["stdout"])
        devices = [line.split(":")[0].strip() for line in done["stdout"].splitlines()
                   if ":" in line]
        self.assertEqual(devices, ["lo"])

    def test_what_runs_machines_is_no_template(self):
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "microvm"})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "template_is_monitor"))

    def test_at_least_gvisor_is_a_machine_where_there_is_no_gvisor(self):
        made = self.atoll.create(isolation="gvisor")
        self.assertEqual(made["isolation"], "microvm")
        self.atoll.delete(made["id"])

    def check_fixed_limits(self, box):
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{box}",
                                    {"limits": {"memory_bytes": 1 << 30}})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "not_behind_this_wall"))

    def test_a_machine_that_is_killed_fails_its_sandbox_and_leaves_nothing(self):
        box = self.make()
        self.check_killed(box, machine_pid(box))

    def test_programs_go_on_when_the_warden_dies(self):
        box = self.make()
        started = self.atoll.start(box, ["sh", "-c", "sleep 2; echo survived"])
        os.kill(self.atoll.warden_pid, 9)
        done = self.atoll.wait_ended(box, started["id"])
        self.assertEqual((done["stdout"], done["verdict"]), ("survived\n", "ok"))

        def deleted():
            return self.atoll.request("DELETE", f"/v1/sandboxes/{box}").status in (204, 404)
        atoll.wait_for("the delete", deleted)

    def check_walls(self, box):
        status = atoll.read(f"/proc/{machine_pid(box)}/status")
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.assertEqual({facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd",
                                                   "CapAmb")}, {"0" * 16})
        self.assertEqual(facts["NoNewPrivs"], "1")
        self.assertEqual(facts["Seccomp_filters"], "2", "ours and QEMU's own")
        self.assertGreater(int(facts["Uid"].split()[0]), 65535)
        receipt = self.atoll.request("GET", f"/v1/sandboxes/{box}/receipt").json["receipt"]
        self.assertEqual((receipt["driver"], receipt["virtualization"]),
                         ("microvm", "hardware" if atoll.KVM else "emulated"))

    def test_paused_time_counts_for_nothing(self):
        """Also for the one that ran: the kernel inside takes the pause for its work."""
        for cpu, script in ((1, paused_time.WAIT), (0.5, paused_time.SPIN)):
            with self.subTest(script):
                box = self.make(limits={"cpu": cpu})
                paused_time.check_exec(self.atoll, box, script, 4000)
                self.atoll.delete(box)


class MicrovmSnapshots(Machines):
    """The conformance suite has what every wall does with them; this is about the disk."""
    DATA = "cd /home/user; head -c 85M /dev/urandom > data; sha256sum data > sum; mkdir -p a/b; " \
           "ln -s ../../sum a/b/link"
    WRITER = "i=0; while :; do i=$((i+1)); echo $i >> /home/user/log; done"

    def tearDown(self):
        for each in self.atoll.request("GET", "/v1/snapshots").json["snapshots"]:
            self.atoll.request("DELETE", f"/v1/snapshots/{each['id']}?children=adopt")
        super().tearDown()

    def make(self, **fields):
        return self.atoll.create(isolation="microvm", **fields)["id"]

    def shell(self, box, script):
        done = self.atoll.execute(box, ["sh", "-c", script])
        self.assertEqual(done["verdict"], "ok", done)
        return done["stdout"]

    def keep(self, box):
        begin = time.monotonic()
        answer = self.atoll.request("POST", f"/v1/sandboxes/{box}/snapshots", {})
        print(f"kept in {1000 * (time.monotonic() - begin):.0f} ms", flush=True)
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json["id"]

    def refused(self, path, body, status=400):
        answer = self.atoll.request("POST", path, body)
        self.assertEqual(answer.status, status, answer.body)
        return answer.json["error"]["code"], answer.json["error"].get("field")

    def test_a_copy_has_what_was_written_while_the_machine_writes_on(self):
        box = self.make(limits={"disk_bytes": 128 << 20})
        self.shell(box, self.DATA)
        writer = self.atoll.start(box, ["sh", "-c", self.WRITER], timeout_ms=600000)["id"]
        self.shell(box, "until [ -s /home/user/log ]; do sleep 0.1; done")
        kept = self.keep(box)
        lines = int(self.shell(box, "wc -l < /home/user/log"))
        self.assertEqual(self.refused("/v1/sandboxes", {
            "snapshot": kept, "isolation": "microvm", "limits": {"disk_bytes": 256 << 20}}),
            ("not_behind_this_wall", "limits.disk_bytes"))
        begin = time.monotonic()
        made = self.atoll.request("POST", "/v1/sandboxes", {"snapshot": kept})
        print(f"made of it in {1000 * (time.monotonic() - begin):.0f} ms", flush=True)
        self.assertEqual((made.status, made.json["isolation"]), (201, "microvm"), made.body)
        copy = made.json["id"]
        self.assertEqual(self.shell(copy, "cd /home/user; sha256sum -c a/b/link"), "data: OK\n")
        numbers = [int(line) for line in self.shell(copy, "cat /home/user/log").split()]
        self.assertEqual(numbers, list(range(1, len(numbers) + 1)), "whole lines, in order")
        self.assertLessEqual(len(numbers), lines)
        self.shell(copy, "echo other > /home/user/data")
        self.assertGreater(int(self.shell(box, "wc -l < /home/user/log")), lines, "it goes on")
        self.assertEqual(self.shell(box, "cd /home/user; sha256sum -c sum; ls"),
                         "data: OK\na\ndata\nlog\nsum\n")
        identity = "cat /proc/sys/kernel/random/boot_id; head -c 16 /dev/urandom | sha256sum"
        self.assertEqual(len(set((self.shell(box, identity) + self.shell(copy, identity)).split())),
                         5, "and the dash")
        self.atoll.request("POST", f"/v1/sandboxes/{box}/execs/{writer}/signal",
                           {"signal": "KILL"})
        # More than its layer would take beside what the snapshot keeps: the limit is the disk's.
        for each in (box, copy):
            self.shell(each, "cd /home/user; rm data log; "
                             "dd if=/dev/zero of=more bs=1M count=108 conv=fsync 2>&1")
        for each in (box, copy):
            self.atoll.delete(each)

    def test_files_of_one_wall_are_refused_behind_another(self):
        jail, machine = self.atoll.create()["id"], self.make()
        wanted = ("not_behind_this_wall", "isolation")
        self.assertEqual(self.refused("/v1/sandboxes", {
            "snapshot": self.keep(jail), "isolation": "microvm"}), wanted)
        kept = self.keep(machine)
        shown = self.atoll.request("GET", f"/v1/snapshots/{kept}").json
        self.assertEqual(shown["isolation"], "microvm")
        self.assertEqual(self.refused(f"/v1/snapshots/{kept}/seal", {}),
                         ("not_behind_this_wall", None))
        self.shell(machine, "echo more > /home/user/note")
        compared = self.atoll.request("GET", f"/v1/snapshots/{kept}/diff?to={self.keep(machine)}")
        self.assertIn(("added", "/home/user/note"),
                      [(each["what"], each["path"]) for each in compared.json["changes"]])
        self.atoll.request("POST", f"/v1/sandboxes/{machine}/pause")
        self.assertEqual(self.refused(f"/v1/sandboxes/{machine}/snapshots", {}, 409)[0],
                         "sandbox_paused")
        listed = self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]
        self.assertEqual(sorted(each["id"] for each in listed), sorted([jail, machine]))
        for each in (jail, machine):
            self.atoll.delete(each)


class MicrovmPool(wall_pool.WallPool, Machines):
    wall = "microvm"
    SET_SUBVOLUME_FLAGS = 0x4008941A  # BTRFS_IOC_SUBVOL_SETFLAGS

    def begins_restored(self, box):
        words = atoll.read(f"/proc/{machine_pid(box)}/cmdline").split("\0")
        return "-incoming" in words

    def check_restored(self, box):
        self.assertTrue(self.begins_restored(box), "it was booted")

    def spoil_states(self):
        """What is kept of the laid-down machine beside its memory, in a layer that is read-only."""
        states = glob.glob(f"{self.atoll.pool}/*/**/state", recursive=True)
        self.assertTrue(states)
        for state in states:
            layer = os.path.join(self.atoll.pool, os.path.relpath(state, self.atoll.pool)
                                 .split("/")[0])
            descriptor = os.open(layer, os.O_RDONLY)
            fcntl.ioctl(descriptor, self.SET_SUBVOLUME_FLAGS, struct.pack("Q", 0))
            os.close(descriptor)
            os.truncate(state, 100)

    def test_what_cannot_begin_with_that_memory_boots(self):
        self.wait_full()
        pooled, _ = self.make()
        self.spoil_states()
        beside, timings = self.make()
        self.assertEqual((timings["from_pool"], timings["from_zygote"]), (False, False))
        self.assertFalse(self.begins_restored(beside))
        self.assertEqual(self.atoll.python(beside, "print(3)")["stdout"], "3\n")
        for box in (pooled, beside):
            self.atoll.delete(box)


if __name__ == "__main__":
    atoll.main()
