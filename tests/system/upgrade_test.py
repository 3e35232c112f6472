"""Programs are replaced under running sandboxes, also by those of another version, and back."""
import hashlib
import json
import os
import shutil
import signal
import sqlite3
import tempfile

import atoll

PROGRAMS = ("atoll", "atolld", "atoll-warden", "atoll-agent", "atoll-sudo", "atoll-notary",
            "atoll-builder", "atoll-egress")
LINES = 40_000
PRINTER = f"""
import sys, time
for number in range({LINES}):
    sys.stdout.write("%09d\\n" % number)
    if number % 100 == 0:
        time.sleep(0.01)
"""
EXPECTED = b"".join(b"%09d\n" % number for number in range(LINES))


def digest(path):
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


class Installed(atoll.Atoll):
    """An Atoll whose programs are in a directory of its own, to be replaced."""

    def __init__(self):
        super().__init__()
        self.bin = tempfile.mkdtemp(prefix="atoll-system-")
        os.chmod(self.bin, 0o755)
        for name in PROGRAMS:
            self.install(name)

    def install(self, name, program=None):
        """As install(1) does it: a new file of that name; what runs keeps the old one."""
        path = os.path.join(self.bin, name)
        shutil.copy(os.path.join(atoll.BIN, program or name), path + ".new")
        os.rename(path + ".new", path)

    def cli(self, *arguments, check=True, **options):
        return self.run_cli(os.path.join(self.bin, "atoll"), arguments, check, options)

    def restart(self, *arguments):
        done = self.cli("restart", "--json", *arguments)
        self.close()
        return json.loads(done.stdout)

    def refused_restart(self, *arguments):
        """The message; asked by an atoll that surely runs."""
        program = os.path.join(atoll.BIN, "atoll")
        done = self.run_cli(program, ("restart", *arguments), False, {})
        assert done.returncode == 125, (done.returncode, done.stdout, done.stderr)
        self.close()
        return done.stderr.decode()

    def pids(self):
        return (self.supervisor_pid, self.warden_pid, self.daemon_pid)

    def destroy(self):
        super().destroy()
        shutil.rmtree(self.bin)


