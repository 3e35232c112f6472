"""Volumes on the real kernel: who may have them, their limits, and what they survive."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atoll  # noqa: E402

MIB = 1 << 20


class Volumes(atoll.SystemTest):
    def call(self, method, path, body=None, expect=200):
        answer = self.atoll.request(method, path, body)
        self.assertEqual(answer.status, expect, answer.body)
        return answer.json if answer.body else None

    def make(self, name="cache", size=16 * MIB):
        return self.call("POST", "/v1/volumes", {"name": name, "bytes": size}, 201)

    def create(self, path="/srv/cache", mode="rw", name="cache", **fields):
        volumes = [{"name": name, "path": path, "mode": mode}]
        return self.atoll.create(volumes=volumes, **fields)["id"]

    def refuse(self, body, status, code):
        error = self.call("POST", "/v1/sandboxes", {"template": "python", **body}, status)["error"]
        self.assertEqual(error["code"], code)
        return error

    def sh(self, sandbox, line, **fields):
        return self.atoll.execute(sandbox, ["sh", "-c", line], **fields)["stdout"]

    def tearDown(self):
        for each in self.call("GET", "/v1/sandboxes?limit=1000")["sandboxes"]:
            self.atoll.delete(each["id"])
        for each in self.call("GET", "/v1/snapshots?limit=1000")["snapshots"]:
            self.call("DELETE", f"/v1/snapshots/{each['id']}?children=adopt", expect=204)
        for each in self.call("GET", "/v1/volumes")["volumes"]:
            self.assertEqual(each["used_by"], [])
            self.call("DELETE", f"/v1/volumes/{each['name']}", expect=204)
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])

    def test_files_outlive_sandboxes_and_every_process(self):
        made = self.make()
        self.assertEqual((made["name"], made["bytes"], made["used_by"]), ("cache", 16 * MIB, []))
        first = self.create()
        self.assertEqual(self.sh(first, "echo kept >/srv/cache/file; id -u; stat -c %u "
                                        "/srv/cache/file"), "1000\n1000\n")
        self.atoll.request("PUT", f"/v1/sandboxes/{first}/files/srv/cache/put", b"bytes",
                           headers={"Content-Type": "application/octet-stream"})
        shown = self.call("GET", f"/v1/sandboxes/{first}")
        self.assertEqual(shown["volumes"], [{"name": "cache", "path": "/srv/cache", "mode": "rw"}])
        self.assertEqual(self.call("GET", "/v1/volumes/cache")["used_by"],
                         [{"sandbox": first, "mode": "rw"}])
        for pid_of in ("daemon_pid", "warden_pid"):
            pid = getattr(self.atoll, pid_of)
            os.kill(pid, signal.SIGKILL)
            atoll.wait_for("a new process", lambda: (getattr(self.atoll, pid_of) or pid) != pid)
            self.atoll.close()
            self.atoll.wait_ready()
        self.assertEqual(self.sh(first, "cat /srv/cache/file"), "kept\n")
        self.refuse({"volumes": [{"name": "cache", "path": "/x"}]}, 409, "volume_in_use")
        self.atoll.delete(first)
        second = self.create("/home/user/deep/down")
        self.assertEqual(self.sh(second, "cd /home/user/deep/down && cat file put"), "kept\nbytes")
        self.assertEqual(self.sh(second, "ls /srv"), "")

    def test_one_writes_or_many_read(self):
        self.make()
        writer = self.create()
        self.sh(writer, "echo one >/srv/cache/file")
        for mode in ("rw", "ro"):
            volumes = [{"name": "cache", "path": "/x", "mode": mode}]
            error = self.refuse({"volumes": volumes}, 409, "volume_in_use")
            self.assertIn(writer, error["message"])
        error = self.call("DELETE", "/v1/volumes/cache", expect=409)["error"]
        self.assertEqual(error["code"], "volume_in_use")
        self.atoll.delete(writer)
        readers = [self.create("/data", "ro") for _ in range(3)]
        for reader in readers:
            self.assertEqual(self.sh(reader, "cat /data/file"), "one\n")
            for user in ("user", "root"):
                done = self.atoll.execute(reader, ["sh", "-c", "echo x >/data/file"], user=user)
                self.assertIn("Read-only file system", done["stderr"])
        self.refuse({"volumes": [{"name": "cache", "path": "/x"}]}, 409, "volume_in_use")

    def test_its_limit_is_its_own(self):
        self.make(size=16 * MIB)
        sandbox = self.create(limits={"disk_bytes": 32 * MIB})
        fill = "head -c 40000000 /dev/zero >{}/fill; echo $?; stat -c %s {}/fill"
        words = self.sh(sandbox, fill.format("/srv/cache", "/srv/cache")).split()
        self.assertEqual(words[0], "1")
        self.assertLessEqual(int(words[1]), 16 * MIB)
        self.assertGreater(int(words[1]), 8 * MIB)
        path = f"/v1/sandboxes/{sandbox}/files/srv/cache/more"
        binary = {"Content-Type": "application/octet-stream"}
        answer = self.atoll.request("PUT", path, b"x" * MIB, headers=binary)
        self.assertEqual((answer.status, answer.json["error"]["code"]), (507, "disk_limit"))
        # The sandbox's own disk is as empty as before.
        self.assertEqual(self.sh(sandbox, "head -c 24000000 /dev/zero >/home/user/own; echo $?"),
                         "0\n")
        snapshot = self.call("POST", f"/v1/sandboxes/{sandbox}/snapshots", {}, 201)
        self.assertLess(snapshot["bytes"], 28 * MIB, "no volume in it")

    def test_it_is_in_no_snapshot_fork_or_rollback(self):
        self.make()
        sandbox = self.create()
        self.sh(sandbox, "echo volume >/srv/cache/file; echo own >/home/user/file")
        snapshot = self.call("POST", f"/v1/sandboxes/{sandbox}/snapshots", {}, 201)["id"]
        forked = self.call("POST", f"/v1/sandboxes/{sandbox}/fork", {"count": 1}, 201)
        self.assertIn(("volume", "cache"),
                      [(one["what"], one["id"]) for one in forked["not_carried"]])
        made = self.atoll.request("POST", "/v1/sandboxes", {"snapshot": snapshot}).json["id"]
        for other in (forked["sandboxes"][0]["id"], made):
            self.assertEqual(self.sh(other, "ls -A /srv/cache; cat /home/user/file"), "own\n")
        self.sh(sandbox, "echo later >/srv/cache/file; echo later >/home/user/file")
        self.call("POST", f"/v1/sandboxes/{sandbox}/rollback", {"snapshot": snapshot})
        self.assertEqual(self.sh(sandbox, "cat /srv/cache/file /home/user/file"), "later\nown\n")
        self.assertEqual(self.call("GET", "/v1/volumes/cache")["used_by"],
                         [{"sandbox": sandbox, "mode": "rw"}])
        changes = self.call("GET", f"/v1/sandboxes/{sandbox}/diff?from={snapshot}")["changes"]
        self.assertNotIn("/srv/cache/file", [change["path"] for change in changes])

    def test_no_bit_and_no_device_in_it_counts(self):
        self.make()
        sandbox = self.create()
        mounts = self.sh(sandbox, "grep ' /srv/cache ' /proc/self/mountinfo").split()
        self.assertTrue({"nosuid", "nodev"} <= set(mounts[5].split(",")), mounts)
        line = "cp /bin/sh /srv/cache/sh; chmod 4755 /srv/cache/sh; " \
               "mknod /srv/cache/null c 1 3 || echo none"
        self.assertIn("none", self.sh(sandbox, line, user="root"))
        self.assertEqual(self.sh(sandbox, "/srv/cache/sh -pc 'id -u'"), "1000\n")

    def test_what_cannot_be_a_place_is_refused_and_leaves_nothing(self):
        self.make()
        for path in ("/", "x", "/a/../b", "/proc/x", "/dev", "/run/x", "/sys", "/etc", "/opt",
                     "/opt/atoll/x", "/a b", "/" + "x" * 103):
            volumes = [{"name": "cache", "path": path}]
            error = self.refuse({"volumes": volumes}, 400, "invalid_field")
            self.assertEqual(error["field"], "volumes.path", path)
        self.refuse({"volumes": [{"name": "none", "path": "/x"}]}, 404, "volume_not_found")
        # A link on the way, and a file.
        for path in ("/bin/x", "/usr/bin/env"):
            self.refuse({"volumes": [{"name": "cache", "path": path}]}, 409, "volume_path_refused")
        self.assertEqual(self.call("GET", "/v1/volumes/cache")["used_by"], [])
        self.assertEqual(self.call("GET", "/v1/sandboxes")["sandboxes"], [])

    def test_another_tenants_volume_does_not_exist(self):
        self.make()
        made = self.atoll.cli("--json", "key", "create", "--tenant", "stranger")
        key = json.loads(made.stdout)["key"]
        body = {"template": "python", "volumes": [{"name": "cache", "path": "/x"}]}
        answer = self.atoll.request("POST", "/v1/sandboxes", body, key=key)
        self.assertEqual((answer.status, answer.json["error"]["code"]), (404, "volume_not_found"))
        self.assertEqual(self.atoll.request("GET", "/v1/volumes", key=key).json["volumes"], [])
        for method in ("GET", "DELETE"):
            answer = self.atoll.request(method, "/v1/volumes/cache", key=key)
            self.assertEqual(answer.status, 404)

    def test_the_command_line(self):
        def run(*words):
            return self.atoll.cli(*words).stdout.decode()
        self.assertEqual(run("volume", "create", "cache", "--size", "16MiB"), "cache\n")
        run("run", "--volume", "cache:/srv/cache", "-c", "open('/srv/cache/a', 'w').write('hi')",
            "--template", "python")
        self.assertEqual(run("run", "--volume", "cache:/data:ro", "-t", "python", "-c",
                             "print(open('/data/a').read())"), "hi\n")
        sandbox = run("create", "-t", "python", "--volume", "cache:/data:ro").strip()
        self.assertIn("1 (ro)", run("volume", "ls"))
        self.assertIn(sandbox, run("volume", "show", "cache"))
        self.assertNotEqual(self.atoll.cli("volume", "rm", "cache", check=False).returncode, 0)
        run("rm", sandbox)
        run("volume", "rm", "cache")
        self.assertEqual(json.loads(run("--json", "volume", "ls")), {"volumes": []})
        for bad in ("cache", "cache:data", "cache:/data:rx"):
            done = self.atoll.cli("create", "-t", "python", "--volume", bad, check=False)
            self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    atoll.main()
