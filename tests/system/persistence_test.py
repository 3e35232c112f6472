"""Persistent sandboxes: there again after the end of the machine, as far as a test can play it."""
import glob
import os
import shutil
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atoll  # noqa: E402


class Persistence(atoll.SystemTest):
    def call(self, method, path, body=None, expect=200):
        answer = self.atoll.request(method, path, body)
        self.assertEqual(answer.status, expect, answer.body)
        return answer.json if answer.body else None

    def sh(self, sandbox, line, **fields):
        return self.atoll.execute(sandbox, ["sh", "-c", line], **fields)["stdout"]

    def show(self, sandbox):
        return self.call("GET", f"/v1/sandboxes/{sandbox}")

    def tearDown(self):
        for each in self.call("GET", "/v1/sandboxes?limit=1000")["sandboxes"]:
            self.atoll.delete(each["id"])
        for each in self.call("GET", "/v1/volumes")["volumes"]:
            self.call("DELETE", f"/v1/volumes/{each['name']}", expect=204)
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])

    def own_processes(self):
        """The programs of this Atoll, and the agents and all else in its groups."""
        pids = set()
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            if self.atoll.directory.encode() in atoll.read(path).encode():
                pids.add(int(path.split("/")[2]))
        for sandbox in self.call("GET", "/v1/sandboxes")["sandboxes"]:
            pattern = f"/sys/fs/cgroup/**/atoll/*/{sandbox['id']}/**/cgroup.procs"
            for path in glob.glob(pattern, recursive=True):
                pids.update(int(word) for word in atoll.read(path).split())
        return pids - {0, os.getpid()}

    def lose_power(self, point=None, program="atolld"):
        """Everything that runs is gone at once, and with it all that is in memory: /run too. What
        was written before is on disk. The next of that program dies at that point, once."""
        os.sync()
        pids = self.own_processes()
        self.assertGreater(len(pids), 3)
        self.atoll.close()
        # The supervisor first, or it would start the others again.
        for pid in [self.atoll.supervisor_pid, *pids]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        atoll.wait_for("all to be dead", lambda: not [
            pid for pid in pids if os.path.exists(f"/proc/{pid}") and not atoll.is_zombie(pid)])
        shutil.rmtree(self.atoll.run_directory)
        if point:
            crash = os.path.join(self.atoll.run_directory, "crash")
            os.makedirs(crash)
            os.chmod(self.atoll.run_directory, 0o755)
            with open(os.path.join(crash, f"{program}.{point}"), "w") as armed:
                os.chmod(armed.name, 0o666)
            os.chmod(crash, 0o777)
        self.atoll.up()
        self.atoll.wait_ready()

    def check_comes_back(self, restart):
        self.call("POST", "/v1/volumes", {"name": "data", "bytes": 16 << 20}, 201)
        kept = self.atoll.create(persistence="persistent", name="kept", metadata={"k": "v"},
                                 env={"A": "b"}, limits={"disk_bytes": 64 << 20},
                                 volumes=[{"name": "data", "path": "/data"}])
        self.assertEqual(kept["persistence"], "persistent")
        sandbox = kept["id"]
        paused = self.atoll.create(persistence="persistent")["id"]
        other = self.atoll.create()["id"]
        self.assertEqual(self.show(other)["persistence"], "ephemeral")
        self.sh(sandbox, "echo kept >/home/user/file; echo also >/data/file; sync")
        self.sh(sandbox, "mkdir /opt/x; chown 5:6 /opt/x; rm /etc/motd; sync", user="root")
        context = self.call("POST", f"/v1/sandboxes/{sandbox}/contexts", {"cwd": "/tmp"}, 201)["id"]
        running = self.atoll.start(sandbox, ["sleep", "3600"])["id"]
        self.call("POST", f"/v1/sandboxes/{paused}/pause")
        restart()
        shown = self.show("kept")
        self.assertEqual((shown["id"], shown["state"], shown["generation"], shown["metadata"]),
                         (sandbox, "running", 2, {"k": "v"}))
        line = "cat /home/user/file /data/file; stat -c %u:%g /opt/x; ls /etc/motd 2>&1; echo $A"
        self.assertEqual(self.sh(sandbox, line).split("\n")[:3], ["kept", "also", "5:6"])
        self.assertIn("No such file", self.sh(sandbox, line))
        self.assertEqual(self.atoll.show_exec(sandbox, running)["verdict"], "sandbox_gone")
        run = self.call("POST", f"/v1/sandboxes/{sandbox}/contexts/{context}/runs",
                        {"code": "import os; print(os.getcwd())", "wait": True})
        self.assertEqual(run["stdout"], "/tmp\n")
        self.assertEqual(self.show(paused)["state"], "running")
        self.assertEqual(self.show(other)["state"], "failed")
        self.assertEqual(self.call("GET", "/v1/volumes/data")["used_by"],
                         [{"sandbox": sandbox, "mode": "rw"}])
        # Its limit holds as before.
        fill = "head -c 80000000 /dev/zero >/home/user/fill"
        done = self.atoll.execute(sandbox, ["sh", "-c", fill])
        self.assertEqual(done["verdict"], "disk_limit", done)

    def test_down_and_up(self):
        def restart():
            self.atoll.cli("down")
            self.atoll.close()
            self.atoll.up()
            self.atoll.wait_ready()
        self.check_comes_back(restart)

    def test_the_end_of_the_machine(self):
        self.check_comes_back(self.lose_power)

    def test_twice_and_with_a_rollback_between(self):
        sandbox = self.atoll.create(persistence="persistent")["id"]
        self.sh(sandbox, "echo one >/home/user/file; sync")
        snapshot = self.call("POST", f"/v1/sandboxes/{sandbox}/snapshots", {}, 201)["id"]
        self.sh(sandbox, "echo two >/home/user/file; sync")
        self.lose_power()
        self.assertEqual(self.sh(sandbox, "cat /home/user/file"), "two\n")
        self.call("POST", f"/v1/sandboxes/{sandbox}/rollback", {"snapshot": snapshot})
        self.assertEqual(self.sh(sandbox, "cat /home/user/file; sync"), "one\n")
        self.lose_power()
        self.assertEqual(self.sh(sandbox, "cat /home/user/file"), "one\n")
        self.atoll.delete(sandbox)
        for each in self.call("GET", "/v1/snapshots")["snapshots"]:
            self.atoll.request("DELETE", f"/v1/snapshots/{each['id']}?children=adopt")
        atoll.wait_for("no layer", lambda: self.atoll.subvolumes() == [])

    def test_atolld_dies_while_it_comes_back(self):
        sandbox = self.atoll.create(persistence="persistent")["id"]
        self.sh(sandbox, "echo kept >/home/user/file; sync")
        context = self.call("POST", f"/v1/sandboxes/{sandbox}/contexts", {}, 201)["id"]
        for point in ("persistence.row", "persistence.launched"):
            self.lose_power(point)
            self.assertEqual(os.listdir(os.path.join(self.atoll.run_directory, "crash")), [])
            self.assertEqual(self.show(sandbox)["state"], "running")
            self.assertEqual(self.sh(sandbox, "cat /home/user/file"), "kept\n")
            run = self.call("POST", f"/v1/sandboxes/{sandbox}/contexts/{context}/runs",
                            {"code": "print(6 * 7)", "wait": True})
            self.assertEqual(run["stdout"], "42\n")
            layer = "p" + sandbox[1:]
            atoll.wait_for("one layer", lambda: self.atoll.subvolumes() == [layer])

    def test_a_launch_that_dies_leaves_the_files(self):
        sandbox = self.atoll.create(persistence="persistent")["id"]
        self.sh(sandbox, "echo kept >/home/user/file; sync")
        self.lose_power("launch.agent", "atoll-warden")
        self.assertEqual(self.show(sandbox)["state"], "failed")
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        atoll.wait_for("the next start", lambda: self.atoll.try_request(
            "GET", f"/v1/sandboxes/{sandbox}").status == 200 and
            self.show(sandbox)["state"] == "running")
        self.assertEqual(self.sh(sandbox, "cat /home/user/file"), "kept\n")

    def test_what_only_has_its_files_outlives_the_machine(self):
        sandbox = self.atoll.create(files_only_after_ms=1)["id"]
        self.sh(sandbox, "echo kept >/home/user/file")
        self.call("POST", f"/v1/sandboxes/{sandbox}/pause")
        atoll.wait_for("its memory to be given back",
                       lambda: not self.show(sandbox)["pause"]["memory"])
        self.lose_power()
        self.assertEqual(self.show(sandbox)["state"], "paused")
        self.call("POST", f"/v1/sandboxes/{sandbox}/resume")
        self.assertEqual(self.sh(sandbox, "cat /home/user/file"), "kept\n")

    def test_memory_is_refused(self):
        body = {"template": "python", "persistence": "checkpoint"}
        error = self.call("POST", "/v1/sandboxes", body, 400)["error"]
        self.assertEqual((error["code"], error["field"]),
                         ("persistence_unavailable", "persistence"))

    def test_the_command_line(self):
        sandbox = self.atoll.cli("create", "-t", "python", "--persistent").stdout.decode().strip()
        self.assertEqual(self.show(sandbox)["persistence"], "persistent")


if __name__ == "__main__":
    atoll.main()
