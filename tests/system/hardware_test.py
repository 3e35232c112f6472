"""Whether machines have the host's processor (KVM): what was tried is what is told, and what they
have. Where KVM boots no machine this is about a trial that fails and what follows from it."""
import glob
import json
import os
import tempfile
import time
import unittest

import atoll

TRIAL_SECONDS = 8 * atoll.SLOW
REFUSED = "hardware_virtualization_unavailable"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


def machine_pid(sandbox):
    """Of QEMU, which is alone in its leaf."""
    pattern = f"/sys/fs/cgroup/**/atoll/*/{sandbox}/run/2/cgroup.procs"
    return int(atoll.read(glob.glob(pattern, recursive=True)[0]).split()[0])


def command_of(pid):
    return atoll.read(f"/proc/{pid}/cmdline").split("\0")


class Tried(atoll.ImageTest):
    """Once it is known what machines have here."""
    template = "microvm"

    @classmethod
    def up_options(cls):
        return ("--kvm-trial", str(TRIAL_SECONDS))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        begin = time.monotonic()
        cls.found = atoll.wait_for("the trial", cls.finding, 60 + 2 * TRIAL_SECONDS)
        cls.seconds = time.monotonic() - begin
        print(f"{cls.found} after {cls.seconds:.1f} s", flush=True)
        cls.hardware = cls.found["virtualization"] == "hardware"

    @classmethod
    def finding(cls):
        machines = cls.atoll.request("GET", "/v1/limits").json["machines"]
        return machines["virtualization"] and machines


class Trial(Tried):
    def make(self, **fields):
        return self.atoll.create(isolation="microvm", **fields)["id"]

    def test_it_ends_in_time_and_leaves_nothing(self):
        if atoll.KVM:
            self.assertEqual(self.found, {"virtualization": "hardware", "reason": ""})
        if not os.path.exists("/dev/kvm"):
            self.assertEqual(self.found["reason"], "this host has no /dev/kvm")
        self.assertEqual(self.hardware, not self.found["reason"])
        self.assertEqual(self.atoll.groups("*/run"), [])
        extras = self.atoll.request("GET", "/v1/limits").json["extras"]
        self.assertEqual("hardware_virtualization" in extras, self.hardware)

    def test_doctor_tells_it(self):
        report = json.loads(self.atoll.cli("doctor", "--json", check=False).stdout)
        told = next(one for one in report["findings"] if one["name"] == "microvm")
        self.assertEqual(told["state"], "ok")
        self.assertIn("KVM has booted" if self.hardware else self.found["reason"], told["found"])

    def test_a_machine_has_what_its_receipt_says_and_no_other_jail_the_device(self):
        machine, jail = self.make(), self.atoll.create()["id"]
        begin = time.monotonic()
        done = self.atoll.execute(machine, ["cat", BOOT_ID])
        print(f"said which boot it is after {time.monotonic() - begin:.2f} s", flush=True)
        self.assertEqual(done["verdict"], "ok", done)
        self.assertNotEqual(done["stdout"], atoll.read(BOOT_ID), "another kernel, as old as ours")
        receipt = self.atoll.request("GET", f"/v1/sandboxes/{machine}/receipt").json["receipt"]
        self.assertEqual(receipt["virtualization"], self.found["virtualization"])
        pid = machine_pid(machine)
        words = command_of(pid)
        self.assertEqual([word.split(",")[0] for i, word in enumerate(words)
                          if words[i - 1] == "-accel"], ["kvm" if self.hardware else "tcg"])
        self.assertEqual(os.path.exists(f"/proc/{pid}/root/dev/kvm"), self.hardware)
        status = atoll.read(f"/proc/{pid}/status")
        self.assertIn("\nSeccomp_filters:\t2\n", status, "ours and QEMU's own")
        self.assertIn("\nCapBnd:\t0000000000000000\n", status)
        inside = self.atoll.execute(machine, ["ls", "/dev"])["stdout"].split()
        for devices in (inside, self.atoll.execute(jail, ["ls", "/dev"])["stdout"].split()):
            self.assertIn("null", devices)
            self.assertNotIn("kvm", devices)
        for each in (machine, jail):
            self.atoll.delete(each)

    def test_who_requires_it_has_it_or_is_refused(self):
        require = {"template": "python", "require": ["hardware_virtualization"]}
        for isolation in ("jail", "microvm"):
            with self.subTest(isolation):
                answer = self.atoll.request("POST", "/v1/sandboxes",
                                            {**require, "isolation": isolation})
                if isolation == "microvm" and self.hardware:
                    self.assertEqual(answer.status, 201, answer.body)
                    self.atoll.delete(answer.json["id"])
                    continue
                self.assertEqual(answer.status, 400, answer.body)
                error = answer.json["error"]
                self.assertEqual((error["code"], error["field"]), (REFUSED, "require"))
                self.assertIn("microvm", error["remedy"])


class HardwarePool(Tried):
    """Of a template whose floor is a machine: each but the first begins with the memory of one
    that was laid down with KVM."""
    pool = True

    @classmethod
    def setUpClass(cls):
        if not atoll.KVM:
            raise unittest.SkipTest("ATOLL_TEST_KVM=1 says that KVM works here")
        super().setUpClass()
        with tempfile.TemporaryDirectory() as directory:
            def change(manifest):
                for old, new in (('name = "python"', 'name = "python-machine"'),
                                 ('isolation = "jail"', 'isolation = "microvm"'),
                                 ("warm = 4", "warm = 1\nmax = 1")):
                    assert old in manifest
                    manifest = manifest.replace(old, new, 1)
                return manifest
            cls.atoll.cli("template", "add", cls.atoll.with_manifest(directory, change))

    def test_machines_begin_with_memory_that_was_laid_down_with_kvm(self):
        def full():
            metrics = self.atoll.request("GET", "/metrics").body.decode()
            return "\natoll_warm_pool_size 5\n" in metrics  # and the four jails of `python`
        for _ in range(2):
            atoll.wait_for("a machine in the pool", full, 120)
            made = self.atoll.create(template="python-machine")
            self.assertTrue(made["timings"]["from_pool"], made)
            words = command_of(machine_pid(made["id"]))
            for option, word in (("-accel", "kvm"), ("-incoming", "defer")):
                self.assertEqual(words[words.index(option) + 1], word)
            told = float(self.atoll.python(made["id"], "import time; print(time.time())")["stdout"])
            self.assertLess(abs(told - time.time()), 1 + atoll.SLOW)
            self.atoll.delete(made["id"])


if __name__ == "__main__":
    atoll.main()
