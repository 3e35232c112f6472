#!/usr/bin/env python3
"""Contexts: interpreters that keep state, whatever happens to the run, to atolld or to them."""
import http.client
import json
import os
import signal
import threading

import atoll

# A file inside, made by a run that has begun.
BEGUN = "/tmp/begun"
# The descriptor that the runtime speaks on, as hostile code finds it.
FIND_SPEECH = """
import os
def speech():
    for fd in range(6, 256):
        try:
            if os.readlink('/proc/self/fd/%d' % fd).startswith('socket:'): return fd
        except OSError: pass
"""


def events_of(response):
    """(id, name, data) of each server-sent event, as they come."""
    fields = {}
    for line in response:
        line = line.decode().rstrip("\n")
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield fields.get("id"), fields["event"], json.loads(fields["data"])
            fields = {}


class ContextCase(atoll.SystemTest):
    template = "python"

    def setUp(self):
        self.sandbox = self.atoll.create(template=self.template)["id"]
        self.base = f"/v1/sandboxes/{self.sandbox}/contexts"

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def context(self, **fields):
        answer = self.atoll.request("POST", self.base, fields)
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json["id"]

    def run_code(self, context, code, **fields):
        body = {"code": code, "wait": True, **fields}
        answer = self.atoll.request("POST", f"{self.base}/{context}/runs", body)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def start(self, context, code, **fields):
        body = {"code": code, "wait": False, **fields}
        answer = self.atoll.request("POST", f"{self.base}/{context}/runs", body)
        self.assertEqual(answer.status, 202, answer.body)
        return answer.json["run"]

    def show(self, context, run, wait_ms=60000):
        path = f"{self.base}/{context}/runs/{run}?wait_ms={wait_ms}"
        answer = self.atoll.request("GET", path)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def stream(self, method, path, body=None, **headers):
        host, port = self.atoll.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        self.addCleanup(connection.close)
        headers = {"Authorization": f"Bearer {self.atoll.key}", "Accept": "text/event-stream",
                   "Content-Type": "application/json", **headers}
        connection.request(method, path, json.dumps(body) if body else None, headers)
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        return response

    def interrupt(self, context):
        answer = self.atoll.request("POST", f"{self.base}/{context}/interrupt", {})
        self.assertEqual(answer.json, {"interrupted": True})

    def check_interrupted(self, context, run):
        self.interrupt(context)
        done = self.show(context, run)
        self.assertEqual(done["verdict"], "interrupted", done)
        self.assertFalse(done["state_lost"])

    def wait_said(self, context, run, text):
        atoll.wait_for(f"{text!r} to be printed",
                       lambda: text in self.show(context, run, 0)["stdout"])

    def runs_inside(self, *command):
        shown = self.atoll.execute(self.sandbox, ["sh", "-c", "cat /proc/[0-9]*/cmdline"])
        return "\0".join(command) + "\0" in shown["stdout"]

    def run_past_its_time(self, context, code):
        """The result of a run that made the file BEGUN before its time was over. One that did not,
        because the host was busy, keeps the state as well; then the next has more time."""
        for timeout_ms in (300, 1200, 4800, 19200):
            self.atoll.execute(self.sandbox, ["rm", "-f", BEGUN])
            done = self.run_code(context, code, timeout_ms=timeout_ms)
            self.assertEqual((done["verdict"], done["limits_hit"]), ("wall_time", ["wall_time"]))
            if self.atoll.execute(self.sandbox, ["test", "-e", BEGUN])["verdict"] == "ok":
                return done
            self.assertFalse(done["state_lost"], done)
        raise AssertionError(f"{code!r} did not begin within {timeout_ms} ms")

    def value(self, context, code):
        done = self.run_code(context, code)
        self.assertEqual(done["verdict"], "ok", done)
        return done["results"][-1]["mime"]["text/plain"]


