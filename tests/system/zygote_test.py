"""Zygotes: interpreters that are copies of one another, and share nothing that matters."""
import os
import signal

import atoll
import small_root

COPIES = 100
LOOK = ("import os\n"
        "for name in ('status', 'cgroup', 'mountinfo', 'uid_map', 'gid_map', 'limits'):\n"
        "    for line in open('/proc/self/' + name):\n"
        "        if line.split(':')[0] in ('Uid', 'Gid', 'Groups', 'NoNewPrivs', 'Seccomp',\n"
        "                'Seccomp_filters', 'CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb',\n"
        "                'SigBlk', 'SigIgn', 'SigCgt', 'ShdPnd', 'Threads', 'NSpid') \\\n"
        "                or name != 'status':\n"
        "            print(name, line, end='')\n"
        "print(sorted(os.listdir('/proc/self/fd')), sorted(os.listdir('/proc/self/ns')))\n"
        "print([os.readlink('/proc/self/ns/' + name) == os.readlink('/proc/1/ns/' + name)\n"
        "       if os.access('/proc/1/ns/' + name, os.R_OK) else None\n"
        "       for name in sorted(os.listdir('/proc/self/ns'))])\n")


class ZygoteTest(atoll.SystemTest):
    pool = True
    toolbox = True

    def setUp(self):
        atoll.wait_for("a zygote", lambda: self.counted("atoll_zygotes") >= 1)

    def counted(self, name):
        for line in self.atoll.request("GET", "/metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        return 0

    def run_copied(self, code):
        def copied():
            answer = self.atoll.request("POST", "/v1/run", {"template": "python", "code": code})
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.json["verdict"], "ok", answer.body)
            return answer.json["timings"]["from_zygote"] and answer.json
        return atoll.wait_for("a copy", copied)

    def test_no_two_draw_the_same(self):
        code = ("import os, random, uuid, tempfile, ssl\n"
                "print(os.urandom(8).hex(), random.random(), uuid.uuid4(), tempfile.mktemp(),\n"
                "      ssl.RAND_bytes(8).hex(), os.uname().nodename)")
        seen = [self.run_copied(code)["stdout"].split() for _ in range(COPIES)]
        for column in zip(*seen):
            self.assertEqual(len(set(column)), len(seen))

    def test_a_copy_has_the_walls_of_any_program(self):
        made = self.atoll.create()
        self.assertTrue(made["timings"]["from_zygote"])
        copied = self.atoll.execute(made["id"], ["python3", "-c", LOOK])
        cold = self.atoll.execute(made["id"], ["python3", "-c", LOOK])
        self.assertEqual(copied["timings"]["start_ms"], 0, "it was not the one that waited")
        self.assertGreater(cold["timings"]["start_ms"], 0)

        def same(text):  # but for its number and its leaf
            return [line for line in text.splitlines()
                    if not line.startswith(("status NSpid", "cgroup 0::/run/"))]
        self.assertEqual(same(copied["stdout"]), same(cold["stdout"]))
        self.assertIn("status Seccomp_filters:\t1", copied["stdout"])
        self.assertIn("cgroup 0::/run/1\n", copied["stdout"])
        self.atoll.delete(made["id"])

    def test_what_is_made_for_a_create_has_a_copy_too(self):
        made = self.atoll.create(limits={"open_files": 512})
        self.assertFalse(made["timings"]["from_pool"])
        self.assertTrue(made["timings"]["from_zygote"])
        ran = self.atoll.execute(made["id"], ["python3", "-c", "import resource as r\n"
                                              "print(r.getrlimit(r.RLIMIT_NOFILE))"])
        self.assertEqual(ran["stdout"], "(512, 512)\n")
        self.assertEqual(ran["timings"]["start_ms"], 0)
        self.atoll.delete(made["id"])

    def test_the_isolate_of_a_zygote_is_gone(self):
        """What is left of it is memory of the daemon's, which ends with that."""
        def isolates():
            return len(os.listdir(os.path.join(self.atoll.run_directory, "isolates")))
        atoll.wait_for("the pool to be all there is", lambda: isolates() == 4)
        files = os.listdir(f"/proc/{self.atoll.daemon_pid}/fd")
        links = [os.readlink(f"/proc/{self.atoll.daemon_pid}/fd/{number}") for number in files
                 if os.path.lexists(f"/proc/{self.atoll.daemon_pid}/fd/{number}")]
        self.assertEqual(len([link for link in links if "atoll-imprint" in link]),
                         self.counted("atoll_zygotes"))

    def test_a_killed_daemon_makes_a_new_one(self):
        made = self.atoll.create()["id"]
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        self.atoll.wait_ready()
        self.assertEqual(self.atoll.execute(made, ["python3", "-c", "print(3)"])["stdout"], "3\n")
        self.atoll.delete(made)
        atoll.wait_for("a zygote", lambda: self.counted("atoll_zygotes") >= 1)
        self.run_copied("print(1)")


class ThreadedTest(atoll.SystemTest):
    """A template whose module starts a thread while it is imported, and ends it."""
    pool = True
    toolbox = True
    MODULE = (b"import threading\ndone = threading.Thread(target=lambda: bytearray(200000))\n"
              b"done.start()\ndone.join()\n")
    # More threads than the zygote had, each with memory of its own to take and give up, and a child
    # that is told nothing of how the zygote was started.
    PROGRAM = ("import os, subprocess, sys, threading\nassert 'threaded' in sys.modules\n"
               "def work():\n    for size in range(100, 300000, 50000):\n"
               "        [bytearray(size) for _ in range(20)]\n    done.append(1)\n"
               "done, all = [], [threading.Thread(target=work) for _ in range(30)]\n"
               "for one in all: one.start()\nfor one in all: one.join()\n"
               "seen = subprocess.run(['env'], capture_output=True, text=True).stdout\n"
               "print(len(done), 'GLIBC' in seen, 'ATOLL' in seen, 'GLIBC_TUNABLES' in os.environ)")

    def test_a_thread_that_has_ended_is_no_hindrance(self):
        more = ('files = "files"\n[context]\nlanguage = "python"\npreload = ["threaded"]\n'
                '[[run]]\nlanguage = "python"\nfile = "main.py"\n'
                'inline = ["python3", "-c", "{code}"]\ncommand = ["python3", "{file}"]\n'
                '[pool]\nwarm = 1\n')
        path = "files/usr/lib/python3/dist-packages/threaded.py"
        data = small_root.pack("threaded", 'template = "python"', {path: self.MODULE}, more)
        answer = self.atoll.request("PUT", "/v1/templates/threaded/pack", data,
                                    headers={"Content-Type": "application/x-tar"})
        self.assertIn(answer.status, (200, 202), answer.body)

        def copied():
            answer = self.atoll.request("POST", "/v1/run",
                                        {"template": "threaded", "code": self.PROGRAM})
            return answer.status == 200 and answer.json["timings"]["from_zygote"] and answer.json
        ran = atoll.wait_for("a copy", copied, 120)
        self.assertEqual((ran["verdict"], ran["stdout"]), ("ok", "30 False False False\n"), ran)
        self.assertEqual(self.atoll.request("DELETE", "/v1/templates/threaded").status, 204)


if __name__ == "__main__":
    atoll.main()
