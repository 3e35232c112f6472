"""A database that is lost, older, another's or damaged: Atoll does not start beside the files that
it does not know, says so, and removes none of them; or it sets them aside when it is told to."""
import glob
import json
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import atoll  # noqa: E402

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
ENDS = ("", "-wal", "-shm")


def files_below(root):
    """Every file with what it holds."""
    return {os.path.relpath(os.path.join(folder, name), root):
            os.stat(os.path.join(folder, name)).st_size
            for folder, _, names in os.walk(root) for name in names}


class LostDatabase(atoll.SystemTest):
    kept = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="atoll-system-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.wake()

    def tearDown(self):
        """As it was: with the newest database, in which nothing is left."""
        if self.kept and not os.path.exists(self.database):
            self.put_back(self.kept)
        self.wake()
        for kind, key in (("sandboxes", "id"), ("volumes", "name"), ("snapshots", "id")):
            shown = self.call("GET", f"/v1/{kind}?limit=1000" if kind != "volumes"
                              else "/v1/volumes")[kind]
            for each in reversed(shown):
                self.call("DELETE", f"/v1/{kind}/{each[key]}", expect=(204, 409))

    def wake(self):
        if self.atoll.supervisor_pid is None:
            self.atoll.up()
        self.atoll.wait_ready()

    def call(self, method, path, body=None, expect=(200, 201)):
        answer = self.atoll.request(method, path, body)
        self.assertIn(answer.status, expect, answer.body)
        return answer.json if answer.body else None

    @property
    def database(self):
        return os.path.join(self.atoll.directory, "daemon", "atoll.db")

    def fill(self, name):
        """A volume, a snapshot and a sealed one, each with bytes that nothing else has."""
        self.call("POST", "/v1/volumes", {"name": name, "bytes": 16 << 20})
        box = self.atoll.create(volumes=[{"name": name, "path": "/mnt/v"}])["id"]
        self.atoll.execute(box, ["sh", "-c", f"echo {name} >/home/user/{name}; head -c 100000 "
                                 "/dev/urandom >/home/user/big; echo kept >/mnt/v/file"])
        made = self.call("POST", f"/v1/sandboxes/{box}/snapshots", {})["id"]
        sealed = self.call("POST", f"/v1/sandboxes/{box}/snapshots", {})["id"]
        self.call("POST", f"/v1/snapshots/{sealed}/seal")
        self.atoll.delete(box)
        return {made, sealed}

    def copy(self, name):
        """A whole copy of the database, while it is in use or not."""
        path = os.path.join(self.folder, name)
        with sqlite3.connect(self.database, timeout=10) as source:
            with sqlite3.connect(path) as target:
                source.backup(target)
            target.close()
        source.close()
        os.chmod(path, 0o600)
        shutil.chown(path, "atoll", "atoll")
        return path

    def keep(self):
        """The database with its log, to be put back."""
        where = tempfile.mkdtemp(dir=self.folder)
        for end in ENDS:
            if os.path.exists(self.database + end):
                shutil.move(self.database + end, where)
        self.kept = where
        return where

    def put_back(self, where):
        for end in ENDS:
            if os.path.exists(self.database + end):
                os.unlink(self.database + end)
        for path in glob.glob(os.path.join(where, "*")):
            shutil.move(path, os.path.dirname(self.database))

    def put(self, path):
        shutil.copy(path, self.database)
        os.chmod(self.database, 0o600)
        shutil.chown(self.database, "atoll", "atoll")

    def held(self):
        """What must not be touched while Atoll is down: the pool is a file then."""
        pool = os.stat(os.path.join(self.atoll.directory, "pool.btrfs"))
        folders = ("daemon/blobs", "daemon/packs", "images")
        return (pool.st_mtime_ns, pool.st_size,
                [files_below(os.path.join(self.atoll.directory, each)) for each in folders])

    def assert_refused(self, words, *options):
        before = self.held()
        done = self.atoll.cli("up", "--detach", "--listen", "127.0.0.1:0", "--no-warm-pool",
                              *options, check=False)
        said = done.stderr.decode()
        self.assertEqual(done.returncode, 125, said)
        self.assertIn(words, said)
        self.assertIn("atoll restore", said)
        self.assertIsNone(self.atoll.supervisor_pid)
        self.assertEqual(self.held(), before, "something was touched")

    def logged(self):
        return atoll.read(os.path.join(self.atoll.directory, "logs", "atolld.log"))

    def test_none_an_older_one_and_anothers_are_refused(self):
        self.fill("first")
        older = self.copy("older")
        known = self.fill("second")
        names = self.atoll.subvolumes()
        self.atoll.down()
        kept = self.keep()
        self.assert_refused("there is no database")
        self.assertFalse(os.path.exists(self.database), "an empty one was made")
        self.put(older)
        self.assert_refused("older copy")
        other = atoll.Atoll().up()
        try:
            other.down()
            shutil.copy(os.path.join(other.directory, "daemon", "atoll.db"), self.folder)
        finally:
            other.destroy()
        self.put(os.path.join(self.folder, "atoll.db"))
        self.assert_refused("its file is another")
        self.put_back(kept)
        self.atoll.up()
        self.assertEqual(self.atoll.subvolumes(), names)
        shown = {each["id"] for each in self.call("GET", "/v1/snapshots")["snapshots"]}
        self.assertLessEqual(known, shown)

    def test_one_that_is_cut_damaged_or_locked_is_refused(self):
        self.fill("first")
        self.atoll.down()
        kept = self.keep()
        whole = os.path.join(kept, "atoll.db")
        size = os.stat(whole).st_size
        for cut in (0, 1, 100, 4096, size // 2, size - 4096):
            self.put(whole)
            os.truncate(self.database, cut)
            self.assert_refused("atoll restore")
        with open(whole, "rb") as file:
            data = bytearray(file.read())
        for page in range(1, len(data) // 4096):
            data[page * 4096:page * 4096 + 64] = os.urandom(64)
        self.put(whole)
        with open(self.database, "r+b") as file:
            file.write(data)
        self.assert_refused("atoll restore")
        self.put_back(kept)
        locked = sqlite3.connect(self.database, isolation_level=None)
        locked.execute("PRAGMA locking_mode = EXCLUSIVE")
        locked.execute("BEGIN EXCLUSIVE")
        before = self.held()
        done = self.atoll.cli("up", "--detach", "--listen", "127.0.0.1:0", check=False)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("locked", done.stderr.decode())
        self.assertEqual(self.held(), before)
        locked.close()
        self.atoll.up()

    def test_one_that_goes_while_atolld_is_dead_removes_nothing(self):
        self.fill("first")
        box = self.atoll.create()["id"]
        names = self.atoll.subvolumes()
        blobs = files_below(os.path.join(self.atoll.directory, "daemon", "blobs"))
        for supervised in (False, True):
            supervisor, daemon = self.atoll.supervisor_pid, self.atoll.daemon_pid
            if not supervised:
                os.kill(supervisor, signal.SIGSTOP)
            os.kill(daemon, signal.SIGKILL)
            atoll.wait_for("it to be dead", lambda: self.atoll.daemon_pid != daemon)
            logged = len(self.logged())
            kept = self.keep()
            os.kill(supervisor, signal.SIGCONT)
            # Or it was faster, and notices that the file goes.
            atoll.wait_for("it to refuse", lambda: "belong together" in self.logged()[logged:]
                           or b"database_replaced" in self.atoll.try_request(
                               "GET", "/readyz").body)
            self.assertEqual(self.atoll.subvolumes(), names)
            self.put_back(kept)
            atoll.wait_for("it to be ready", lambda: self.atoll.try_request(
                "GET", "/readyz").status == 200, 120)
            self.assertEqual(self.atoll.subvolumes(), names)
            self.assertEqual(self.atoll.python(box, "print(1)")["stdout"], "1\n")
        root = os.path.join(self.atoll.directory, "daemon", "blobs")
        self.assertEqual(files_below(root), blobs)

    def test_one_that_is_replaced_while_it_is_served_is_noticed(self):
        self.fill("first")
        box = self.atoll.create()["id"]
        names = self.atoll.subvolumes()
        older = self.copy("older")
        moved = os.path.join(self.folder, "moved")
        for replacement in (None, older):
            os.rename(self.database, moved)
            if replacement:
                self.put(replacement)
            atoll.wait_for("it to notice", lambda: self.atoll.try_request(
                "GET", "/readyz").status == 503)
            answer = self.atoll.request("GET", "/readyz")
            reasons = {each["name"]: each.get("reason") for each in answer.json["checks"]}
            self.assertEqual(reasons["database"], "database_replaced")
            answer = self.atoll.request("DELETE", f"/v1/sandboxes/{box}")
            self.assertEqual((answer.status, answer.json["error"]["code"]),
                             (503, "database_replaced"))
            os.rename(moved, self.database)
            self.atoll.wait_ready()
            self.assertEqual(self.atoll.subvolumes(), names)
        self.assertEqual(self.atoll.python(box, "print(1)")["stdout"], "1\n")

    def test_what_an_older_one_does_not_know_is_set_aside_when_that_is_wanted(self):
        first = self.fill("first")
        older = self.copy("older")
        second = self.fill("second")
        names = set(self.atoll.subvolumes()) - {"lost+found"}  # of another test
        volumes = {name for name in names if name.startswith("v")}
        blobs = files_below(os.path.join(self.atoll.directory, "daemon", "blobs"))
        self.atoll.down()
        self.keep()
        self.put(older)
        self.assert_refused("older copy")
        self.atoll.up("--adopt-orphans")
        shown = {each["id"] for each in self.call("GET", "/v1/snapshots")["snapshots"]}
        self.assertLessEqual(first, shown)
        self.assertFalse(second & shown)
        aside = os.listdir(os.path.join(self.atoll.pool, "lost+found"))
        lost = {name.split(".", 1)[1] for name in aside}
        self.assertLessEqual(second, lost)
        self.assertEqual(len(lost & volumes), 1)
        self.assertEqual(set(self.atoll.subvolumes()) - {"lost+found"}, names - lost)
        # Its files are there to be taken out again.
        found = glob.glob(f"{self.atoll.pool}/lost+found/*/**/second", recursive=True)
        self.assertEqual({atoll.read(path) for path in found}, {"second\n"})
        left = files_below(os.path.join(self.atoll.directory, "daemon", "blobs"))
        moved = os.listdir(os.path.join(self.atoll.directory, "daemon", "lost+found"))
        aside_blobs = {name.split(".")[2] for name in moved if ".blobs." in name}
        lacking = {os.path.basename(name) for name in blobs.keys() - left.keys()}
        self.assertLessEqual(lacking, aside_blobs)
        self.assertGreater(len(blobs), len(left))
        # From then on it is any other: no option, and garbage is removed.
        self.atoll.down()
        self.atoll.up()
        for each in first:
            self.call("DELETE", f"/v1/snapshots/{each}?children=adopt", expect=(204,))
        atoll.wait_for("no blob to be left", lambda: not files_below(
            os.path.join(self.atoll.directory, "daemon", "blobs")))
        self.assertEqual(len(os.listdir(os.path.join(self.atoll.pool, "lost+found"))), len(aside))

    def test_a_sandbox_that_runs_is_set_aside_with_its_files(self):
        self.atoll.down()
        self.atoll.up("--keep")
        box = self.atoll.create()["id"]
        self.atoll.execute(box, ["sh", "-c", "echo precious >/home/user/precious"])
        os.kill(self.atoll.supervisor_pid, signal.SIGTERM)
        atoll.wait_for("it to stop", lambda: self.atoll.supervisor_pid is None)
        self.atoll.close()
        self.keep()
        self.assert_refused("there is no database")
        self.atoll.up("--adopt-orphans")
        self.assertEqual(self.call("GET", "/v1/sandboxes")["sandboxes"], [])
        found = glob.glob(f"{self.atoll.pool}/lost+found/*/**/precious", recursive=True)
        self.assertEqual([atoll.read(path) for path in found], ["precious\n"])
        self.assertEqual(self.atoll.groups(box), [])
        self.assertEqual(self.atoll.python(self.atoll.create()["id"], "print(1)")["stdout"], "1\n")

    def test_what_an_older_version_left_starts_once(self):
        known = self.fill("first")
        names = self.atoll.subvolumes()
        self.atoll.down()
        with sqlite3.connect(self.database) as connection:
            for trigger in ("sandbox_made", "sandbox_changed", "sandbox_gone"):
                connection.execute(f"DROP TRIGGER {trigger}")
            connection.execute("DROP TABLE epoch")
            connection.execute("UPDATE schema_version SET version = version - 1")
        connection.close()
        older = self.copy("older")
        self.assert_refused("no epoch")
        shutil.rmtree(os.path.join(self.atoll.directory, "epoch"))
        self.atoll.up()
        self.assertEqual(self.atoll.subvolumes(), names)
        shown = {each["id"] for each in self.call("GET", "/v1/snapshots")["snapshots"]}
        self.assertLessEqual(known, shown)
        self.atoll.down()
        kept = self.keep()
        self.put(older)
        self.assert_refused("no epoch")
        self.put_back(kept)

    def test_output_goes_with_its_row(self):
        box = self.atoll.create()["id"]
        self.atoll.execute(box, ["head", "-c", "1000000", "/dev/zero"])
        outputs = os.path.join(self.atoll.directory, "daemon", "outputs")
        self.atoll.down()
        self.assertEqual(os.listdir(outputs), [box], "the row is there too")
        stray = "s" + "a" * 19
        os.mkdir(os.path.join(outputs, stray))
        with open(os.path.join(outputs, stray, "e1.stdout"), "w") as file:
            file.write("of no row")
        for path in (os.path.join(outputs, stray), os.path.join(outputs, stray, "e1.stdout")):
            shutil.chown(path, "atoll", "atoll")
        self.atoll.up()
        self.assertEqual(os.listdir(outputs), [box], "what no row names is gone")
        self.assertEqual(self.call("GET", f"/v1/sandboxes/{box}")["state"], "failed")
        self.atoll.delete(box)
        self.assertEqual(os.listdir(outputs), [])

    def test_nothing_is_removed_in_random_trials(self):
        """Whatever is done to the file: Atoll refuses it, or has all that it had."""
        known = self.fill("first")
        older = self.copy("older")
        known |= self.fill("second")
        names = self.atoll.subvolumes()
        self.atoll.down()
        kept = self.keep()
        whole = os.path.join(kept, "atoll.db")
        blobs = files_below(os.path.join(self.atoll.directory, "daemon", "blobs"))
        size = os.stat(whole).st_size
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        outcomes = {"refused": 0, "whole": 0}
        for trial in range(200 if LONG else 8):
            what = chance.choice(("flip", "flip", "flip", "cut", "older", "none", "zeros"))
            at = chance.randrange(size)
            for end in ENDS:
                if os.path.exists(self.database + end):
                    os.unlink(self.database + end)
            if what != "none":
                self.put(older if what == "older" else whole)
            with open(self.database, "r+b") if what in ("flip", "zeros") else open(whole) as file:
                if what == "flip":
                    file.seek(at)
                    byte = file.read(1)[0]
                    file.seek(at)
                    file.write(bytes([byte ^ 1 << chance.randrange(8)]))
                elif what == "zeros":
                    file.seek(at // 512 * 512)
                    file.write(bytes(512))
            if what == "cut":
                os.truncate(self.database, at)
            with self.subTest(seed=seed, trial=trial, what=what, at=at):
                before = self.held()
                done = self.atoll.cli("up", "--detach", "--listen", "127.0.0.1:0",
                                      "--no-warm-pool", "--kvm-trial", "0", check=False)
                if done.returncode != 0:
                    outcomes["refused"] += 1
                    self.assertIn("atoll restore", done.stderr.decode())
                    self.assertEqual(self.held(), before)
                    continue
                outcomes["whole"] += 1
                self.assertNotIn(what, ("older", "none", "cut"))
                self.assertEqual(self.atoll.subvolumes(), names)
                self.assertEqual(files_below(os.path.join(
                    self.atoll.directory, "daemon", "blobs")), blobs)
                self.atoll.down()
                # It went on with that one: the epoch file knows of it.
                shutil.copy(self.database, whole)
        print(json.dumps({"seed": seed, **outcomes}), flush=True)
        for end in ENDS:
            if os.path.exists(self.database + end):
                os.unlink(self.database + end)
        self.put(whole)
        self.atoll.up("--adopt-orphans")
        aside = os.path.join(self.atoll.pool, "lost+found")
        names = set(self.atoll.subvolumes())
        if os.path.exists(aside):
            names |= {name.split(".", 1)[1] for name in os.listdir(aside)}
        self.assertLessEqual(known, names)


if __name__ == "__main__":
    atoll.main()
