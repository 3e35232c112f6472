"""Warm starts: a pool gives what a cold start gives, only sooner; and nothing of it leaks."""
import os
import signal
import threading
import time

import atoll

# Each is run by a waiting interpreter and by one that is started for it.
PROGRAMS = [
    "print(1)", "1/0", "print(", "def f():\n  raise ValueError(3)\nf()",
    "import sys; sys.exit(7)", "import sys; sys.exit()", "import sys; sys.exit(True)",
    "import sys; sys.exit(-1)", "import sys; sys.exit('bad')", "raise KeyboardInterrupt",
    "print(__name__, sorted(globals()))", "import sys; print(sys.argv, sys.path[0])",
    "import os; print(sorted(os.environ.items()), os.getcwd(), os.getuid(), os.getgid())",
    "f = open('left', 'w'); f.write('x' * 10)", "import sys; sys.stdout.write('no newline')",
    "try:\n  1/0\nexcept Exception as e:\n  raise ValueError() from e",
    "import sys\nsys.excepthook = lambda *a: print('hook', a[0])\n1/0",
    "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(.1), print('late'))).start()",
    "import atexit\natexit.register(print, 'bye')\nprint('x')",
    "class A:\n  def __del__(s): print('del')\na = A()\na.me = a",
    "import os\nos.close(1)\nprint('x')", "import sys\nsys.stdout.close()",
    "import os\nos._exit(9)", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
    "import ctypes\nctypes.CDLL(None).printf(b'from c')", "import logging\nlogging.warning('w')",
    "import asyncio\nasync def f(): print('a')\nasyncio.run(f())", "async def f(): pass\nf()",
    "def g():\n  try: yield 1\n  finally: print('fin')\nh = g(); next(h)",
    "import subprocess\nprint(subprocess.run(['echo', 'hi'], capture_output=True).stdout)",
    "print(input())", "import sys\nprint(len(sys.stdin.read()))", "print('a' * 100000)",
    "import os\nprint(sorted(os.listdir('/proc/self/fd')))",
    "import resource as r\nprint(r.getrlimit(r.RLIMIT_NOFILE), r.getrlimit(r.RLIMIT_CORE))",
    "print([l for l in open('/proc/self/status') if l[:3] in ('Cap', 'Sec', 'NoN')])",
    "import sys, builtins, warnings as w\nprint(sys.path, [type(f) for f in sys.meta_path],\n"
    "    [hasattr(sys, n) for n in ('ps1', 'last_type')], sys.displayhook, sys.excepthook,\n"
    "    w.filters, sorted(vars(builtins)), 'IPython' in sys.modules, 'traitlets' in sys.modules)",
    "import IPython", "import decorator",
]


def shown(answer):
    return {name: answer[name] for name in ("verdict", "exit_code", "signal", "stdout", "stderr",
                                            "stdout_bytes", "stdout_cut", "limits_hit")}