class ContextsTest(ContextCase):
    said = ", without IPython"

    def test_says_which_interpreter_it_is(self):
        context = self.context()
        self.run_code(context, "1")
        listed = self.atoll.request("GET", self.base).json["contexts"]
        [interpreter] = [one["interpreter"] for one in listed if one["id"] == context]
        self.assertTrue(interpreter.startswith("Python 3.11"), interpreter)
        self.assertIn(self.said, interpreter)

    def test_state_lasts_from_run_to_run(self):
        context = self.context()
        self.assertEqual(self.run_code(context, "x = 41")["results"], [])
        done = self.run_code(context, "import os\nprint('out'); print('err', file=__import__('sys')"
                                      ".stderr)\nos.system('echo child')\nx + 1")
        self.assertEqual(done["verdict"], "ok")
        self.assertEqual(done["stdout"], "out\nchild\n")
        self.assertEqual(done["stderr"], "err\n")
        self.assertEqual(done["results"], [{"mime": {"text/plain": "42"}, "main": True}])
        self.assertIsNone(done["error"])
        self.assertEqual(done["run"], 2)
        self.assertFalse(done["state_lost"])

    def test_an_exception_is_a_verdict_with_a_traceback(self):
        context = self.context()
        done = self.run_code(context, "def f():\n  return 1 / 0\nprint('before')\nf()")
        self.assertEqual(done["verdict"], "exception")
        self.assertEqual(done["error"]["name"], "ZeroDivisionError")
        self.assertEqual(done["error"]["value"], "division by zero")
        self.assertIn("return 1 / 0", done["error"]["traceback"])
        self.assertNotIn("_atoll", done["error"]["traceback"])
        self.assertEqual(done["stdout"], "before\n")
        self.assertEqual(self.run_code(context, "1 +")["error"]["name"], "SyntaxError")
        self.assertEqual(self.run_code(context, "raise SystemExit(3)")["verdict"], "exception")
        self.assertEqual(self.value(context, "1 + 1"), "2")

    def test_await_commands_and_directories(self):
        context = self.context(cwd="/tmp", env={"GIVEN": "yes"})
        self.assertEqual(self.value(context, "import os\nos.getcwd()"), "'/tmp'")
        self.assertEqual(self.value(context, "os.environ['GIVEN']"), "'yes'")
        code = "import asyncio\nasync def f(): await asyncio.sleep(0.01); return 5\nawait f()"
        self.assertEqual(self.value(context, code), "5")
        self.assertEqual(self.run_code(context, "!echo hi; pwd")["stdout"], "hi\n/tmp\n")
        self.run_code(context, "%cd /usr")
        self.assertEqual(self.value(context, "os.getcwd()"), "'/usr'")
        once = self.run_code(context, "os.environ.get('ONCE')", env={"ONCE": "1"})
        self.assertEqual(once["results"][0]["mime"]["text/plain"], "'1'")
        self.assertEqual(self.run_code(context, "os.environ.get('ONCE')")["results"], [])

    def test_rich_results(self):
        context = self.context()
        code = """
class Rich:
    def _repr_html_(self): return '<b>x</b>'
    def _repr_markdown_(self): return '**x**'
    def _repr_latex_(self): return '$x$'
    def _repr_svg_(self): return '<svg/>'
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_jpeg_(self): return b'\\xff\\xd8'
    def _repr_json_(self): return {'a': [1, None]}
    def __repr__(self): return 'rich'
display(Rich())
print('between')
Rich()
"""
        done = self.run_code(context, code)
        self.assertEqual([result["main"] for result in done["results"]], [False, True])
        mime = done["results"][1]["mime"]
        self.assertEqual(mime["text/html"], "<b>x</b>")
        self.assertEqual(mime["text/markdown"], "**x**")
        self.assertEqual(mime["text/latex"], "$x$")
        self.assertEqual(mime["image/svg+xml"], "<svg/>")
        self.assertEqual(mime["image/png"].strip(), "iVBORw==")
        self.assertEqual(mime["image/jpeg"].strip(), "/9g=")
        self.assertEqual(mime["application/json"], {"a": [1, None]})
        self.assertEqual(mime["text/plain"], "rich")

    def test_results_keep_their_place_among_the_output(self):
        context = self.context()
        code = "for i in range(3):\n  print(i)\n  display(i)\nprint('last')"
        response = self.stream("POST", f"{self.base}/{context}/runs", {"code": code})
        seen = [(name, data.get("text") or data.get("mime", {}).get("text/plain"))
                for _, name, data in events_of(response) if name in ("stdout", "result")]
        self.assertEqual(seen, [("stdout", "0\n"), ("result", "0"), ("stdout", "1\n"),
                                ("result", "1"), ("stdout", "2\n"), ("result", "2"),
                                ("stdout", "last\n")])

    def test_a_run_is_followed_line_by_line_and_from_any_event(self):
        context = self.context()
        # Each line waits until the one before it was seen: they come when they are printed.
        code = """import os, time
for i in range(4):
    while i and not os.path.exists(f"/tmp/seen-{i}"): time.sleep(0.01)
    print("line", i)
"over\""""
        response = self.stream("POST", f"{self.base}/{context}/runs", {"code": code})
        seen = []
        for place, name, data in events_of(response):
            seen.append((place, name, data))
            if name == "stdout":
                lines = sum(name == "stdout" for _, name, _ in seen)
                self.atoll.execute(self.sandbox, ["touch", f"/tmp/seen-{lines}"])
        names = [name for _, name, _ in seen]
        self.assertEqual(names, ["start"] + ["stdout"] * 4 + ["result", "end"])
        self.assertEqual(seen[-1][2]["verdict"], "ok")
        run = seen[0][2]["run"]
        for at in range(1, len(seen) - 1):
            again = self.stream("GET", f"{self.base}/{context}/runs/{run}",
                                **{"Last-Event-ID": seen[at][0]})
            rest = "".join(data["text"] for _, name, data in events_of(again) if name == "stdout")
            self.assertEqual(rest, "".join(f"line {i}\n" for i in range(at, 4)))

    def test_an_interrupted_run_keeps_its_state(self):
        context = self.context()
        self.run_code(context, "kept = 'yes'")
        # Imported ahead: an interrupt may also come in the middle of an import.
        for code in ("while True: pass", "time.sleep(60)", "subprocess.run(['sleep', '60'])"):
            run = self.start(context, f"import os, subprocess, time\nprint('begun')\n{code}")
            self.wait_said(context, run, "begun\n")
            self.check_interrupted(context, run)
        # system(3) ignores an interrupt, which ends its child; the next one ends the run.
        run = self.start(context, "os.system('sleep 61.5'); print('over'); time.sleep(60)")
        atoll.wait_for("the child", lambda: self.runs_inside("sleep", "61.5"))
        self.interrupt(context)
        self.wait_said(context, run, "over\n")
        self.check_interrupted(context, run)
        self.assertEqual(self.value(context, "kept"), "'yes'")
        answer = self.atoll.request("POST", f"{self.base}/{context}/interrupt", {})
        self.assertEqual(answer.json, {"interrupted": False})

    def send(self, signal_name, pid):
        done = self.atoll.execute(self.sandbox, ["sh", "-c", f"kill -{signal_name} {pid}"])
        self.assertEqual(done["verdict"], "ok", done)

    def check_late_begin(self, context, own_pid, endless):
        """The interpreter is stopped, so that it certainly begins a run after its interrupt."""
        pid = self.run_code(context, own_pid)["stdout"].strip()
        for fields, verdict in (({"timeout_ms": 3_600_000}, "interrupted"),
                                ({"timeout_ms": 1}, "wall_time")):
            self.send("STOP", pid)
            run = self.start(context, endless, **fields)
            self.assertEqual(self.show(context, run, 200)["state"], "running")
            if verdict == "interrupted":
                answer = self.atoll.request("POST", f"{self.base}/{context}/interrupt", {})
                self.assertEqual(answer.json, {"interrupted": True})
                self.assertEqual(self.show(context, run, 200)["state"], "running")
            self.send("CONT", pid)
            done = self.show(context, run)
            self.assertEqual((done["verdict"], done["state_lost"]), (verdict, False), done)
            self.assertEqual(self.run_code(context, own_pid)["stdout"].strip(), pid)

    def test_an_interrupt_before_the_run_has_begun_is_kept(self):
        self.check_late_begin(self.context(), "import os; print(os.getpid())", "while True: pass")
        # More than its pipe holds: an interrupt must not take away what a shell has read so far.
        self.check_late_begin(self.context(language="bash"), "echo $$",
                              "while :; do :; done # " + "x" * 200_000)

    def test_a_timeout_interrupts_first_and_kills_then(self):
        context = self.context()
        self.run_code(context, "kept = 'yes'")
        begin = f"open('{BEGUN}', 'w').close()\nwhile True: pass"
        done = self.run_past_its_time(context, f"print('on')\n{begin}")
        self.assertEqual((done["state_lost"], done["stdout"]), (False, "on\n"))
        self.assertEqual(self.value(context, "kept"), "'yes'")
        stubborn = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + begin
        self.assertTrue(self.run_past_its_time(context, stubborn)["state_lost"])
        self.assertEqual(self.run_code(context, "kept")["error"]["name"], "NameError")

    def test_a_crash_is_a_verdict_and_a_fresh_interpreter(self):
        context = self.context()
        cases = [("import os; os._exit(7)", "nonzero"), ("import os; os._exit(0)", "ok"),
                 ("import os, signal; print('last words'); os.kill(os.getpid(), 11)", "signal"),
                 ("x = [b'x' * (1 << 20) for _ in range(4000)]", "oom")]
        for code, verdict in cases:
            self.run_code(context, "kept = 1")
            done = self.run_code(context, code)
            self.assertEqual((done["verdict"], done["state_lost"]), (verdict, True), done)
            if verdict == "signal":
                self.assertEqual((done["signal"], done["stdout"]), (11, "last words\n"))
            self.assertEqual(self.run_code(context, "kept")["error"]["name"], "NameError")
        answer = self.atoll.request("GET", self.base)
        self.assertEqual([one["id"] for one in answer.json["contexts"]], [context])

    def test_runs_of_a_context_take_turns_and_contexts_run_side_by_side(self):
        one, two = self.context(), self.context()
        self.atoll.execute(self.sandbox, ["rm", "-f", "/tmp/go-on"])
        first = self.start(one, "import os, time\n"
                           "while not os.path.exists('/tmp/go-on'): time.sleep(0.01)\n"
                           "order = ['first']")
        second = self.start(one, "order.append('second'); order")
        self.assertEqual(self.value(two, "6 * 7"), "42")
        self.assertEqual(self.show(one, first, 0)["state"], "running")
        self.assertEqual(self.show(one, second, 0)["state"], "queued")
        self.atoll.execute(self.sandbox, ["touch", "/tmp/go-on"])
        self.assertEqual(self.show(one, second)["results"][0]["mime"]["text/plain"],
                         "['first', 'second']")
        self.assertEqual(self.run_code(two, "order")["error"]["name"], "NameError")

    def test_too_many_waiting_runs_are_refused(self):
        context = self.context()
        self.start(context, "import time; time.sleep(60)")
        for _ in range(64):
            self.start(context, "1")
        answer = self.atoll.request("POST", f"{self.base}/{context}/runs",
                                    {"code": "1", "wait": False})
        self.assertEqual((answer.status, answer.json["error"]["code"]), (429, "too_many_runs"))
        answer = self.atoll.request("POST", f"{self.base}/{context}/restart", {})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(self.show(context, 1)["verdict"], "killed")
        self.assertEqual(self.show(context, 65)["verdict"], "killed")
        self.assertEqual(self.value(context, "1"), "1")

    def test_a_deleted_context_is_gone_with_its_processes(self):
        context = self.context()
        self.run_code(context, "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])")
        run = self.start(context, "import time; time.sleep(60)")
        answer = self.atoll.request("DELETE", f"{self.base}/{context}")
        self.assertEqual(answer.status, 204)
        answer = self.atoll.request("GET", f"{self.base}/{context}/runs/{run}")
        self.assertEqual(answer.json["error"]["code"], "context_not_found")

        def alone():
            shown = self.atoll.execute(self.sandbox, ["sh", "-c", "cat /proc/[0-9]*/cmdline"])
            return "1000" not in shown["stdout"]
        atoll.wait_for("its processes to end", alone)

    def test_what_cannot_be_is_refused(self):
        for body, code in (({"language": "cobol"}, "invalid_field"),
                           ({"cwd": "x"}, "invalid_field"), ({"nosuch": 1}, "unknown_field")):
            answer = self.atoll.request("POST", self.base, body)
            self.assertEqual((answer.status, answer.json["error"]["code"]), (400, code))
        answer = self.atoll.request("POST", self.base, {"cwd": "/nosuch"})
        self.assertEqual(answer.json["error"]["code"], "language_unavailable")
        answer = self.atoll.request("POST", self.base, {"language": "javascript"})
        self.assertEqual(answer.json["error"]["code"], "language_unavailable")
        self.assertEqual(self.atoll.request("GET", self.base).json, {"contexts": []})
        context = self.context()
        for body in ({}, {"code": 1}, {"code": "1", "timeout_ms": 0}, {"code": "a\0b"}):
            answer = self.atoll.request("POST", f"{self.base}/{context}/runs", body)
            self.assertEqual(answer.status, 400, body)
        for path in ("/c234", "/caaaaaaaaaaa", f"/{context}/runs/99", f"/{context}/runs/x"):
            self.assertEqual(self.atoll.request("GET", self.base + path).status, 404)

    def test_an_idempotency_key_runs_once(self):
        context = self.context()
        self.run_code(context, "count = 0")
        for _ in range(3):
            answer = self.atoll.request("POST", f"{self.base}/{context}/runs",
                                        {"code": "count += 1; count", "wait": True},
                                        headers={"Idempotency-Key": f"count-{self.sandbox}"})
            self.assertEqual(answer.json["results"][0]["mime"]["text/plain"], "1")
        self.assertEqual(self.value(context, "count"), "1")

    def test_hostile_speech_harms_nobody(self):
        context = self.context()
        self.run_code(context, FIND_SPEECH)
        garbage = ("fd = speech()\nos.write(fd, bytes(range(256)) * 50 + b'\\n')\n"
                   "os.write(fd, b'end\\t999\\tok\\nresult\\t1\\t1\\tx\\nend\\n\\n')\n"
                   "os.write(fd, b'result\\t%d\\t1\\ttext/plain\\t\\xff\\xfe\\n' % RUN)\n"
                   "os.write(fd, b'result\\t%d' % RUN + b'\\ta/b\\tc' * 5000 + b'\\n')\n'fine'")
        done = self.run_code(context, garbage.replace("RUN", "2"))
        self.assertEqual((done["verdict"], len(done["results"])), ("ok", 1), done)
        # It can end its own run early, and nothing else.
        done = self.run_code(context, "os.write(speech(), b'end\\t3\\tok\\n')\n"
                                      "import time; time.sleep(0.5)\nlied = True")
        self.assertEqual(done["verdict"], "ok")
        self.assertEqual(self.value(context, "lied"), "True")
        done = self.run_code(context, "os.close(speech())", timeout_ms=2000)
        self.assertNotEqual(done["verdict"], "ok")
        self.assertTrue(done["state_lost"])
        self.run_code(context, FIND_SPEECH)
        flood = "b = b'x' * (1 << 20)\nfor i in range(100000): os.write(speech(), b)"
        done = self.run_code(context, flood)
        self.assertEqual((done["verdict"], done["state_lost"]), ("output_limit", True), done)
        self.assertEqual(self.value(context, "1"), "1")

    def test_output_is_bounded_for_each_run(self):
        sandbox, self.sandbox = self.sandbox, self.atoll.create(limits={"output_bytes": 1000})["id"]
        self.base = f"/v1/sandboxes/{self.sandbox}/contexts"
        self.addCleanup(self.atoll.delete, sandbox)
        context = self.context()
        for _ in range(3):
            done = self.run_code(context, "print('x' * 5000)")
            self.assertEqual(done["stdout"], "x" * 1000)
            self.assertEqual(done["limits_hit"], ["output"])
        self.assertEqual(self.run_code(context, "print('y' * 500)")["stdout"], "y" * 500 + "\n")

    def test_a_big_result_and_a_bigger_one(self):
        context = self.context()
        done = self.run_code(context, "'x' * (8 << 20)")
        self.assertEqual(len(done["results"][0]["mime"]["text/plain"]), (8 << 20) + 2)
        done = self.run_code(context, "'x' * (20 << 20)")
        self.assertIn("more than", done["results"][0]["mime"]["text/plain"])

    def test_an_idle_context_does_not_hold_its_sandbox(self):
        """But a run does: it outlives a sandbox that was made later and has the same time."""
        home = f"/v1/sandboxes/{self.sandbox}"
        context = self.context()
        run = self.start(context, "import os, time\n"
                         "while not os.path.exists('/tmp/go-on'): time.sleep(0.01)")

        def be_idle_for(milliseconds):
            changed = self.atoll.request("PATCH", home, {"idle_ttl_ms": milliseconds})
            self.assertEqual(changed.status, 200, changed.body)

        def is_gone(sandbox):
            return self.atoll.request("GET", f"/v1/sandboxes/{sandbox}").status == 404
        be_idle_for(1000)
        later = self.atoll.create(idle_ttl_ms=1000)["id"]
        atoll.wait_for("the other to end", lambda: is_gone(later))
        self.assertEqual(self.show(context, run, 0)["state"], "running", "a run is use")
        be_idle_for(None)
        self.atoll.execute(self.sandbox, ["touch", "/tmp/go-on"])
        self.assertEqual(self.show(context, run)["verdict"], "ok")
        be_idle_for(1000)
        atoll.wait_for("the sandbox to end", lambda: is_gone(self.sandbox))
        self.sandbox = self.atoll.create()["id"]  # for tearDown

    def test_bash_keeps_what_a_shell_keeps(self):
        context = self.context(language="bash")
        self.run_code(context, "x=5; cd /tmp; f() { echo \"f $1 $x\"; }; declare -A m=([a]=1)")
        done = self.run_code(context, "pwd; f \"it's\"; echo ${m[a]} $ONCE; read y; echo [$y]",
                             env={"ONCE": "o'e"})
        self.assertEqual(done["stdout"], "/tmp\nf it's 5\n1 o'e\n[]\n")
        done = self.run_code(context, "echo [$ONCE]; (exit 3)")
        self.assertEqual((done["verdict"], done["error"]["value"]), ("exception", "3"))
        for code in ("sleep 60", "while :; do :; done"):
            done = self.run_past_its_time(context, f": >{BEGUN}; {code}")
            self.assertFalse(done["state_lost"], done)
        self.assertEqual(self.run_code(context, "echo $x")["stdout"], "5\n")
        self.assertEqual(self.run_code(context, "exit 4")["exit_code"], 4)
        self.assertEqual(self.run_code(context, "echo [$x]")["stdout"], "[]\n")


