"""Sealed snapshots on the real kernel: what is packed comes back, here and on another host, and
nothing else does."""
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atoll  # noqa: E402

PACK = {"Content-Type": "application/vnd.atoll.snapshot"}
# Something of every kind that a snapshot can have.
FILL = """
cd /home/user; echo text >file; mkdir -p d/e; echo deep >d/e/f; chmod 1750 d; chown 0:1000 d
ln file d/second; ln -s ../file d/link; head -c 3000000 /dev/urandom >big; truncate -s 100000 sparse
rm /etc/debian_version; rm -r /etc/init.d; echo changed >>/etc/passwd; chmod 4755 big
rm /etc/hosts; mkdir /etc/hosts; touch -d 2001-01-01 file; mkfifo fifo
python3 -c 'import os; os.setxattr("file", "user.note", b"kept")'
"""
LOOK = r"""
cd /
find etc home tmp root var -xdev ! -type p \( -type d -printf '%p d %m %U %G\n' -o \
  -printf '%p %y %m %U %G %s %l\n' \) | sort | sha256sum
cat /home/user/file /etc/passwd /home/user/big | sha256sum
stat -c '%Y %h' /home/user/file
python3 -c 'import os; print(os.getxattr("/home/user/file", "user.note"))'
"""


class Sealing(atoll.SystemTest):
    def call(self, method, path, body=None, expect=200, home=None, **more):
        answer = (home or self.atoll).request(method, path, body, **more)
        self.assertEqual(answer.status, expect, answer.body[:500])
        return answer.json if answer.body else None

    def sh(self, sandbox, line, home=None, **fields):
        done = (home or self.atoll).execute(sandbox, ["sh", "-c", line], **fields)
        self.assertEqual(done["verdict"], "ok", done)
        return done["stdout"]

    def cut(self, sandbox, **body):
        return self.call("POST", f"/v1/sandboxes/{sandbox}/snapshots", body, 201)["id"]

    def seal(self, snapshot):
        return self.call("POST", f"/v1/snapshots/{snapshot}/seal")

    def pack(self, snapshot):
        answer = self.atoll.request("GET", f"/v1/snapshots/{snapshot}/pack")
        self.assertEqual(answer.status, 200, answer.body[:500])
        return answer.body

    def refuse(self, pack, code):
        error = self.call("POST", "/v1/snapshots", pack, 422, headers=PACK)["error"]
        self.assertEqual(error["code"], code)

    def blobs(self):
        root = os.path.join(self.atoll.directory, "daemon", "blobs")
        return sorted(name for _, _, names in os.walk(root) for name in names)

    def snapshots(self):
        return [row["id"] for row in self.call("GET", "/v1/snapshots?limit=1000")["snapshots"]]

    def tearDown(self):
        for each in self.call("GET", "/v1/sandboxes?limit=1000")["sandboxes"]:
            self.atoll.delete(each["id"])
        for each in self.snapshots():
            self.call("DELETE", f"/v1/snapshots/{each}?children=adopt", expect=204)
        atoll.wait_for("the pool to be empty", lambda: self.atoll.subvolumes() == [])
        atoll.wait_for("the blobs to be gone", lambda: self.blobs() == [])

    def filled(self):
        sandbox = self.atoll.create()["id"]
        self.sh(sandbox, FILL, user="root")
        return sandbox

    def test_what_was_packed_comes_back(self):
        sandbox = self.filled()
        snapshot = self.cut(sandbox, label="first", metadata={"k": "v"})
        before = self.sh(sandbox, LOOK, user="root")
        error = self.call("GET", f"/v1/snapshots/{snapshot}/pack", expect=409)["error"]
        self.assertEqual(error["code"], "snapshot_not_sealed")
        sealed = self.seal(snapshot)
        self.assertEqual(sealed["stage"], "sealed")
        self.assertGreater(sealed["new_bytes"], 3_000_000)
        self.assertEqual(self.seal(snapshot)["new_bytes"], 0)
        pack = self.pack(snapshot)
        self.assertEqual(len(pack), sealed["sealed_bytes"])
        self.atoll.delete(sandbox)
        self.call("DELETE", f"/v1/snapshots/{snapshot}", expect=204)
        atoll.wait_for("the blobs to be gone", lambda: self.blobs() == [])
        made = self.call("POST", "/v1/snapshots", pack, 201, headers=PACK)
        self.assertEqual((made["label"], made["metadata"], made["stage"], made["sealed_bytes"]),
                         ("first", {"k": "v"}, "sealed", len(pack)))
        self.assertEqual(self.call("GET", "/v1/sandboxes")["sandboxes"], [])
        child = self.call("POST", "/v1/sandboxes", {"snapshot": made["id"]}, 201)["id"]
        self.assertEqual(self.sh(child, LOOK, user="root"), before)
        self.assertEqual(self.sh(child, "ls -d /etc/debian_version /etc/init.d 2>&1 | wc -l"),
                         "2\n")
        # What was packed, unpacked and packed again is the same but for its manifest.
        again = self.cut(child)
        self.assertLess(self.seal(again)["new_bytes"], 2000)
        self.assertEqual(self.pack(made["id"]), pack)

    def test_one_call_makes_and_seals(self):
        sandbox = self.filled()
        path = f"/v1/sandboxes/{sandbox}/snapshots"
        made = self.call("POST", path, {"label": "both", "stage": "sealed"}, 201)
        self.assertEqual((made["stage"], made["label"]), ("sealed", "both"))
        self.assertGreater(made["new_bytes"], 3_000_000)
        self.assertGreater(made["frozen_ms"], 0)
        self.assertEqual(len(self.pack(made["id"])), made["sealed_bytes"])
        self.assertEqual(self.call("POST", path, {"stage": "local"}, 201)["stage"], "local")
        self.assertEqual(self.atoll.cli("snapshot", "create", sandbox, "--sealed").returncode, 0)
        stages = [row["stage"] for row in self.call("GET", "/v1/snapshots")["snapshots"]]
        self.assertEqual(stages, ["sealed", "local", "sealed"])

    def share(self, size):
        self.atoll.cli("tenant", "set", "--sealed-share", size)

    def test_a_share_that_is_full_refuses_and_nothing_stays(self):
        self.addCleanup(self.share, "64GiB")
        sandbox = self.filled()
        path = f"/v1/sandboxes/{sandbox}/snapshots"
        first = self.call("POST", path, {"stage": "sealed"}, 201)
        pack, held = self.pack(first["id"]), self.blobs()
        self.share(str(first["sealed_bytes"] + 100_000))
        # What is there counts once: another manifest, and no part.
        again = self.call("POST", path, {"stage": "sealed"}, 201)
        self.assertLess(again["new_bytes"], 100_000)
        self.call("DELETE", f"/v1/snapshots/{again['id']}", expect=204)
        atoll.wait_for("its manifest to be gone", lambda: self.blobs() == held)
        self.sh(sandbox, "head -c 3000000 /dev/urandom >/home/user/other")
        error = self.call("POST", path, {"stage": "sealed"}, 429)["error"]
        self.assertEqual(error["code"], "sealed_share_full")
        self.assertIn("--sealed-share", error["remedy"])
        self.assertEqual(self.snapshots(), [first["id"]], "it is not kept either")
        local = self.cut(sandbox)
        self.assertEqual(self.call("POST", f"/v1/snapshots/{local}/seal", expect=429)
                         ["error"]["code"], "sealed_share_full")
        atoll.wait_for("its parts to be gone", lambda: self.blobs() == held)
        for each in (local, first["id"]):
            self.call("DELETE", f"/v1/snapshots/{each}?children=adopt", expect=204)
        atoll.wait_for("the blobs to be gone", lambda: self.blobs() == [])
        self.share("1MiB")
        error = self.call("POST", "/v1/snapshots", pack, 429, headers=PACK)["error"]
        self.assertEqual(error["code"], "sealed_share_full")
        self.assertEqual((self.snapshots(), self.blobs()), ([], []))
        self.share("1GiB")
        self.call("POST", "/v1/snapshots", pack, 201, headers=PACK)

    def test_a_key_of_an_import_is_of_its_file(self):
        sandbox = self.filled()
        packs = []
        for line in ("echo one >/home/user/n", "echo two >/home/user/n"):
            self.sh(sandbox, line, user="root")
            packs.append(self.pack(self.seal(self.cut(sandbox))["id"]))
        key = PACK | {"Idempotency-Key": "import-once"}
        refused = self.call("POST", "/v1/snapshots", packs[0][:-1], 422, headers=key)["error"]
        self.assertEqual(refused["code"], "snapshot_refused")
        made = self.call("POST", "/v1/snapshots", packs[0], 201, headers=key)
        before = self.snapshots()
        again = self.atoll.request("POST", "/v1/snapshots", packs[0], headers=key)
        self.assertEqual((again.status, again.json["id"]), (201, made["id"]))
        self.assertEqual(again.headers["Idempotency-Replayed"], "true")
        other = self.call("POST", "/v1/snapshots", packs[1], 422, headers=key)["error"]
        self.assertEqual(other["code"], "idempotency_key_reused")
        self.assertEqual(self.snapshots(), before)

    def test_a_second_seal_without_changes_stores_next_to_nothing(self):
        sandbox = self.filled()
        first = self.seal(self.cut(sandbox))
        again = self.seal(self.cut(sandbox))
        self.assertLess(again["new_bytes"], first["sealed_bytes"] / 100)
        self.sh(sandbox, "echo one line more >>/home/user/file", user="root")
        changed = self.seal(self.cut(sandbox))
        self.assertLess(changed["new_bytes"], first["sealed_bytes"])
        print(f"sealed {first['sealed_bytes']} bytes; again without changes {again['new_bytes']}, "
              f"with a line more {changed['new_bytes']}", flush=True)

    def test_what_is_not_whole_is_refused_and_nothing_stays(self):
        sandbox = self.filled()
        one, other = self.cut(sandbox), None
        self.sh(sandbox, "head -c 3000000 /dev/urandom >/home/user/other")
        other = self.cut(sandbox)
        self.seal(one)
        self.seal(other)
        packs = [self.pack(each) for each in (one, other)]
        self.assertEqual(packs[0][:8], b"ATLSNAP1")
        manifests = [12 + int.from_bytes(pack[8:12], "little") + 96 for pack in packs]
        self.atoll.delete(sandbox)
        for each in (one, other):
            self.call("DELETE", f"/v1/snapshots/{each}?children=adopt", expect=204)
        atoll.wait_for("the blobs to be gone", lambda: self.blobs() == [])
        pack, manifest = packs[0], manifests[0]
        for cut in (0, 7, 12, manifest - 1, manifest, manifest + 4096, len(pack) - 1):
            self.refuse(pack[:cut], "snapshot_refused")
        for place in (0, 9, 20, manifest - 90, manifest - 1, manifest + 4096, len(pack) - 1):
            flipped = bytearray(pack)
            flipped[place] ^= 0x20
            self.refuse(bytes(flipped), "snapshot_refused")
        self.refuse(pack + b"x", "snapshot_refused")
        self.refuse(pack[:manifest] + packs[1][manifests[1]:], "snapshot_refused")
        self.refuse(pack[:manifest - 64] + bytes(64) + pack[manifest:], "snapshot_refused")
        self.refuse(b"", "snapshot_refused")
        self.assertEqual(self.snapshots(), [])
        self.assertEqual(self.call("GET", "/v1/sandboxes")["sandboxes"], [])
        atoll.wait_for("the blobs to be gone", lambda: self.blobs() == [])
        self.assertEqual(self.atoll.subvolumes(), [])

    def test_another_host_wants_to_trust(self):
        sandbox = self.filled()
        snapshot = self.cut(sandbox)
        self.seal(snapshot)
        pack = self.pack(snapshot)
        before = self.sh(sandbox, LOOK, user="root")
        other = atoll.Atoll().up()
        try:
            error = self.call("POST", "/v1/snapshots", pack, 422, other, headers=PACK)["error"]
            self.assertEqual(error["code"], "snapshot_untrusted")
            key = atoll.read(os.path.join(self.atoll.directory, "receipt.pub"))
            with open(os.path.join(other.directory, "trusted-keys"), "w") as trusted:
                trusted.write("# the first host\n" + key)
            made = self.call("POST", "/v1/snapshots", pack, 201, other, headers=PACK)["id"]
            child = self.call("POST", "/v1/sandboxes", {"snapshot": made}, 201, other)["id"]
            self.assertEqual(self.sh(child, LOOK, other, user="root"), before)
        finally:
            other.destroy()

    def test_the_command_line_exports_and_imports(self):
        self.atoll.create(name="work")
        self.atoll.cli("exec", "work", "--", "sh", "-c", "echo text >/home/user/file")
        snapshot = self.atoll.cli("snapshot", "create", "work").stdout.decode().strip()
        path = os.path.join(self.atoll.directory, "work.snapshot")
        self.atoll.cli("snapshot", "export", snapshot, "-o", path)
        self.assertNotEqual(self.atoll.cli("snapshot", "export", snapshot, "-o", path,
                                           check=False).returncode, 0, "it replaced a file")
        made = self.atoll.cli("snapshot", "import", path).stdout.decode().strip()
        child = self.atoll.cli("create", "--snapshot", made).stdout.decode().strip()
        text = self.atoll.cli("cat", f"{child}:/home/user/file").stdout
        self.assertEqual(text, b"text\n")
        subprocess.run(["truncate", "-s", "-1", path], check=True)
        refused = self.atoll.cli("snapshot", "import", path, check=False)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn(b"cut off", refused.stderr)
        os.unlink(path)

    def test_figures(self):
        """What SPECIFICATION.md says, printed."""
        sandbox = self.atoll.create(limits={"disk_bytes": 2 << 30})["id"]
        made = "cd /home/user; head -c 256M /dev/urandom >noise; tar c /usr >tree; " \
               "du -cbm * | tail -1"
        size = int(self.sh(sandbox, made).split()[0])
        snapshot = self.cut(sandbox)
        begin = time.monotonic()
        sealed = self.seal(snapshot)
        took = time.monotonic() - begin
        begin = time.monotonic()
        pack = self.pack(snapshot)
        read = time.monotonic() - begin
        begin = time.monotonic()
        self.call("POST", "/v1/snapshots", pack, 201, headers=PACK)
        back = time.monotonic() - begin
        print(f"{size} MiB: sealed to {sealed['sealed_bytes'] >> 20} MiB with "
              f"{size / took:.0f} MiB/s, exported with {(len(pack) >> 20) / read:.0f} MiB/s, "
              f"imported with {size / back:.0f} MiB/s", flush=True)


if __name__ == "__main__":
    atoll.main()
