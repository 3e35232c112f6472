"""Sandboxes that are machines: what is only theirs. What they share with every other wall is in
tests/conformance."""
import glob
import os
import time

import atoll


class Microvm(atoll.ImageTest):
    template = "microvm"

    def make(self, **fields):
        return self.atoll.create(isolation="microvm", **fields)["id"]

    @staticmethod
    def machine_pid(sandbox):
        """Of QEMU, which is alone in its leaf."""
        pattern = f"/sys/fs/cgroup/**/atoll/*/{sandbox}/run/2/cgroup.procs"
        return int(atoll.read(glob.glob(pattern, recursive=True)[0]).split()[0])

    def test_has_a_kernel_of_its_own_and_no_network(self):
        box = self.make()
        done = self.atoll.execute(box, ["sh", "-c", "uname -r; ls /sys; cat /proc/net/dev"])
        self.assertNotIn(os.uname().release, done["stdout"])
        devices = [line.split(":")[0].strip() for line in done["stdout"].splitlines()
                   if ":" in line]
        self.assertEqual(devices, ["lo"])
        self.atoll.delete(box)

    def test_wall_clock_is_right(self):
        box = self.make()
        before = time.time()
        told = float(self.atoll.execute(box, ["date", "+%s.%N"])["stdout"])
        self.assertTrue(before - 1 < told < time.time() + 1, (before, told))
        self.atoll.delete(box)

    def test_what_runs_machines_is_no_template(self):
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "microvm"})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "template_is_monitor"))

    def test_at_least_gvisor_is_a_machine_here(self):
        made = self.atoll.create(isolation="gvisor")
        self.assertEqual(made["isolation"], "microvm")
        self.atoll.delete(made["id"])

    def test_limits_are_fixed(self):
        box = self.make()
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{box}",
                                    {"limits": {"memory_bytes": 1 << 30}})
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (400, "not_behind_this_wall"))
        self.atoll.delete(box)

    def test_a_machine_that_is_killed_fails_its_sandbox_within_a_second(self):
        box = self.make()
        started = self.atoll.start(box, ["sleep", "60"])
        os.kill(self.machine_pid(box), 9)
        begin = time.monotonic()
        self.assertEqual(self.atoll.wait_ended(box, started["id"])["verdict"], "sandbox_gone")

        def cleaned():
            return not glob.glob(f"/sys/fs/cgroup/**/atoll/*/{box}", recursive=True)
        atoll.wait_for("its groups to go", cleaned, 5)
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
        atoll.wait_for("the delete", deleted, 10)

    def test_the_machine_is_behind_the_walls_of_a_program(self):
        box = self.make()
        status = atoll.read(f"/proc/{self.machine_pid(box)}/status")
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.assertEqual({facts[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd",
                                                   "CapAmb")}, {"0" * 16})
        self.assertEqual(facts["NoNewPrivs"], "1")
        self.assertEqual(facts["Seccomp_filters"], "2", "ours and QEMU's own")
        self.assertGreater(int(facts["Uid"].split()[0]), 65535)
        receipt = self.atoll.request("GET", f"/v1/sandboxes/{box}/receipt").json["receipt"]
        self.assertEqual((receipt["driver"], receipt["virtualization"]), ("microvm", "emulated"))
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


if __name__ == "__main__":
    atoll.main()