class IPythonTest(ContextsTest):
    """The same with the toolbox, and what IPython has more; the image has none of it."""
    toolbox = True
    said = ", IPython 8"

    def test_magics_and_the_history(self):
        context = self.context()
        self.assertEqual(self.value(context, "%env HOME"), "'/home/user'")
        self.assertEqual(self.value(context, "6 * 7"), "42")
        self.assertEqual(self.value(context, "_ + 1, In[2]"), "(43, '6 * 7')")
        self.assertEqual(self.run_code(context, "%%bash\necho $((1 + 1))")["stdout"], "2\n")
        self.assertEqual(self.run_code(context, "7;")["results"], [])
        done = self.run_code(context, "from IPython.display import HTML, display\n"
                                      "display(HTML('<b>x</b>'))")
        self.assertEqual(done["results"][0]["mime"]["text/html"], "<b>x</b>")
        self.assertEqual(self.value(context, "get_ipython() is not None and __IPYTHON__"), "True")

    def test_a_formatter_of_the_users_own_is_asked(self):
        context = self.context()
        self.run_code(context, "f = get_ipython().display_formatter.formatters['text/html']\n"
                               "f.for_type(int, lambda n: f'<i>{n}</i>')")
        done = self.run_code(context, "5")
        self.assertEqual(done["results"][0]["mime"]["text/html"], "<i>5</i>")

    def test_the_toolbox_is_read_only_and_of_contexts_alone(self):
        context = self.context()
        self.assertIn("/opt/atoll/", self.value(context, "import IPython; IPython.__file__"))
        code = ("import os\nfor act in (lambda: open('/opt/atoll/x', 'w'),\n"
                "            lambda: os.rmdir('/opt/atoll')):\n"
                "  try: act()\n  except OSError as error: print(error.strerror)")
        for user in ("user", "root"):
            ran = self.atoll.execute(self.sandbox, ["python3", "-c", code], user=user)
            self.assertIn("Read-only file system", ran["stdout"], ran)
            self.assertEqual(len(ran["stdout"].splitlines()), 2, ran)
        ran = self.atoll.python(self.sandbox, "import IPython")
        self.assertIn("ModuleNotFoundError", ran["stderr"], "programs have what the image has")

    def test_what_the_image_has_is_what_the_user_gets(self):
        """But for what must be the same for IPython and for the code."""
        folder = "/home/user/.local/lib/python3.11/site-packages"
        for name in ("decorator", "traitlets"):
            answer = self.atoll.request("PUT", f"/v1/sandboxes/{self.sandbox}/files{folder}/"
                                        f"{name}.py?parents=true", b"mine = True",
                                        headers={"Content-Type": "application/octet-stream"})
            self.assertIn(answer.status, (200, 201, 204), answer.body)
        context = self.context(cwd="/tmp")
        self.assertEqual(self.value(context, "import decorator; decorator.mine"), "True")
        self.assertEqual(self.value(context, "import traitlets; hasattr(traitlets, 'mine')"),
                         "False")
        self.assertEqual(self.value(context, "%env HOME"), "'/home/user'")


