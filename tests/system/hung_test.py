"""Processes that hang instead of dying, and those that are killed: every call is answered or
refused, the supervisor replaces the process, no sandbox is lost."""
import json
import os
import signal
import socket
import subprocess
import threading
import time
import unittest

import atoll

# What was refused is promised its disk until the warden has said that nothing is left of it.
REFUSALS = {"warden_unavailable", "egress_unavailable", "builder_unavailable", "not_ready",
            "no_capacity"}


def find_code(answer):
    return answer.json["error"]["code"] if answer.status >= 400 else ""


class Caller(threading.Thread):
    """Makes the same call again and again, and keeps how each went and how long it took."""

    def __init__(self, machine, name, call):
        super().__init__(name=name)
        self.client = atoll.Atoll(machine.directory)
        self.call = call
        self.done, self.failures, self.longest = 0, [], 0.0
        self.over = threading.Event()
        self.start()

    def run(self):
        while not self.over.is_set():
            begin = time.monotonic()
            try:
                failure = self.call(self.client)
            except OSError:
                failure = None  # atolld itself was away, and says so by closing
            except Exception as error:  # pylint: disable=broad-except
                failure = repr(error)
            self.longest = max(self.longest, time.monotonic() - begin)
            self.done += 1
            if failure:
                self.failures.append(failure)
            time.sleep(0.05)
        self.client.close()

    def end(self):
        self.over.set()
        self.join()


def create_and_delete(client):
    answer = client.try_request("POST", "/v1/sandboxes", {"template": "python"})
    if answer.status == 201:
        client.try_request("DELETE", f"/v1/sandboxes/{answer.json['id']}")
        return None
    if answer.status in (0, 503):
        return None if answer.status == 0 or find_code(answer) in REFUSALS else answer.body
    return answer.body


def execute_in(sandbox):
    def call(client):
        body = {"cmd": ["echo", "here"], "wait": True}
        answer = client.try_request("POST", f"/v1/sandboxes/{sandbox}/execs", body)
        if answer.status == 0 or answer.status == 503 and find_code(answer) in REFUSALS:
            return None
        good = answer.status == 200 and answer.json["stdout"] == "here\n"
        return None if good else answer.body
    return call


