"""The four processes: who runs as whom, who restarts whom, and what `down` leaves."""
import os
import pwd
import signal
import socket
import subprocess
import unittest

import atoll


def uids(pid):
    for line in atoll.read(f"/proc/{pid}/status").splitlines():
        if line.startswith("Uid:"):
            return {int(field) for field in line.split()[1:]}
    return set()


class Processes(atoll.SystemTest):
    def test_the_daemon_is_never_root(self):
        user = pwd.getpwnam("atoll").pw_uid
        self.assertEqual(uids(self.atoll.daemon_pid), {user})
        status = atoll.read(f"/proc/{self.atoll.daemon_pid}/status")
        self.assertIn("CapPrm:\t0000000000000000", status)
        for folder, _, files in os.walk(os.path.join(self.atoll.directory, "daemon")):
            for name in files:
                self.assertEqual(os.stat(os.path.join(folder, name)).st_uid, user, name)
        key = os.stat(os.path.join(self.atoll.directory, "daemon", "local.key"))
        self.assertEqual(key.st_mode & 0o777, 0o600)

    def test_the_daemon_refuses_to_run_as_root(self):
        done = subprocess.run([os.path.join(atoll.BIN, "atolld"), "--state-dir", "/nonexistent",
                               "--run-dir", "/nonexistent"], capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"refusing to run as root", done.stderr)

    def test_the_daemon_refuses_other_machines_unless_told(self):
        done = self.atoll.cli("up", "--listen", "0.0.0.0:0", check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(b"--allow-remote", done.stderr)

    def test_the_warden_holds_no_network_and_links_libc_only(self):
        warden = os.path.join(atoll.BIN, "atoll-warden")
        needed = subprocess.run(["ldd", warden], capture_output=True, text=True).stdout
        names = {line.split()[0] for line in needed.splitlines()}
        allowed = ("linux-vdso", "libc.so", "/lib64/ld-linux", "libm.so")
        self.assertTrue(all(name.startswith(allowed) for name in names), names)
        symbols = subprocess.run(["nm", "-C", warden], capture_output=True, text=True).stdout
        self.assertGreater(len(symbols), 1000)
        self.assertFalse([line for line in symbols.splitlines() if "boost" in line])
        self.assertNotEqual(os.readlink(f"/proc/{self.atoll.warden_pid}/ns/net"),
                            os.readlink("/proc/self/ns/net"))
        self.assertNotEqual(os.readlink(f"/proc/{self.atoll.warden_pid}/ns/mnt"),
                            os.readlink("/proc/self/ns/mnt"))

    def test_the_warden_speaks_only_to_the_daemon(self):
        path = os.path.join(self.atoll.run_directory, "warden.sock")
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.settimeout(5)
            client.connect(path)  # as root, which is not the daemon's user
            try:
                client.send(b"\0" * 112)
                answer = client.recv(100)
            except (BrokenPipeError, ConnectionResetError):
                answer = b""
            self.assertEqual(answer, b"")

    def test_a_second_supervisor_refuses(self):
        done = self.atoll.cli("up", "--listen", "127.0.0.1:0", check=False)
        self.assertNotEqual(done.returncode, 0)

    def test_key_is_printed_for_the_operator(self):
        shown = self.atoll.cli("key", "show-local").stdout.decode().strip()
        self.assertEqual(shown, self.atoll.key)

    def test_cli_runs_a_program_and_prints_only_its_bytes(self):
        code = "import sys; print('hi'); sys.exit(4)"
        done = self.atoll.cli("run", "-t", "python", "-c", code, check=False)
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"hi\n", b"", 4))
        self.assertEqual(self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"], [])

    def test_cli_create_exec_rm(self):
        sandbox = self.atoll.cli("create", "-t", "python").stdout.decode().split()[0]
        program = ["sh", "-c", "echo $0 args; exit 5"]
        done = self.atoll.cli("exec", sandbox, "--", *program, check=False)
        self.assertEqual((done.stdout, done.returncode), (b"sh args\n", 5))
        self.atoll.cli("rm", sandbox)
        self.assertEqual(self.atoll.request("GET", f"/v1/sandboxes/{sandbox}").status, 404)


class Supervisor(unittest.TestCase):
    def setUp(self):
        self.atoll = atoll.Atoll().up()

    def tearDown(self):
        self.atoll.destroy()

    def test_killed_supervisor_leaves_all_running_and_the_next_adopts(self):
        sandbox = self.atoll.create()["id"]
        daemon, warden = self.atoll.daemon_pid, self.atoll.warden_pid
        os.kill(self.atoll.supervisor_pid, signal.SIGKILL)
        atoll.wait_for("the lock to be free", lambda: self.atoll.supervisor_pid is None)
        self.assertEqual(self.atoll.python(sandbox, "print(2)")["stdout"], "2\n")
        self.atoll.close()
        self.atoll.up()
        self.assertEqual((self.atoll.daemon_pid, self.atoll.warden_pid), (daemon, warden))
        os.kill(daemon, signal.SIGKILL)
        atoll.wait_for("a new daemon", lambda: self.atoll.daemon_pid not in (None, daemon))
        self.atoll.close()
        self.atoll.wait_ready()
        self.assertEqual(self.atoll.python(sandbox, "print(3)")["stdout"], "3\n")

    def test_down_without_a_supervisor_cleans_up_too(self):
        self.atoll.create()
        os.kill(self.atoll.supervisor_pid, signal.SIGKILL)
        atoll.wait_for("the lock to be free", lambda: self.atoll.supervisor_pid is None)
        self.atoll.down()
        self.assertFalse(os.path.exists(self.atoll.run_directory))
        self.assertEqual(self.atoll.traces(), {})

    def test_state_survives_down_and_up(self):
        sandbox = self.atoll.create()["id"]
        key = self.atoll.key
        self.atoll.down()
        self.assertFalse(os.path.exists(self.atoll.run_directory))
        self.atoll.up()
        self.assertEqual(self.atoll.key, key)
        shown = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}").json
        self.assertEqual(shown["state"], "failed")
        self.atoll.delete(sandbox)

    def test_two_side_by_side(self):
        other = atoll.Atoll().up()
        try:
            mine, theirs = self.atoll.create()["id"], other.create()["id"]
            self.assertEqual(self.atoll.python(mine, "print(1)")["verdict"], "ok")
            self.assertEqual(other.python(theirs, "print(1)")["verdict"], "ok")
            self.assertEqual(self.atoll.request("GET", f"/v1/sandboxes/{theirs}", ).status, 404)
            self.assertEqual(other.request("GET", "/v1/sandboxes", key=self.atoll.key).status, 401)
        finally:
            other.destroy()
        self.assertEqual(self.atoll.python(mine, "print(1)")["verdict"], "ok")


if __name__ == "__main__":
    atoll.main()
