"""Pools of sandboxes with a kernel of their own: one is laid down, and all others begin with its
memory."""
import os
import time

import atoll
import small_root


class WallClock:
    def check_clock(self, box):
        before = time.time()
        told = float(self.atoll.execute(box, ["date", "+%s.%N"])["stdout"])
        self.assertTrue(before - 1 < told < time.time() + 1, (before, told))


class WallPool(WallClock):
    """Of one wall, which the classes that are made of it name: a template whose floor that is, with
    a pool of one. What it preloads has drawn from all that draws numbers, so the one that others
    begin with has, just before it was laid down."""
    wall = None
    pool = True
    NAME = "drawn"
    MODULE = (b"import multiprocessing.process, os, random, secrets, ssl, tempfile, uuid\n"
              b"random.random(), uuid.uuid1(), uuid.uuid4(), uuid.getnode(), ssl.RAND_bytes(8)\n"
              b"secrets.token_hex(8), tempfile.mktemp(), os.urandom(8), os.getrandom(8)\n"
              b"open('/proc/sys/kernel/random/uuid').read()\n"
              b"try:\n    import numpy\n    numpy.random.random()\nexcept ImportError: pass\n")
    DRAWS = ("import os, sys, random, secrets, ssl, subprocess, tempfile, uuid\n"
             "import multiprocessing\n"
             "waited = 'drawn' in sys.modules\n"
             "def read(name): return open('/proc/sys/kernel/random/' + name).read().strip()\n"
             "child = 'import os; print(os.getrandom(16).hex(), hash(chr(120)))'\n"
             "child = subprocess.run(['python3', '-c', child], capture_output=True, text=True)\n"
             "drawn = [os.urandom(16).hex(), os.getrandom(16).hex(), random.random(),\n"
             "         random.getrandbits(64), secrets.token_hex(16), uuid.uuid1(), uuid.uuid4(),\n"
             "         uuid.getnode(), tempfile.mktemp(), ssl.RAND_bytes(16).hex(), read('uuid'),\n"
             "         multiprocessing.current_process().authkey.hex(), *child.stdout.split()]\n"
             "try:\n    import numpy\n    drawn.append(numpy.random.random())\n"
             "except ImportError: pass\n"
             "print(read('boot_id'), waited, *drawn)\n")
    LEAST = 14  # values

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        more = (f'files = "files"\n[defaults]\nisolation = "{cls.wall}"\n[context]\n'
                f'language = "python"\npreload = ["{cls.NAME}"]\n[[run]]\nlanguage = "python"\n'
                'file = "main.py"\ninline = ["python3", "-c", "{code}"]\n'
                'command = ["python3", "{file}"]\n[pool]\nwarm = 1\nmax = 1\n')
        path = f"files/usr/lib/python3/dist-packages/{cls.NAME}.py"
        data = small_root.pack(cls.NAME, 'template = "python"', {path: cls.MODULE}, more)
        answer = cls.atoll.request("PUT", f"/v1/templates/{cls.NAME}/pack", data,
                                   headers={"Content-Type": "application/x-tar"})
        assert answer.status in (200, 202), answer.body

    def wait_full(self):
        """Until one waits in the pool, which then stands still."""
        def waiting():
            frozen = self.atoll.groups("*/run/2/cgroup.freeze")
            metrics = self.atoll.request("GET", "/metrics").body.decode()
            full = "\natoll_warm_pool_size 5\n" in metrics  # and the four jails of `python`
            return full and [path for path in frozen if atoll.read(path).strip() == "1"]
        atoll.wait_for("one in the pool", waiting, 240)

    def make(self):
        begin = time.monotonic()
        made = self.atoll.create(template=self.NAME, network={"allow": ["pool.example"]})
        print(f"created in {1000 * (time.monotonic() - begin):.1f} ms: {made['timings']}",
              flush=True)
        self.assertEqual(made["isolation"], self.wall)
        return made["id"], made["timings"]

    def draw(self, box):
        done = self.atoll.python(box, self.DRAWS)
        self.assertEqual((done["verdict"], done["stderr"]), ("ok", ""), done)
        boot, waited, *drawn = done["stdout"].split()
        self.assertGreaterEqual(len(drawn), self.LEAST)
        return done, boot, waited == "True", drawn

    def look(self, box, drawn):
        """What waited draws first, then one that is started now; gives the boot's id."""
        begin = time.monotonic()
        done, boot, waited, of_waiting = self.draw(box)
        print(f"said after {1000 * (time.monotonic() - begin):.1f} ms", flush=True)
        self.assertTrue(waited, "it was not the one that waited")
        self.assertEqual(done["timings"]["start_ms"], 0, done)
        self.assertEqual(done["stdout_bytes"], len(done["stdout"]))
        self.assertLess(done["usage"]["user_ms"] + done["usage"]["system_ms"], 20_000, done)
        self.check_clock(box)
        address = self.atoll.python(box, "import socket; "
                                         "print(socket.gethostbyname('pool.example'))")
        self.assertTrue(address["stdout"].startswith("198.1"), address)
        caught = self.atoll.python(box, "import socket; "
                                        "socket.create_connection(('192.0.2.1', 80), 5).recv(1)")
        self.assertIn("ConnectionResetError", caught["stderr"], "connections are not caught")
        _, same_boot, waited, of_new = self.draw(box)
        self.assertFalse(waited)
        self.assertEqual(boot, same_boot)
        drawn += [of_waiting, of_new]
        return boot

    def test_one_that_dies_before_it_begins_is_made_up_for(self):
        """Beside the pool one is poised: it is launched, and holds the memory that it will begin
        with. Whoever finds it dead gets another."""
        self.wait_full()

        def poised():
            """It runs, where what is laid down has ended and what is in the pool stands still."""
            leaves = self.atoll.groups("*/run/2/cgroup.procs")
            return [leaf for leaf in leaves if atoll.read(leaf).strip()
                    and atoll.read(leaf.replace("cgroup.procs", "cgroup.freeze")) == "0\n"]
        atoll.wait_for("one that is poised", poised)
        for leaf in poised():
            for pid in atoll.read(leaf).split():
                os.kill(int(pid), 9)
        pooled, _ = self.make()
        beside, timings = self.make()
        self.assertEqual((timings["from_pool"], timings["from_zygote"]), (False, True))
        for box in (pooled, beside):
            self.assertEqual(self.atoll.python(box, "print(1)")["stdout"], "1\n")
            self.atoll.delete(box)

    def test_they_share_memory_and_an_interpreter_and_no_random_number_or_identity(self):
        """Half of them are of the pool, half are made beside it; all begin with one memory."""
        drawn, boots = [], []
        pairs = 25 if os.environ.get("ATOLL_TEST_LONG") else 2
        for _ in range(pairs):
            self.wait_full()
            pooled, timings = self.make()
            self.assertEqual((timings["from_pool"], timings["from_zygote"]), (True, True))
            beside, timings = self.make()
            self.assertEqual((timings["from_pool"], timings["from_zygote"]), (False, True))
            for box in (pooled, beside):
                self.check_restored(box)
                boots.append(self.look(box, drawn))
                self.atoll.delete(box)
        self.assertEqual(len(set(boots)), 2 * pairs, boots)
        for values in zip(*drawn):
            self.assertEqual(len(set(values)), 4 * pairs, values)
