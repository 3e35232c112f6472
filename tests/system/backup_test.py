"""A backup under load is the same Atoll elsewhere; one that was cut or changed is none."""
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import threading

import atoll

CUT_BYTES = 4096
STILL = re.compile("^State:\t[TZ]", re.MULTILINE)  # stopped, or has ended


def restored_into(file, check=True):
    """A new state directory, not started."""
    parent = tempfile.mkdtemp(prefix="atoll-system-")
    os.chmod(parent, 0o755)
    made = atoll.Atoll.__new__(atoll.Atoll)
    made.directory = os.path.join(parent, "state")
    made.run_directory = os.path.join(made.directory, "run")
    made.connection = None
    done = made.cli("restore", "--json", file, check=check)
    return made, done


def owner(path):
    status = os.stat(path)
    return status.st_uid, status.st_gid, oct(status.st_mode)


def size_of(path):
    """Less than any size where there is no such file."""
    return os.stat(path).st_size if os.path.exists(path) else -1


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def write_bytes(path, data):
    with open(path, "wb") as file:
        file.write(data)


class Backup(atoll.SystemTest):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="atoll-system-")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def path(self, name):
        return os.path.join(self.folder, name)

    def back_up(self, name, *options):
        file = self.path(name)
        done = self.atoll.cli("backup", "--json", *options, file)
        return file, json.loads(done.stdout)

    def assert_refused(self, file, words):
        parent = tempfile.mkdtemp(dir=self.folder)
        state = os.path.join(parent, "state")
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", state, "restore", file]
        done = subprocess.run(command, capture_output=True, timeout=60)
        self.assertEqual(done.returncode, 125, done.stdout)
        self.assertIn(words, done.stderr.decode())
        self.assertEqual(os.listdir(parent), [], "something was left")

    def test_under_load_and_restored_elsewhere(self):
        created = self.atoll.cli("key", "create", "--json", "--tenant", "acme")
        key = json.loads(created.stdout)["key"]
        sandbox = self.atoll.create()["id"]
        ended = self.atoll.python(sandbox, "print('kept')")["id"]
        running = self.atoll.start(sandbox, ["sleep", "1000"])["id"]
        receipt = self.path("receipt.json")
        write_bytes(receipt, self.atoll.cli("receipt", "show", "--json", sandbox).stdout)
        stop = threading.Event()
        statuses = []

        def load():
            client = atoll.Atoll(self.atoll.directory)
            while not stop.is_set():
                body = {"template": "python", "code": "print(1)"}
                answer = client.request("POST", "/v1/run", body)
                statuses.append(answer.status)
            client.close()
        worker = threading.Thread(target=load)
        worker.start()
        try:
            file, report = self.back_up("whole.tar.zst")
        finally:
            stop.set()
            worker.join()
        self.assertEqual(set(statuses), {200})
        self.assertIn(sandbox, report["sandboxes_that_ran"])
        self.assertEqual(report["unknown"], [])
        self.assertEqual(stat.S_IMODE(os.stat(file).st_mode), 0o600)
        self.assertEqual(os.listdir(self.folder).count("whole.tar.zst.partial"), 0)
        self.assertFalse(os.path.exists(os.path.join(self.atoll.directory, "backup.tmp")))

        other, _ = restored_into(file)
        try:
            self.assert_same_owners(other)
            self.assertEqual(other.key, self.atoll.key)
            other.cli("up", "--detach", "--pool-size", "1GiB", "--listen", "127.0.0.1:0")
            self.assertEqual(other.request("GET", "/v1/sandboxes", key=key).status, 200)
            self.check_restored(other, sandbox, ended, running, receipt)
        finally:
            other.down()
            shutil.rmtree(os.path.dirname(other.directory))
        self.atoll.delete(sandbox)

    def check_restored(self, other, sandbox, ended, running, receipt):
        new = other.create()["id"]
        self.assertEqual(other.python(new, "print(6 * 7)")["stdout"], "42\n")
        # The same key signs: the old receipt by the new host's public key, and the other way round.
        other.cli("receipt", "verify", receipt)
        fresh = self.path("fresh.json")
        write_bytes(fresh, other.cli("receipt", "show", "--json", new).stdout)
        self.atoll.cli("receipt", "verify", fresh)
        # What ran is as after a crash of the machine.
        shown = other.request("GET", f"/v1/sandboxes/{sandbox}").json
        self.assertEqual(shown["state"], "failed")
        self.assertEqual(other.output(sandbox, ended), b"kept\n")
        self.assertEqual(other.show_exec(sandbox, running)["verdict"], "sandbox_gone")
        other.delete(new)

    def assert_same_owners(self, other):
        """Of every file that both have, and of every directory beneath the state directory."""
        for folder, folders, names in os.walk(other.directory):
            for name in folders + names:
                path = os.path.join(folder, name)
                there = os.path.join(self.atoll.directory, os.path.relpath(path, other.directory))
                if os.path.exists(there):
                    self.assertEqual(owner(path), owner(there), path)

    def test_a_cut_or_changed_file_is_refused(self):
        file, _ = self.back_up("small.tar.zst", "--without-images")
        whole = read_bytes(file)
        cut = self.path("cut")
        for size in [0, 1, *range(CUT_BYTES, len(whole), CUT_BYTES), len(whole) - 1]:
            write_bytes(cut, whole[:size])
            self.assert_refused(cut, "cut short")
        random.seed(1)
        for at in [0, 4, len(whole) - 1, *random.sample(range(len(whole)), 12)]:
            changed = bytearray(whole)
            changed[at] ^= 1 << random.randrange(8)
            write_bytes(cut, changed)
            self.assert_refused(cut, "cut short or changed")
        write_bytes(cut, whole + b"\0")
        self.assert_refused(cut, "cut short or changed")
        # Any unpacker reads it, and sha256sum(1) checks it.
        subprocess.run(f"zstd -dcq {file} | tar xf - && sha256sum --quiet -c SHA256SUMS",
                       shell=True, check=True, cwd=self.folder)

    def test_what_is_there_is_not_replaced(self):
        file, _ = self.back_up("whole.tar.zst", "--without-images")
        again = self.atoll.cli("backup", file, check=False)
        self.assertEqual(again.returncode, 125)
        self.assertIn("exists", again.stderr.decode())
        up = self.atoll.cli("restore", file, check=False)
        self.assertIn("Atoll is up", up.stderr.decode())
        other, _ = restored_into(file)
        second = other.cli("restore", file, check=False)
        self.assertEqual(second.returncode, 125)
        self.assertIn("is not empty", second.stderr.decode())
        shutil.rmtree(os.path.dirname(other.directory))
        # An empty directory is filled.
        empty = os.path.join(self.folder, "empty")
        os.mkdir(empty)
        atoll.Atoll(empty).cli("restore", file)
        self.assertTrue(os.path.exists(os.path.join(empty, "daemon", "atoll.db")))

    def test_a_newer_schema_is_refused(self):
        database = os.path.join(self.atoll.directory, "daemon", "atoll.db")

        def add(number):
            with sqlite3.connect(database, timeout=10) as connection:
                connection.execute("UPDATE schema_version SET version = version + ?", (number,))
            connection.close()
        add(1)
        try:
            file, _ = self.back_up("newer.tar.zst", "--without-images")
        finally:
            add(-1)
        self.assert_refused(file, "it has schema version")

    def test_what_is_interrupted_leaves_nothing_that_looks_whole(self):
        file = self.path("killed.tar.zst")
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", self.atoll.directory,
                   "backup", file]
        for size in (0, 1 << 16, 1 << 22):
            self.kill_while(command, lambda size=size: size_of(file + ".partial") >= size, file)
            self.assert_refused(file + ".partial", "cut short")
        file, _ = self.back_up("killed.tar.zst")
        self.assertFalse(os.path.exists(file + ".partial"))
        parent = tempfile.mkdtemp(dir=self.folder)
        state = os.path.join(parent, "state")
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", state, "restore", file]
        self.kill_while(command, lambda: os.path.exists(state + ".restoring"), state)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(os.listdir(parent), ["state"])

    def kill_while(self, command, condition, result):
        """Kills it when it is at work, once more where it was done before that."""
        for _ in range(10):
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            atoll.wait_for("it to be at work", lambda: condition() or process.poll() is not None)
            process.send_signal(signal.SIGSTOP)
            atoll.wait_for("it to stand still", lambda: STILL.search(
                atoll.read(f"/proc/{process.pid}/status")))
            is_cut = process.poll() is None and condition()
            process.send_signal(signal.SIGKILL)
            process.wait()
            if is_cut:
                self.assertFalse(os.path.exists(result))
                return
            subprocess.run(["rm", "-rf", result, result + ".partial"], check=True)
        raise AssertionError("it was done ten times before it could be killed")


if __name__ == "__main__":
    atoll.main()
