"""Replays on the real kernel: what is the same, and what is different first."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atoll  # noqa: E402


class Replay(atoll.SystemTest):
    def call(self, method, path, body=None, expect=200):
        answer = self.atoll.request(method, path, body)
        self.assertEqual(answer.status, expect, answer.body)
        return answer.json if answer.body else None

    def setUp(self):
        self.sandbox = self.atoll.create(env={"BASE": "b"})["id"]
        self.home = f"/v1/sandboxes/{self.sandbox}"
        self.sh("echo before >/home/user/file")
        self.snapshot = self.call("POST", f"{self.home}/snapshots", {}, 201)["id"]

    def tearDown(self):
        shown = self.call("GET", "/v1/sandboxes?limit=1000")["sandboxes"]
        self.assertEqual([each["id"] for each in shown], [self.sandbox], "nothing is left of it")
        listed = self.call("GET", "/v1/snapshots")["snapshots"]
        self.assertEqual([each["id"] for each in listed], [self.snapshot])
        self.atoll.delete(self.sandbox)
        self.call("DELETE", f"/v1/snapshots/{self.snapshot}", expect=204)
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])

    def sh(self, line, **fields):
        return self.atoll.execute(self.sandbox, ["sh", "-c", line], **fields)

    def replay(self, runs=None, expect=200):
        body = {"from": self.snapshot, "runs": runs}
        return self.call("POST", f"{self.home}/replay", body, expect)

    def test_what_is_done_again_is_the_same(self):
        self.sh("cat /home/user/file - >/home/user/other; echo $BASE $OWN; pwd; exit 3",
                stdin="given", env={"OWN": "o"}, cwd="/tmp")
        self.sh("id -u >/home/user/uid", user="root")
        self.sh("echo oops >&2; kill -9 $$")
        context = self.call("POST", f"{self.home}/contexts", {"language": "python"}, 201)["id"]
        for code in ("x = 6", "x * 7", "print(x); open('/home/user/py', 'w').write(str(x))",
                     "1 / 0"):
            self.call("POST", f"{self.home}/contexts/{context}/runs", {"code": code, "wait": True})
        self.sh("cat /home/user/py")
        done = self.replay()
        self.assertIsNone(done["difference"], done)
        self.assertTrue(done["files_compared"])
        self.assertEqual(done["not_replayed"], [])
        self.assertEqual([run["verdict"] for run in done["runs"]],
                         ["nonzero", "ok", "signal", "ok", "ok", "ok", "exception", "ok"])
        self.assertEqual(done["runs"][0], {"run": "e2", "verdict": "nonzero", "exit_code": 3})
        some = self.replay(["e2", f"{context}/1", f"{context}/2"])
        self.assertEqual((some["difference"], some["files_compared"]), (None, False))

    def test_the_first_difference_is_told(self):
        self.sh("echo same; head -c 8 /dev/urandom | od -An -tx1")
        self.sh("echo never reached")
        done = self.replay()
        found = done["difference"]
        self.assertEqual((found["run"], found["in"]), ("e2", "stdout"))
        self.assertGreaterEqual(found["offset"], 5)
        self.assertNotEqual(found["recorded"], found["replayed"])
        self.assertEqual(len(done["runs"]), 1)

    def test_a_file_that_nobody_wrote_again(self):
        self.sh("echo x >/home/user/by-exec")
        self.atoll.request("PUT", f"{self.home}/files/home/user/uploaded", b"bytes",
                           headers={"Content-Type": "application/octet-stream"})
        found = self.replay()["difference"]
        self.assertEqual((found["run"], found["in"]), (None, "files"))
        self.assertEqual((found["change"]["path"], found["change"]["what"]),
                         ("/home/user/uploaded", "removed"))
        done = self.atoll.cli("replay", self.sandbox, self.snapshot, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("/home/user/uploaded", done.stdout.decode())
        done = self.atoll.cli("replay", self.sandbox, self.snapshot, "e2")
        self.assertEqual(done.stdout.decode(), "1 runs are as they were\n")

    def test_an_exit_that_depends_on_what_came_between(self):
        self.atoll.request("PUT", f"{self.home}/files/home/user/flag", b"",
                           headers={"Content-Type": "application/octet-stream"})
        self.sh("test -e /home/user/flag")
        found = self.replay()["difference"]
        self.assertEqual((found["run"], found["in"], found["recorded"], found["replayed"]),
                         ("e2", "verdict", "ok", "nonzero"))

    def test_what_came_from_outside_is_not_run_again(self):
        running = self.atoll.start(self.sandbox, ["sleep", "60"])["id"]
        killed = self.atoll.start(self.sandbox, ["sleep", "60"])["id"]
        self.call("POST", f"{self.home}/execs/{killed}/signal", {"signal": "KILL"}, 204)
        self.atoll.wait_ended(self.sandbox, killed)
        fed = self.atoll.start(self.sandbox, ["cat"], stdin_open=True)["id"]
        self.atoll.request("POST", f"{self.home}/execs/{fed}/stdin?eof=true", b"x",
                           headers={"Content-Type": "application/octet-stream"})
        self.atoll.wait_ended(self.sandbox, fed)
        done = self.replay()
        self.assertEqual([one["run"] for one in done["not_replayed"]], [running, killed, fed])
        self.assertIsNone(done["difference"])


if __name__ == "__main__":
    atoll.main()
