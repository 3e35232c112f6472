"""A disk that is full, by a tenant or by somebody else on the host: nobody else suffers for a
tenant, what is deleted is deleted, and when there is room again all is well without a hand."""
import errno
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

import atoll

DISK_BYTES = 2560 << 20
FLOOR_BYTES = 1 << 30
# Fails for good when its file system does.
WRITER = f"""
import os, time
number = 0
while True:
    number += 1
    try:
        with open("/home/user/%d" % (number % 50), "wb") as file:
            file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno == {errno.EROFS}:
            raise SystemExit(9)
    time.sleep(0.01)
"""


class SmallDisk:
    """An ext4 of its own, in a file."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="atoll-full-disk-")
        os.chmod(self.folder, 0o755)
        self.file, self.mount = self.folder + "/file", self.folder + "/disk"
        os.mkdir(self.mount)
        with open(self.file, "wb") as file:
            file.truncate(DISK_BYTES)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1", self.file],
                       check=True)
        subprocess.run(["mount", "-o", "loop", self.file, self.mount], check=True)
        self.ballast = self.mount + "/ballast"

    @property
    def free(self):
        space = os.statvfs(self.mount)
        return space.f_bavail * space.f_frsize

    def fill(self):
        """To the last block, as any program of the host might."""
        with open(self.ballast, "ab") as file:
            step = self.free
            while step >= 4096:
                try:
                    at = file.seek(0, os.SEEK_END)
                    os.posix_fallocate(file.fileno(), at, step)
                except OSError as error:
                    assert error.errno == errno.ENOSPC, error
                    os.ftruncate(file.fileno(), at)
                    step //= 2
                else:
                    step = min(step, self.free)

    def free_again(self):
        os.unlink(self.ballast)

    def remove(self):
        def unmounted():
            return subprocess.run(["umount", self.mount], capture_output=True).returncode == 0
        atoll.wait_for("the small disk to be let go", unmounted)
        shutil.rmtree(self.folder)


class FullDisk(unittest.TestCase):
    def setUp(self):
        self.disk = SmallDisk()
        self.addCleanup(self.disk.remove)
        state = self.disk.mount + "/state"
        os.mkdir(state)
        self.atoll = atoll.Atoll(state).up("--pool-size", "1100MiB")
        self.addCleanup(self.atoll.destroy)

    def key_of(self, tenant):
        return self.atoll.request("POST", "/v1/keys", {"tenant": tenant}).json["key"]

    def unwell(self):
        """Names of what /readyz says is unwell."""
        answer = self.atoll.try_request("GET", "/readyz")
        if answer.status != 503:
            return []
        return [one["name"] for one in answer.json["checks"] if one["status"] != "ok"]

    def state_of(self, box):
        return self.atoll.try_request("GET", f"/v1/sandboxes/{box}").json["state"]

    def check_works(self):
        self.atoll.wait_ready()
        box = self.atoll.create()["id"]
        self.assertEqual(self.atoll.python(box, "print('well')")["stdout"], "well\n")
        self.atoll.delete(box)

    def unback_pool(self):
        """Takes away the blocks that the pool has never written, as an older release made it."""
        path = self.atoll.directory + "/pool.btrfs"
        before = os.stat(path).st_blocks
        with open(path, "rb") as file:
            end, at = os.fstat(file.fileno()).st_size, 0
            while at < end:
                hole = os.lseek(file.fileno(), at, os.SEEK_HOLE)
                try:
                    at = os.lseek(file.fileno(), hole, os.SEEK_DATA)
                except OSError:
                    at = end
                if at > hole:
                    subprocess.run(["fallocate", "--punch-hole", "-o", str(hole), "-l",
                                    str(at - hole), path], check=True)
        self.assertLess(os.stat(path).st_blocks, before)

    def break_pool(self, box):
        """Fills the disk while the sandbox writes, until its file system has failed."""
        self.unback_pool()
        self.atoll.start(box, ["python3", "-c", WRITER])
        self.disk.fill()

    def test_what_a_tenant_prints_leaves_room_for_everybody_else(self):
        key = self.key_of("mallory")
        body = {"template": "python", "limits": {"output_bytes": 4 << 30}}
        made = self.atoll.request("POST", "/v1/sandboxes", body, key=key)
        self.assertEqual(made.status, 201, made.body)
        box = made.json["id"]
        body = {"cmd": ["head", "-c", "1500000000", "/dev/zero"], "wait": True}
        done = self.atoll.request("POST", f"/v1/sandboxes/{box}/execs", body, key=key)
        self.assertEqual(done.status, 200, done.body[:500])
        self.assertEqual(done.json["verdict"], "ok")
        self.assertIn("output", done.json["limits_hit"])
        print(f"kept {done.json['stdout_bytes'] >> 20} MiB, cut {done.json['stdout_cut'] >> 20} "
              f"MiB, {self.disk.free >> 20} MiB are free", flush=True)
        self.assertGreater(done.json["stdout_cut"], 0)
        self.assertEqual(done.json["stdout_bytes"] + done.json["stdout_cut"], 1500000000)
        self.assertGreater(self.disk.free, FLOOR_BYTES)
        self.check_works()
        self.assertEqual(self.atoll.request("DELETE", f"/v1/sandboxes/{box}", key=key).status, 204)

    def test_on_a_full_disk_everything_can_be_deleted(self):
        boxes = [self.atoll.create()["id"] for _ in range(5)]
        for box in boxes:
            self.atoll.python(box, "print('x' * 100000)")
        volume = self.atoll.request("POST", "/v1/volumes", {"name": "v", "bytes": 1 << 20})
        snapshot = self.atoll.request("POST", f"/v1/sandboxes/{boxes[0]}/snapshots", {})
        self.assertEqual((volume.status, snapshot.status), (201, 201), (volume.body, snapshot.body))
        self.disk.fill()
        atoll.wait_for("/readyz to say so", lambda: self.unwell() == ["disk"])
        refused = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
        self.assertEqual(refused.status, 507, refused.body)
        paths = [f"/v1/sandboxes/{box}" for box in boxes]
        paths += ["/v1/volumes/v", f"/v1/snapshots/{snapshot.json['id']}"]
        for path in paths:
            answer = self.atoll.request("DELETE", path)
            self.assertEqual(answer.status, 204, f"{path}: {answer.body}")
        self.assertEqual(self.unwell(), ["disk"])
        self.disk.free_again()
        self.check_works()

    def test_a_broken_pool_fails_its_sandboxes_and_is_mounted_anew(self):
        kept, box = self.atoll.create()["id"], self.atoll.create()["id"]
        self.atoll.python(kept, "open('/home/user/there', 'w').write('yes')")
        snapshot = self.atoll.request("POST", f"/v1/sandboxes/{kept}/snapshots", {}).json["id"]
        self.break_pool(box)
        for each in (kept, box):
            atoll.wait_for("it to have failed", lambda: self.state_of(each) == "failed")
        self.assertIn("disk", self.unwell())
        self.disk.free_again()
        self.check_works()
        made = self.atoll.request("POST", "/v1/sandboxes", {"snapshot": snapshot}).json["id"]
        self.assertEqual(self.atoll.execute(made, ["cat", "/home/user/there"])["stdout"], "yes")
        for each in (made, kept, box):
            self.atoll.delete(each)
        self.atoll.cli("restart")
        self.check_works()

    def test_down_and_up_need_no_pool_that_can_be_mounted(self):
        box = self.atoll.create()["id"]
        self.atoll.close()
        self.break_pool(box)
        for pid in (self.atoll.supervisor_pid, self.atoll.warden_pid, self.atoll.daemon_pid):
            os.kill(pid, signal.SIGKILL)
        atoll.wait_for("its file system to have failed", lambda: not any(
            "import os, time" in line for line in self.atoll.traces().get("processes", [])))
        self.disk.free_again()
        self.atoll.cli("down")
        self.atoll.check_gone()
        self.atoll.up("--pool-size", "1100MiB")
        self.check_works()


if __name__ == "__main__":
    atoll.main()