class Upgrade(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.atoll = Installed().up()

    def setUp(self):
        for name in PROGRAMS:
            self.atoll.install(name)

    def check_sandbox(self, sandbox):
        """Execs, input, files: all that goes over the agent's stream."""
        self.assertEqual(self.atoll.python(sandbox, "print(6 * 7)")["stdout"], "42\n")
        done = self.atoll.execute(sandbox, ["cat"], stdin="given")
        self.assertEqual(done["stdout"], "given")
        path = f"/v1/sandboxes/{sandbox}/files/home/user/f"
        put = self.atoll.request("PUT", path, b"content",
                                 headers={"Content-Type": "application/octet-stream"})
        self.assertIn(put.status, (200, 201, 204), put.body)
        self.assertEqual(self.atoll.request("GET", path).body, b"content")

    def delete_all(self):
        for shown in self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]:
            self.atoll.delete(shown["id"])

    def agent_digest(self, sandbox):
        return digest(f"/proc/{self.atoll.agent_pid(sandbox)}/exe")

    def test_programs_go_on_while_all_is_replaced(self):
        previous, present = (digest(os.path.join(atoll.BIN, name))
                             for name in ("agent-speaking-1", "atoll-agent"))
        self.atoll.install("atoll-agent", "agent-speaking-1")
        self.atoll.restart()
        old = self.atoll.create()["id"]
        printer = self.atoll.start(old, ["python3", "-c", PRINTER])["id"]
        reader = self.atoll.start(old, ["cat"], stdin_open=True)["id"]
        stdin = f"/v1/sandboxes/{old}/execs/{reader}/stdin"
        self.assertEqual(self.write(stdin, 0, b"before "), 200)
        supervisor, warden, daemon = self.atoll.pids()

        for name in PROGRAMS:
            self.atoll.install(name)
        report = self.atoll.restart()
        self.assertEqual(report["outcome"], "done")
        self.assertEqual([each["name"] for each in report["programs"]],
                         ["atoll-warden", "atoll-builder", "atoll-egress", "atolld"])
        after = self.atoll.pids()
        self.assertEqual(after[0], supervisor, "the supervisor keeps its process")
        self.assertNotEqual(after[1], warden)
        self.assertNotEqual(after[2], daemon)
        for pid, name in zip(after, ("atoll", "atoll-warden", "atolld")):
            installed = os.path.join(self.atoll.bin, name)
            self.assertTrue(os.path.samefile(f"/proc/{pid}/exe", installed), name)

        new = self.atoll.create()["id"]
        self.assertEqual((self.agent_digest(old), self.agent_digest(new)), (previous, present))
        self.assertEqual(self.write(stdin, len(b"before "), b"after", "&eof=true"), 200)
        self.assertEqual(self.atoll.wait_ended(old, reader)["verdict"], "ok")
        self.assertEqual(self.atoll.output(old, reader), b"before after")
        for sandbox in (old, new):
            self.check_sandbox(sandbox)
        log = atoll.read(os.path.join(self.atoll.directory, "logs", "atolld.log"))
        self.assertIn('"protocol_version":1', log, "the old agent did not speak the old version")

        # And back: the newer agent is spoken to as well.
        self.atoll.install("atoll-agent", "agent-speaking-1")
        self.atoll.restart()
        for sandbox in (old, new):
            self.check_sandbox(sandbox)
        done = self.atoll.wait_ended(old, printer)
        self.assertEqual((done["verdict"], done["exit_code"]), ("ok", 0), done.get("failure"))
        self.assertEqual(self.atoll.output(old, printer), EXPECTED)
        self.delete_all()

    def write(self, path, offset, data, more=""):
        answer = self.atoll.request("POST", f"{path}?offset={offset}{more}", data,
                                    headers={"Content-Type": "application/octet-stream"})
        return answer.status

    def test_an_agent_of_an_unknown_version_is_refused_by_both_versions(self):
        for version in (0, 3):
            self.atoll.install("atoll-agent", f"agent-speaking-{version}")
            self.atoll.restart()
            answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
            self.assertGreaterEqual(answer.status, 500)
            self.assertIn(f"speaks protocol version {version}, this atolld 1 to 2",
                          answer.body.decode())
        self.assertEqual(self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"], [])
        self.atoll.install("atoll-agent")
        self.atoll.restart()

    def test_a_warden_of_another_version_is_503_until_both_match(self):
        sandbox = self.atoll.create()["id"]
        self.atoll.install("atoll-warden", "warden-speaking-9")
        self.atoll.restart("--warden")
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
        self.assertEqual(answer.status, 503, answer.body)
        self.assertIn("speaks version 9, this one 10", answer.body.decode())
        self.check_sandbox(sandbox)
        self.atoll.install("atoll-warden")
        self.assertEqual(self.atoll.restart()["outcome"], "done")
        self.check_sandbox(sandbox)
        self.atoll.delete(sandbox)

    def test_a_daemon_that_fails_is_replaced_by_what_ran_before(self):
        sandbox = self.atoll.create()["id"]
        exec_id = self.atoll.start(sandbox, ["python3", "-c", PRINTER])["id"]
        self.atoll.install("atolld", "failing-daemon")
        message = self.atoll.refused_restart()
        self.assertIn("did not become ready: atolld ended; what ran before runs again", message)
        self.assertIn("this atolld was made to fail", message)
        self.check_sandbox(sandbox)
        self.assertEqual(self.atoll.wait_ended(sandbox, exec_id)["verdict"], "ok")
        self.assertEqual(self.atoll.output(sandbox, exec_id), EXPECTED)
        self.atoll.delete(sandbox)

    def test_what_cannot_serve_is_found_before_anything_is_ended(self):
        database = os.path.join(self.atoll.directory, "daemon", "atoll.db")

        def add(number):
            with sqlite3.connect(database, timeout=10) as connection:
                connection.execute("UPDATE schema_version SET version = version + ?", (number,))
            connection.close()
        before = self.atoll.pids()
        add(1)
        try:
            message = self.atoll.refused_restart()
        finally:
            add(-1)
        self.assertIn("is newer than this program knows", message)
        self.assertIn("restore the backup made before it", message)
        self.assertIn("goes on untouched", message)
        for name, program in (("atolld", "/bin/false"), ("atoll", "/bin/false")):
            self.atoll.install(name, program)
            self.assertIn("goes on untouched", self.atoll.refused_restart())
            self.atoll.install(name)
        self.assertEqual(self.atoll.pids(), before)

    def test_sighup_is_a_restart(self):
        supervisor, warden, daemon = self.atoll.pids()
        os.kill(supervisor, signal.SIGHUP)
        atoll.wait_for("both to be others", lambda: None not in self.atoll.pids() and
                       self.atoll.warden_pid != warden and self.atoll.daemon_pid != daemon)
        self.atoll.close()
        self.atoll.wait_ready()
        self.assertEqual(self.atoll.supervisor_pid, supervisor)


class Keep(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.atoll = atoll.Atoll().up("--keep")

    def test_sigterm_leaves_sandboxes_to_the_next_up(self):
        sandbox = self.atoll.create()["id"]
        exec_id = self.atoll.start(sandbox, ["python3", "-c", PRINTER])["id"]
        agent = self.atoll.agent_pid(sandbox)
        supervisor = self.atoll.supervisor_pid
        os.kill(supervisor, signal.SIGTERM)
        atoll.wait_for("all three to end", lambda: [
            self.atoll.supervisor_pid, self.atoll.warden_pid, self.atoll.daemon_pid] == [None] * 3)
        self.assertTrue(os.path.exists(f"/proc/{agent}"))
        self.atoll.close()
        self.atoll.up("--keep")
        shown = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}").json
        self.assertEqual(shown["state"], "running")
        self.assertEqual(self.atoll.wait_ended(sandbox, exec_id)["verdict"], "ok")
        self.assertEqual(self.atoll.output(sandbox, exec_id), EXPECTED)
        # What is left to nobody is removed by `down`, which the end of this test compares.
        os.kill(self.atoll.supervisor_pid, signal.SIGTERM)
        atoll.wait_for("all three to end", lambda: self.atoll.supervisor_pid is None)


if __name__ == "__main__":
    atoll.main()