class Hung(atoll.SystemTest):
    def pid_of(self, name):
        run = self.atoll.run_directory
        locks = {"atolld": "daemon/atolld.lock", "atoll-warden": "warden.lock",
                 "atoll-builder": "builder.lock", "atoll-egress": "egress/egress.lock"}
        return atoll.lock_holder(os.path.join(run, locks[name]))

    def wait_replaced(self, name, before):
        def replaced():
            return self.pid_of(name) not in (None, before)
        atoll.wait_for(f"another {name}", replaced)
        self.atoll.close()
        self.atoll.wait_ready()

    def check_hang(self, name):
        """Stopped while calls are made; the figures are for people."""
        kept = self.atoll.create()["id"]
        callers = [Caller(self.atoll, "create", create_and_delete),
                   Caller(self.atoll, "exec", execute_in(kept))]
        try:
            for caller in callers:
                atoll.wait_for("a first call", lambda one=caller: one.done > 0)
            victim = self.pid_of(name)
            begin = time.monotonic()
            os.kill(victim, signal.SIGSTOP)
            counts = [caller.done for caller in callers]
            self.wait_replaced(name, victim)
            replaced = time.monotonic() - begin
            # Calls went on, and go on.
            for caller, count in zip(callers, counts):
                atoll.wait_for("calls to go on",
                               lambda one=caller, most=count: one.done > most + 3)
        finally:
            for caller in callers:
                caller.end()
        for caller in callers:
            self.assertEqual(caller.failures, [], caller.name)
            print(f"{name}: {caller.done} calls of {caller.name}, the longest "
                  f"{caller.longest:.2f} s", flush=True)
        print(f"{name} was replaced after {replaced:.2f} s", flush=True)
        with self.assertRaises(ProcessLookupError):
            os.kill(victim, 0)
        self.check_serves(kept)

    def check_serves(self, kept):
        self.assertEqual(self.atoll.python(kept, "print(1)")["stdout"], "1\n")
        self.atoll.delete(self.create_in_time())
        self.atoll.delete(kept)

    def create_in_time(self):
        """Refusals may still be under way: a watch that saw silence, disk that was promised."""
        def created():
            answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
            self.assertIn(find_code(answer), REFUSALS | {""})
            return answer.status == 201 and answer.json["id"]
        return atoll.wait_for("creates to go on", created)

    def test_the_warden(self):
        self.check_hang("atoll-warden")

    def test_the_daemon(self):
        self.check_hang("atolld")

    def test_egress(self):
        self.check_hang("atoll-egress")

    def test_the_builder(self):
        self.check_hang("atoll-builder")

    def test_one_that_goes_on_in_time_is_let_live_and_repeats_nothing(self):
        """Stopped until its callers gave up, but not until it is killed."""
        warden = self.pid_of("atoll-warden")
        before = self.atoll.groups("sb*")
        os.kill(warden, signal.SIGSTOP)
        try:
            answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
        finally:
            os.kill(warden, signal.SIGCONT)
        self.assertEqual((answer.status, find_code(answer)), (503, "warden_unavailable"))
        self.atoll.delete(self.create_in_time())
        # What was asked for and given up is not made after all.
        atoll.wait_for("nothing to be there of it", lambda: self.atoll.groups("sb*") == before)

    def test_readyz_and_status_name_who_hangs_and_since_when(self):
        egress = self.pid_of("atoll-egress")
        os.kill(egress, signal.SIGSTOP)

        def unwell():
            answer = self.atoll.request("GET", "/readyz")
            checks = {check["name"]: check for check in answer.json["checks"]}
            return answer.status == 503 and checks["egress"]
        check = atoll.wait_for("readyz to see it", unwell)
        self.assertEqual(check["status"], "unwell")
        self.assertIn("does not answer", check["reason"])
        self.assertRegex(check["since"], r"^20\d\d-")
        done = self.atoll.cli("status", check=False)
        # It may have been replaced while it was asked.
        if self.pid_of("atoll-egress") == egress:
            self.assertIn(b"egress", done.stdout.split(b"\n")[0])
        self.wait_replaced("atoll-egress", egress)
        status = json.loads(self.atoll.cli("--json", "status").stdout)
        self.assertTrue(status["ready"])
        self.assertTrue(status["processes"]["atoll-egress"]["answers"])

    def test_each_that_is_killed_is_started_again(self):
        kept = self.atoll.create()["id"]
        for name in ("atoll-warden", "atoll-builder", "atoll-egress", "atolld"):
            victim = self.pid_of(name)
            os.kill(victim, signal.SIGKILL)
            self.wait_replaced(name, victim)
        self.check_serves(kept)


class HungSupervisor(unittest.TestCase):
    def test_restart_and_status_say_that_it_hangs(self):
        machine = atoll.Atoll().up()
        try:
            supervisor = machine.supervisor_pid
            os.kill(supervisor, signal.SIGSTOP)
            done = machine.cli("restart", check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"kill -9 {supervisor}".encode(), done.stderr)
            done = machine.cli("status", check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(b"supervisor does not answer", done.stdout)
            os.kill(supervisor, signal.SIGKILL)
            atoll.wait_for("it to be gone", lambda: machine.supervisor_pid is None)
            self.assertIn(b"supervisor does not run", machine.cli("status", check=False).stdout)
            daemon = machine.daemon_pid
            machine.up()
            self.assertEqual(machine.daemon_pid, daemon)
            machine.cli("status")
        finally:
            machine.destroy()

    def test_the_service_manager_hears_of_its_loop_for_as_long_as_it_turns(self):
        """What systemd's watchdog goes by: it kills a supervisor that it does not hear."""
        machine = atoll.Atoll()
        path = os.path.join(machine.directory, "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            manager.settimeout(atoll.SLOW * 60)
            command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", machine.directory, "up",
                       "--no-warm-pool", "--kvm-trial", "0", "--listen", "127.0.0.1:0"]
            with subprocess.Popen(command, env={**os.environ, "NOTIFY_SOCKET": path},
                                  stderr=subprocess.DEVNULL) as supervisor:
                try:
                    self.assertEqual(manager.recv(64), b"READY=1")
                    for _ in range(3):
                        self.assertEqual(manager.recv(64), b"WATCHDOG=1")
                    machine.wait_ready()
                    supervisor.terminate()
                    while manager.recv(64) != b"STOPPING=1":
                        pass
                finally:
                    supervisor.terminate()
        machine.destroy()


if __name__ == "__main__":
    atoll.main()
