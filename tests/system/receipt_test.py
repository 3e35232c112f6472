"""The receipt: what the API and the command line give out, and who can be fooled with it."""
import base64
import json
import os
import signal
import subprocess

import atoll


class Receipt(atoll.SystemTest):
    def setUp(self):
        self.sandbox = self.atoll.create()["id"]

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def receipt(self):
        answer = self.atoll.request("GET", f"/v1/sandboxes/{self.sandbox}/receipt")
        self.assertEqual(answer.status, 200, answer.body)
        return json.loads(answer.body)

    def verify(self, text, *options):
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", self.atoll.directory, "receipt",
                   "verify", *options]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False)

    def test_agrees_with_what_a_program_sees(self):
        facts = {fact["name"]: fact for fact in self.receipt()["receipt"]["facts"]}
        seen = self.atoll.python(self.sandbox, "import os, json; print(json.dumps({"
                                 "'user': os.readlink('/proc/self/ns/user'),"
                                 "'net': os.readlink('/proc/self/ns/net'),"
                                 "'map': open('/proc/self/uid_map').read().split(),"
                                 "'status': open('/proc/self/status').read()}))")
        seen = json.loads(seen["stdout"])
        for column in ("outside", "inside"):
            self.assertEqual(facts["namespaces.user"][column], seen["user"])
            self.assertEqual(facts["namespaces.net"][column], seen["net"])
            self.assertEqual(facts["uid_map"][column].split(), seen["map"])
            self.assertIn(f"CapBnd:\t{facts['capabilities.bounding'][column]}", seen["status"])
            self.assertIn(f"Seccomp_filters:\t{facts['seccomp.filters'][column]}", seen["status"])
        shown = self.atoll.request("GET", f"/v1/sandboxes/{self.sandbox}").body
        limits = json.loads(shown)["limits"]
        self.assertEqual(int(facts["limits.memory_bytes"]["outside"]), limits["memory_bytes"])
        self.assertEqual(int(facts["limits.disk_bytes"]["outside"]), limits["disk_bytes"])
        self.assertEqual(int(facts["limits.pids"]["outside"]), limits["pids"])

    def test_is_verified_and_forgeries_are_not(self):
        receipt = self.receipt()
        good = self.verify(json.dumps(receipt))
        self.assertEqual((good.returncode, good.stderr), (0, ""))
        self.assertIn(self.sandbox, good.stdout)
        shown = json.loads(json.dumps(receipt))
        shown["receipt"]["facts"][0]["inside"] = "0 0 0 0"
        self.assertNotEqual(self.verify(json.dumps(shown)).returncode, 0)
        signed = dict(receipt, signed=base64.b64encode(b'{"version":1}').decode())
        self.assertNotEqual(self.verify(json.dumps(signed)).returncode, 0)
        stranger = base64.b64encode(os.urandom(32)).decode()
        fooled = self.verify(json.dumps(receipt), "--public-key", stranger)
        self.assertNotEqual(fooled.returncode, 0)

    def test_survives_the_death_of_atolld_and_warden(self):
        before = self.receipt()
        for pid in (self.atoll.daemon_pid, self.atoll.warden_pid):
            os.kill(pid, signal.SIGKILL)
        self.atoll.wait_ready()
        self.assertEqual(self.receipt(), before)

    def test_only_root_can_read_the_key(self):
        status = os.stat(os.path.join(self.atoll.directory, "receipt.key"))
        self.assertEqual((status.st_uid, status.st_mode & 0o777), (0, 0o600))


if __name__ == "__main__":
    atoll.main()
