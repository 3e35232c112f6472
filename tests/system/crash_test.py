"""kill -9 is a normal way to stop: what runs goes on, what was printed is there, nothing leaks."""
import os
import signal
import threading
import time

import atoll

LINES = 200_000
PRINTER = f"""
import sys
for number in range({LINES}):
    sys.stdout.write("%09d\\n" % number)
    if number % 1000 == 0: sys.stderr.write("%d\\n" % number)
"""
EXPECTED = b"".join(b"%09d\n" % number for number in range(LINES))
EXPECTED_ERRORS = b"".join(b"%d\n" % number for number in range(0, LINES, 1000))
PAUSE = "== 0:\n        time.sleep(0.01)\n        "
SLOW_PRINTER = "import time\n" + PRINTER.replace("== 0: ", PAUSE)


def kill(pid):
    os.kill(pid, signal.SIGKILL)
    atoll.wait_for("the process to die", lambda: not os.path.exists(f"/proc/{pid}") or
                   atoll.is_zombie(pid))


class Crash(atoll.SystemTest):
    def setUp(self):
        self.sandbox = self.atoll.create()["id"]

    def tearDown(self):
        self.atoll.wait_ready()
        self.atoll.delete(self.sandbox)
        self.assertEqual(self.atoll.subvolumes(), [])

    def kill_while_printing(self, *names):
        exec_id = self.atoll.start(self.sandbox, ["python3", "-c", SLOW_PRINTER])["id"]
        time.sleep(0.3)
        self.atoll.close()
        for name in names:
            kill(getattr(self.atoll, f"{name}_pid"))
        self.atoll.wait_ready()
        shown = self.atoll.request("GET", f"/v1/sandboxes/{self.sandbox}")
        self.assertEqual((shown.status, shown.json["state"]), (200, "running"))
        done = self.atoll.wait_ended(self.sandbox, exec_id)
        self.assertEqual((done["verdict"], done["exit_code"]), ("ok", 0), done.get("failure"))
        self.assertEqual(self.atoll.output(self.sandbox, exec_id), EXPECTED)
        self.assertEqual(self.atoll.output(self.sandbox, exec_id, "stderr"), EXPECTED_ERRORS)
        after = self.atoll.python(self.sandbox, "print('alive')")
        self.assertEqual(after["stdout"], "alive\n")

    def test_daemon(self):
        self.kill_while_printing("daemon")

    def test_warden(self):
        self.kill_while_printing("warden")

    def test_both(self):
        self.kill_while_printing("daemon", "warden")
        self.kill_while_printing("warden", "daemon")

    def test_twenty_kills_at_random_moments(self):
        exec_id = self.atoll.start(self.sandbox, ["python3", "-c", SLOW_PRINTER])["id"]
        for number in range(20):
            time.sleep(0.01 * (number * 7 % 13))
            self.atoll.close()
            pid = self.atoll.daemon_pid if number % 3 else self.atoll.warden_pid
            if pid:
                kill(pid)
        self.atoll.wait_ready()
        done = self.atoll.wait_ended(self.sandbox, exec_id)
        self.assertEqual(done["verdict"], "ok")
        self.assertEqual(self.atoll.output(self.sandbox, exec_id), EXPECTED)

    def test_a_create_that_waits_for_its_program_leaves_nothing(self):
        """Nobody was told of its sandbox before that is ready; afterwards it is there."""
        self.atoll.add_starting("waiting", "test -e /home/user/ready")
        answers = []

        def create():
            client = atoll.Atoll(self.atoll.directory)
            answers.append(client.try_request("POST", "/v1/sandboxes", {"template": "waiting"}))
            client.close()

        def waiting():
            listed = self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]
            made = [each["id"] for each in listed if each["template"] == "waiting"]
            done = made and self.atoll.request("GET", f"/v1/sandboxes/{made[0]}/execs")
            return done and len(done.json["execs"]) == 2 and made[0]
        for ready in (False, True):
            work = threading.Thread(target=create)
            work.start()
            made = atoll.wait_for("its program to be asked", waiting)
            if ready:
                self.atoll.execute(made, ["touch", "/home/user/ready"])
                work.join()
            self.atoll.close()
            kill(self.atoll.daemon_pid)
            work.join()
            self.atoll.wait_ready()
            self.assertEqual(answers.pop().status, 201 if ready else 0)
            shown = self.atoll.request("GET", f"/v1/sandboxes/{made}")
            self.assertEqual(shown.status, 200 if ready else 404)
            kept = [self.sandbox, made] if ready else [self.sandbox]
            atoll.wait_for("the layers of both or one",
                           lambda kept=kept: self.atoll.subvolumes() == sorted(kept))
        self.assertEqual(shown.json["state"], "running")
        self.atoll.delete(made)
        atoll.wait_for("its layer to be gone",
                       lambda: self.atoll.subvolumes() == [self.sandbox])

    def test_new_sandboxes_after_the_warden_came_back(self):
        kill(self.atoll.warden_pid)

        def created():
            answer = self.atoll.try_request("POST", "/v1/sandboxes", {"template": "python"})
            self.assertIn(answer.status, (201, 503), answer.body)
            return answer.status == 201 and answer.json["id"]
        sandbox = atoll.wait_for("a create to succeed again", created)
        # Both layers are on one file system: a pool that is attached twice would be corrupted.
        for each in (self.sandbox, sandbox):
            write = "head -c 1m /dev/urandom > f && sync f && wc -c < f"
            done = self.atoll.execute(each, ["sh", "-c", write])
            self.assertEqual(done["stdout"], "1048576\n", done["stderr"])
        self.atoll.delete(sandbox)

    def test_creates_under_kills_leave_nothing(self):
        stop = threading.Event()
        statuses = []

        def create_and_delete():
            client = atoll.Atoll(self.atoll.directory)
            while not stop.is_set():
                answer = client.try_request("POST", "/v1/sandboxes", {"template": "python"})
                statuses.append(answer.status)
                if answer.status == 201:
                    client.try_request("DELETE", f"/v1/sandboxes/{answer.json['id']}")
        workers = [threading.Thread(target=create_and_delete) for _ in range(2)]
        for worker in workers:
            worker.start()
        for number in range(8):
            time.sleep(0.25)
            pid = self.atoll.daemon_pid if number % 2 else self.atoll.warden_pid
            if pid:
                kill(pid)
        stop.set()
        for worker in workers:
            worker.join()
        self.atoll.close()
        self.atoll.wait_ready()
        self.assertTrue(set(statuses) <= {0, 201, 503}, set(statuses))
        for shown in self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]:
            if shown["id"] != self.sandbox:
                self.atoll.request("DELETE", f"/v1/sandboxes/{shown['id']}")
        atoll.wait_for("one isolate to be left", lambda: self.atoll.subvolumes() == [self.sandbox])

    def test_agent_death_fails_the_sandbox_and_frees_it(self):
        sandbox = self.atoll.create()["id"]
        exec_id = self.atoll.start(sandbox, ["sleep", "60"])["id"]
        kill(self.atoll.agent_pid(sandbox))
        done = self.atoll.wait_ended(sandbox, exec_id)
        self.assertEqual(done["verdict"], "sandbox_gone")
        shown = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}").json
        self.assertEqual(shown["state"], "failed")
        atoll.wait_for("its layer to be freed", lambda: sandbox not in self.atoll.subvolumes())
        refused = self.atoll.request("POST", f"/v1/sandboxes/{sandbox}/execs", {"cmd": ["true"]})
        self.assertEqual(refused.status, 409)
        self.atoll.delete(sandbox)


if __name__ == "__main__":
    atoll.main()