class WarmTest(atoll.SystemTest):
    pool = True
    toolbox = True  # so IPython is in the memory that copies begin from, and no program sees it

    def setUp(self):
        atoll.wait_for("the pool", self.pool_is_full)

    def pool_is_full(self):
        return len(self.isolates()) == 4 + len(self.sandboxes())

    def test_a_waiting_interpreter_becomes_a_context(self):
        sandbox = self.atoll.create()
        self.assertTrue(sandbox["timings"]["from_pool"])
        base = f"/v1/sandboxes/{sandbox['id']}/contexts"
        first = self.atoll.request("POST", base, {"env": {"GIVEN": "yes"}}).json
        self.assertEqual(first["exec"], "e1", "it is the one that waited")
        second = self.atoll.request("POST", base, {}).json
        code = "import os; print(os.environ.get('GIVEN'), os.getcwd(), __name__); input()"
        for context, given in ((first, "yes"), (second, "None")):
            done = self.atoll.request("POST", f"{base}/{context['id']}/runs",
                                      {"code": code, "wait": True}).json
            self.assertEqual(done["stdout"], f"{given} /home/user __main__\n")
            self.assertEqual(done["error"]["name"], "EOFError", "nothing to read but no command")
        done = self.atoll.python(sandbox["id"], "print(1)")
        self.assertEqual((done["stdout"], done["verdict"]), ("1\n", "ok"))
        self.atoll.delete(sandbox["id"])

    def held(self):
        """What Atoll holds; nothing while the pool has not its usual size."""
        counts = {"isolates": len(self.isolates()), "layers": len(self.atoll.subvolumes()),
                  **self.atoll.fds()}
        return counts if counts["isolates"] == 4 else None

    def settled(self):
        """What it holds once the pool keeps its size."""
        def rests():
            now = self.held()
            time.sleep(1)
            return now == self.held() and now
        return atoll.wait_for("the pool to rest", rests)

    def isolates(self):
        return os.listdir(os.path.join(self.atoll.run_directory, "isolates"))

    def sandboxes(self):
        return self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]

    def run_it(self, **fields):
        answer = self.atoll.request("POST", "/v1/run", {"template": "python", **fields})
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def test_a_waiting_interpreter_is_python3_c(self):
        for code in PROGRAMS:
            with self.subTest(code=code):
                atoll.wait_for("the pool", self.pool_is_full)
                warm = self.run_it(code=code, stdin="typed\n", timeout_ms=20_000)
                # A variable that is read at the start makes it a cold one.
                cold = self.run_it(code=code, stdin="typed\n", timeout_ms=20_000,
                                   env={"PYTHONNOUSERSITE": "1"})
                self.assertEqual(warm["timings"]["start_ms"], 0, "it was not warm")
                self.assertGreater(cold["timings"]["start_ms"], 0, "it was not cold")
                cold["stdout"] = cold["stdout"].replace("('PYTHONNOUSERSITE', '1'), ", "")
                cold["stdout_bytes"] = len(cold["stdout"].encode())
                warm["stdout_bytes"] = len(warm["stdout"].encode())
                self.assertEqual(shown(warm), shown(cold))

    def test_what_was_asked_for_is_applied(self):
        made = self.atoll.create(limits={"memory_bytes": 100 << 20, "pids": 40, "cpu": 0.5,
                                         "disk_bytes": 64 << 20}, env={"A": "b"})["id"]
        limits = self.atoll.request("GET", f"/v1/sandboxes/{made}/receipt")
        self.assertEqual(limits.status, 200)
        ran = self.atoll.execute(made, ["python3", "-c", "import os; print(os.environ['A'])"])
        self.assertEqual(ran["stdout"], "b\n")
        filled = self.atoll.execute(made, ["sh", "-c", "head -c 100000000 /dev/zero >big"])
        self.assertEqual(filled["verdict"], "disk_limit")
        eaten = self.atoll.execute(made, ["python3", "-c", "x = b'x' * (200 << 20)"])
        self.assertEqual(eaten["verdict"], "oom")
        self.atoll.delete(made)

    def test_an_exec_of_another_kind_ends_the_one_that_waits(self):
        made = self.atoll.create()["id"]
        find = ["sh", "-c", "grep -l python3 /proc/[0-9]*/comm"]
        atoll.wait_for("its end", lambda: self.atoll.execute(made, find)["stdout"] == "")
        ran = self.atoll.execute(made, ["python3", "-c", "print(2)"])
        self.assertEqual(ran["stdout"], "2\n")
        self.atoll.delete(made)

    def test_limits_count_from_the_beginning(self):
        late = self.run_it(code="import time; time.sleep(60)", timeout_ms=300)
        self.assertEqual(late["verdict"], "wall_time")
        self.assertLess(late["usage"]["wall_ms"], 60_000, "it came to its own end")
        cut = self.run_it(code="print('x' * 1000)", limits={"output_bytes": 100})
        self.assertEqual((cut["stdout_bytes"], cut["stdout_cut"]), (100, 901))

    def test_no_two_are_the_same(self):
        code = ("import os, random, uuid, tempfile\n"
                "print(os.urandom(8).hex(), random.random(), uuid.uuid4(), tempfile.mktemp(), "
                "os.uname().nodename)")
        seen = [self.run_it(code=code)["stdout"].split() for _ in range(12)]
        for column in zip(*seen):
            self.assertEqual(len(set(column)), len(seen), column)

    def test_nothing_is_left_by_those_that_waited(self):
        before = self.settled()
        for _ in range(10):
            self.run_it(code="print(1)")

        def nothing_more():
            now = self.held()
            return now and all(now[name] <= count for name, count in before.items())
        try:
            atoll.wait_for("nothing more to be held than before", nothing_more)
        except AssertionError:
            self.assertEqual(self.held(), before)

    def test_a_killed_daemon_begins_a_new_pool(self):
        old = set(self.isolates())
        made = self.atoll.create()["id"]
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        self.atoll.wait_ready()
        atoll.wait_for("a new pool", lambda: self.pool_is_full() and
                       set(self.isolates()) & old <= {made})
        self.assertEqual(self.atoll.execute(made, ["echo", "on"])["stdout"], "on\n")
        self.atoll.delete(made)

    def test_many_at_once(self):
        answers = []

        def one():
            client = atoll.Atoll(self.atoll.directory)
            answers.append(client.request("POST", "/v1/run", {"template": "python",
                                                              "code": "print(3)"}))
            client.close()
        threads = [threading.Thread(target=one) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wrong = [answer.body for answer in answers
                 if (answer.status, answer.json.get("stdout")) != (200, "3\n")]
        self.assertEqual((len(answers), wrong), (30, []))


if __name__ == "__main__":
    atoll.main()
