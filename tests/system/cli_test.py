"""The command line on a real Atoll: exit codes, streams, JSON, terminals and what stays behind."""
import fcntl
import json
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import tempfile
import termios
import time
import unittest

import atoll


class Terminal:
    """atoll with a terminal of its own, as a person would run it."""

    def __init__(self, running, *arguments, columns=100, rows=30):
        self.master, self.slave = pty.openpty()
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", running.directory, *arguments]
        environment = {**os.environ, "TERM": "xterm"}
        self.process = subprocess.Popen(command, stdin=self.slave, stdout=self.slave,
                                        stderr=self.slave, env=environment,
                                        start_new_session=True)
        self.output = b""

    def resize(self, columns, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def read_some(self, seconds):
        if select.select([self.master], [], [], seconds)[0]:
            self.output += os.read(self.master, 65536)

    def wait_for(self, text):
        def seen():
            self.read_some(0.05)
            return text.encode() in self.output
        try:
            atoll.wait_for(f"{text!r} on the terminal", seen)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.output!r}")

    def end(self):
        """The exit code; checks that the terminal is as it was."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None:
            self.read_some(0.05)
            assert time.monotonic() < deadline, self.output
        self.read_some(0.05)
        after = termios.tcgetattr(self.slave)
        os.close(self.master)
        os.close(self.slave)
        assert after == self.before, (self.before, after)
        return self.process.returncode


class Commands(atoll.SystemTest):
    def cli(self, *arguments, **options):
        options.setdefault("input", b"")
        return self.atoll.cli(*arguments, check=False, **options)

    def json(self, *arguments, code=0):
        done = self.cli(*arguments, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout)

    def no_sandboxes(self):
        return self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"] == []

    def test_the_programs_bytes_and_exit_code_are_ours(self):
        code = "import os, sys; os.write(1, b'\\x00\\xff\\n'); os.write(2, b'err'); sys.exit(7)"
        done = self.cli("run", "-t", "python", "-c", code)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, b"\x00\xff\n", b"err"))
        done = self.cli("run", "-c", "import os; os.kill(os.getpid(), 11)")
        self.assertEqual(done.returncode, 128 + 11)
        self.assertTrue(self.no_sandboxes())

    def test_output_over_the_inline_limit_comes_whole(self):
        done = self.cli("run", "-c", "print('x' * 3_000_000)")
        self.assertEqual((done.returncode, len(done.stdout)), (0, 3_000_001))

    def test_limits_end_with_a_line_that_says_what_to_change(self):
        done = self.cli("run", "--timeout", "5s", "-c",
                        "import time; print('begun', flush=True); time.sleep(60)")
        self.assertEqual((done.returncode, done.stdout), (124, b"begun\n"))
        self.assertIn(b"atoll: wall_time after ", done.stderr)
        self.assertIn(b"raise --timeout", done.stderr)
        done = self.cli("run", "--cpu-time", "200ms", "-c", "while True: pass")
        self.assertEqual(done.returncode, 124)
        done = self.cli("run", "--memory", "32MiB", "-c", "x = bytearray(1 << 30)")
        self.assertNotEqual(done.returncode, 0)

    def test_output_comes_while_the_program_runs(self):
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", self.atoll.directory, "run",
                   "-c", "import time; print('first', flush=True); time.sleep(600)"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as run:
            self.assertEqual(run.stdout.readline(), b"first\n")
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(60), 128 + signal.SIGINT)
            self.assertEqual(run.stderr.read(), b"")
        atoll.wait_for("the sandbox to be removed", self.no_sandboxes)

    def test_interrupt_of_a_run_with_json_removes_its_sandbox(self):
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", self.atoll.directory, "run",
                   "--json", "-c", "import time; time.sleep(600)"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as run:
            atoll.wait_for("the sandbox", lambda: not self.no_sandboxes())
            run.send_signal(signal.SIGINT)
            run.wait(60)
        atoll.wait_for("the sandbox to be removed", self.no_sandboxes)

    def test_standard_input_is_the_code(self):
        self.assertEqual(self.cli("run", "-t", "python", input=b"print(6 * 7)").stdout, b"42\n")
        shell = self.cli("run", "-t", "python", "-", input=b"#!/bin/sh\necho $((6 * 7))")
        self.assertEqual(shell.stdout, b"42\n")

    def test_standard_input_is_the_programs(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"x" * 1_000_000)
            file.flush()
            code = "import sys; print(len(sys.stdin.read()))"
            self.assertEqual(self.cli("run", "--stdin", file.name, "-c", code).stdout, b"1000000\n")
        self.assertEqual(self.cli("run", "--stdin", "-", "-c", code, input=b"abc").stdout, b"3\n")
        self.assertEqual(self.cli("run", "-c", code, input=b"abc").stdout, b"0\n")

    def test_a_reader_that_goes_away_ends_the_run(self):
        command = (f"{shlex.quote(os.path.join(atoll.BIN, 'atoll'))} --state-dir "
                   f"{shlex.quote(self.atoll.directory)} run -c 'while True: print(1)' | head -1")
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True,
                              stdin=subprocess.DEVNULL, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (141, b"1\n", b""))
        atoll.wait_for("the sandbox to be removed", self.no_sandboxes)

    def test_errors_have_a_code_a_message_and_a_remedy(self):
        done = self.cli("run", "-t", "missing-template", "x.py")
        self.assertEqual(done.returncode, 125)
        done = self.cli("create", "-t", "missing-template")
        self.assertEqual((done.returncode, done.stdout), (125, b""))
        self.assertIn(b"template_not_found: ", done.stderr)
        self.assertIn(b"remedy: ", done.stderr)
        error = self.json("create", "-t", "missing-template", code=125)["error"]
        self.assertEqual(error["code"], "template_not_found")
        self.assertTrue(error["message"] and error["remedy"])
        done = self.cli("lss")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b'did you mean "ls"?', done.stderr)
        self.assertIn("error", self.json("ls", "--fast", code=2))

    def test_no_control_sequence_of_a_program_reaches_a_terminal(self):
        code = r"print('\x1b]0;title\x07\x1b[31mred\x9b5n\u009b6n\x05 end')"
        terminal = Terminal(self.atoll, "run", "-c", code)
        terminal.wait_for("end")
        self.assertEqual(terminal.end(), 0)
        for bad in (b"\x1b", b"\x07", b"\x9b", b"\x05"):
            self.assertNotIn(bad, terminal.output)
        self.assertIn(b"\\x1b[31mred", terminal.output)
        terminal = Terminal(self.atoll, "run", "--raw", "-c", code)
        terminal.wait_for("end")
        self.assertEqual(terminal.end(), 0)
        self.assertIn(b"\x1b[31mred", terminal.output)

    def test_json_is_one_value_for_every_command(self):
        created = self.json("create", "-t", "python", "--ttl", "10m")
        sandbox = created["id"]
        try:
            self.assertEqual(created["state"], "running")
            done = json.loads(self.cli("--json", "exec", sandbox, "--", "sh", "-c",
                                       "echo out; exit 3").stdout)
            self.assertEqual((done["verdict"], done["exit_code"], done["stdout"]),
                             ("nonzero", 3, "out\n"))
            self.assertEqual([row["id"] for row in self.json("ls")["sandboxes"]], [sandbox])
            self.assertEqual(self.json("show", sandbox)["id"], sandbox)
            self.assertEqual(self.json("logs", sandbox, done["id"])["stdout"], "out\n")
            usage = self.json("usage", sandbox)
            self.assertEqual(len(usage["execs"]), 1)
            self.assertGreater(usage["total"]["peak_memory_bytes"], 0)
            built = [row["name"] for row in self.json("template", "ls")["templates"]
                     if row["state"] == "built"]
            self.assertEqual(built, ["python"])
            self.assertTrue(self.json("key", "show-local")["key"])
            self.assertTrue(self.json("status")["ready"])
            self.assertTrue(self.json("version")["version"])
            self.assertIn("receipt", self.json("receipt", "show", sandbox))
            self.assertIn("script", self.json("completion", "bash"))
        finally:
            self.assertEqual(self.json("rm", sandbox)["removed"], [sandbox])
        self.assertEqual(self.json("run", "-c", "print(1)")["stdout"], "1\n")
        self.assertEqual(self.json("bench", "-n", "2")["count"], 2)
        self.assertTrue(self.no_sandboxes())

    def test_a_secret_is_typed_unseen(self):
        options = ("secret", "set", "TYPED_KEY", "--host", "api.example")
        terminal = Terminal(self.atoll, *options)
        terminal.wait_for("Value: ")
        terminal.type("unseen-walue")
        terminal.type("\x7f" * 5 + "value\r")
        self.assertEqual(terminal.end(), 0)
        self.assertNotIn(b"unseen", terminal.output)
        self.assertIn(b"TYPED_KEY", self.atoll.cli("secret", "ls").stdout)
        for key in "\x03", "\x04":
            terminal = Terminal(self.atoll, *options)
            terminal.wait_for("Value: ")
            terminal.type("half" + key)
            self.assertEqual(terminal.end(), 125)
        self.atoll.cli("secret", "rm", "TYPED_KEY")
        empty = self.atoll.cli("secret", "set", "TYPED_KEY", input=b"x", check=False)
        self.assertEqual(empty.returncode, 2, empty.stderr)

    def test_remove_all_asks_a_person_and_refuses_a_script(self):
        first, second = (self.cli("create").stdout.decode().strip() for _ in range(2))
        refused = self.cli("rm", "--all")
        self.assertEqual(refused.returncode, 125)
        self.assertIn(b"--yes", refused.stderr)
        terminal = Terminal(self.atoll, "rm", "--all")
        terminal.wait_for("[y/N]")
        terminal.type("n\n")
        self.assertEqual(terminal.end(), 0)
        self.assertEqual(sorted(self.cli("ls", "-q").stdout.decode().split()),
                         sorted([first, second]))
        self.assertEqual(self.cli("rm", "--all", "--yes").returncode, 0)
        self.assertTrue(self.no_sandboxes())

    def test_colours_only_on_a_terminal(self):
        sandbox = self.cli("create").stdout.decode().strip()
        try:
            self.assertNotIn(b"\x1b", self.cli("ls").stdout)
            terminal = Terminal(self.atoll, "ls")
            terminal.wait_for(sandbox)
            terminal.end()
            self.assertIn(b"\x1b[32m", terminal.output)
        finally:
            self.cli("rm", sandbox)


class Sandbox(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sandbox = cls.atoll.create(ttl_ms=3_600_000, idle_ttl_ms=3_600_000)["id"]

    @classmethod
    def tearDownClass(cls):
        cls.atoll.delete(cls.sandbox)
        super().tearDownClass()

    def cli(self, *arguments, **options):
        options.setdefault("input", b"")
        return self.atoll.cli(*arguments, check=False, **options)

    def test_exec_passes_input_user_directory_and_environment(self):
        done = self.cli("exec", "-i", self.sandbox, "--", "wc", "-c", input=b"x" * 300_000)
        self.assertEqual((done.returncode, done.stdout), (0, b"300000\n"))
        done = self.cli("exec", "-u", "root", "-w", "/tmp", "-e", "A=b c", self.sandbox, "--", "sh",
                        "-c", 'echo "$(id -u) $PWD $A"')
        self.assertEqual(done.stdout, b"0 /tmp b c\n")
        done = self.cli("exec", self.sandbox, "--", "cat", input=b"not passed on")
        self.assertEqual((done.returncode, done.stdout), (0, b""))

    def test_detached_exec_and_its_logs(self):
        script = "for i in 1 2 3; do echo $i; sleep 0.2; done; echo bad >&2; exit 4"
        exec_id = self.cli("exec", "-d", self.sandbox, "--", "sh", "-c", script).stdout.decode()
        exec_id = exec_id.strip()
        followed = self.cli("logs", "-f", self.sandbox, exec_id)
        self.assertEqual((followed.returncode, followed.stdout, followed.stderr),
                         (0, b"1\n2\n3\n", b"bad\n"))
        again = self.cli("logs", self.sandbox, exec_id)
        self.assertEqual((again.stdout, again.stderr), (b"1\n2\n3\n", b"bad\n"))

    def test_interrupt_reaches_the_program(self):
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", self.atoll.directory, "exec",
                   self.sandbox, "--", "sh", "-c", "echo ready; exec sleep 600"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE) as process:
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(60), 128 + signal.SIGINT)
            self.assertEqual(process.stderr.read(), b"")
        execs = self.atoll.request("GET", f"/v1/sandboxes/{self.sandbox}/execs").json["execs"]
        ended = self.atoll.wait_ended(self.sandbox, execs[-1]["id"])
        self.assertEqual(ended["verdict"], "killed")

    def test_shell_is_a_terminal_with_size_and_exit_code(self):
        terminal = Terminal(self.atoll, "shell", self.sandbox)
        terminal.type("stty size; echo $TERM-$((6 * 7))\r")
        terminal.wait_for("30 100")
        terminal.wait_for("xterm-42")
        terminal.resize(90, 20)
        terminal.process.send_signal(signal.SIGWINCH)
        terminal.type("until [ \"$(stty size)\" = '20 90' ]; do sleep 0.1; done; stty size\r")
        terminal.wait_for("20 90\r\n")
        # Ctrl-C ends what runs inside, not the shell. cat runs when it answers; a shell that starts
        # a program has a moment in which it takes no notice.
        terminal.type("echo beg\"\"un; cat\r")
        terminal.wait_for("begun")
        terminal.type("hello\r")
        terminal.wait_for("hello\r\nhello\r\n")
        terminal.type("\x03")
        terminal.wait_for("^C\r\n\x1b[?2004h")
        terminal.type("exit 7\r")
        self.assertEqual(terminal.end(), 7)

    def test_shell_keeps_strings_for_the_terminal_away(self):
        terminal = Terminal(self.atoll, "shell", self.sandbox)
        terminal.type(r"printf '\033]52;c;eA==\007\033[31mred\033[0m\033[6n en''d\n'; exit" + "\r")
        terminal.wait_for(" end")
        self.assertEqual(terminal.end(), 0)
        self.assertIn(b"\x1b[31mred", terminal.output)
        self.assertNotIn(b"\x1b]52", terminal.output)
        self.assertNotIn(b"\x1b[6n", terminal.output)

    def test_signals_put_the_terminal_back(self):
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGABRT, signal.SIGSEGV):
            terminal = Terminal(self.atoll, "shell", self.sandbox)
            terminal.type("echo ready-$((1 + 1))\r")
            terminal.wait_for("ready-2")
            self.assertNotEqual(termios.tcgetattr(terminal.slave), terminal.before)
            terminal.process.send_signal(number)
            expected = (128 + number if number in (signal.SIGTERM, signal.SIGHUP) else -number)
            self.assertEqual(terminal.end(), expected)

    def test_leaving_a_shell_and_coming_back(self):
        terminal = Terminal(self.atoll, "shell", self.sandbox)
        terminal.type("secret=$((6 * 7)); echo known-$secret\r")
        terminal.wait_for("known-42")
        terminal.type("\r~.")
        self.assertEqual(terminal.end(), 0)
        self.assertIn(b"come back with", terminal.output)
        words = terminal.output.decode().split("atoll shell --attach ")[1].split()
        back = Terminal(self.atoll, "shell", "--attach", words[0], self.sandbox)
        back.type("echo again-$secret; exit 5\r")
        back.wait_for("again-42")
        self.assertEqual(back.end(), 5)

    def test_exec_with_a_terminal(self):
        terminal = Terminal(self.atoll, "exec", "-it", self.sandbox, "--", "sh", "-c",
                            "test -t 0 && test -t 1 && read line && echo got-$line && exit 3")
        terminal.type("word\r")
        terminal.wait_for("got-word")
        self.assertEqual(terminal.end(), 3)

    def test_completion_offers_real_sandboxes(self):
        script = self.cli("completion", "bash").stdout.decode()
        tail = ('\natoll() { command "$ATOLL" --state-dir "$STATE" "$@"; }\n'
                "COMP_WORDS=(atoll show '')\nCOMP_CWORD=2\n_atoll\necho \"${COMPREPLY[@]}\"\n")
        environment = {**os.environ, "ATOLL": os.path.join(atoll.BIN, "atoll"),
                       "STATE": self.atoll.directory}
        done = subprocess.run(["bash", "--norc", "-c", script + tail], env=environment,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=True)
        self.assertIn(self.sandbox, done.stdout.decode().split())


if __name__ == "__main__":
    atoll.main()