class CrashTest(ContextCase):
    def kill_daemon(self):
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        self.atoll.wait_ready()

    def test_a_run_goes_on_without_atolld(self):
        context = self.context()
        self.run_code(context, "kept = 'yes'")
        code = ("import os, time\nfor i in range(40):\n  print('line', i)\n  display(i)\n"
                "  while i == 30 and not os.path.exists('/tmp/go-on'): time.sleep(0.01)\n"
                "  time.sleep(0.05)\n'over'")
        run = self.start(context, code)
        waiting = self.start(context, "kept")
        for line in (3, 10, 20):
            self.wait_said(context, run, f"line {line}\n")
            self.kill_daemon()
        self.atoll.execute(self.sandbox, ["touch", "/tmp/go-on"])
        done = self.show(context, run)
        self.assertEqual((done["verdict"], done["state_lost"]), ("ok", False), done)
        self.assertEqual(done["stdout"], "".join(f"line {i}\n" for i in range(40)))
        self.assertEqual([result["mime"]["text/plain"] for result in done["results"]],
                         [str(i) for i in range(40)] + ["'over'"])
        self.assertEqual(self.show(context, waiting)["results"][0]["mime"]["text/plain"], "'yes'")
        listed = self.atoll.request("GET", self.base).json["contexts"]
        self.assertEqual([one["id"] for one in listed], [context])
        self.assertTrue(listed[0]["interpreter"])
        self.assertEqual(self.value(context, "kept"), "'yes'")

    def test_nothing_runs_twice(self):
        context = self.context()
        self.run_code(context, "count = []")
        acknowledged = []
        for i in range(10):
            daemon = atoll.wait_for("atolld", lambda: self.atoll.daemon_pid)
            killer = threading.Timer(0.003 * i, os.kill, (daemon, signal.SIGKILL))
            killer.start()
            answer = self.atoll.try_request("POST", f"{self.base}/{context}/runs",
                                            {"code": f"count.append({i})", "wait": True})
            if answer.status == 200 and answer.json["verdict"] == "ok":
                acknowledged.append(i)
            killer.join()
            atoll.wait_for("its end", lambda daemon=daemon: self.atoll.daemon_pid != daemon)
            self.atoll.close()
            self.atoll.wait_ready()
        counted = json.loads(self.value(context, "count"))
        self.assertEqual(len(counted), len(set(counted)), counted)
        self.assertLessEqual(set(acknowledged), set(counted))
        done = self.run_code(context, "count.append(10)")
        self.assertEqual(done["verdict"], "ok", done)
        self.assertEqual(json.loads(self.value(context, "count")), [*counted, 10])

    def test_an_interpreter_that_dies_while_atolld_is_away(self):
        context = self.context()
        run = self.start(context, "import os, time\ntime.sleep(0.5)\nprint('x')\nos._exit(3)")
        self.kill_daemon()
        done = self.show(context, run)
        self.assertEqual((done["verdict"], done["exit_code"], done["state_lost"], done["stdout"]),
                         ("nonzero", 3, True, "x\n"))
        self.assertEqual(self.value(context, "1"), "1")


if __name__ == "__main__":
    atoll.main()
