#!/usr/bin/env python3
"""Execs as a client meets them: input, events, terminals, and what a crash of atolld leaves."""
import base64
import hashlib
import http.client
import json
import os
import signal
import threading
import unittest

import atoll
from web_socket import BINARY, CLOSE, Refused, WebSocket

# Prints numbered lines for as long as the test needs to crash atolld in the middle.
COUNT = """import time
for i in range(400):
    print('line %05d é' % i, flush=True)
    time.sleep(0.005)"""


class Events:
    """A client of an event stream that knows where it stopped."""

    def __init__(self, server, path):
        self.server, self.path = server, path
        self.last, self.output, self.exit = None, {"stdout": b"", "stderr": b""}, None

    def read(self, enough=lambda events: False):
        """Reads on from where it stopped, until the end, a break of the stream or enough."""
        host, port = self.server.address.rsplit(":", 1)
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        headers = {"Authorization": f"Bearer {self.server.key}", "Accept": "text/event-stream"}
        if self.last:
            headers["Last-Event-ID"] = self.last
        connection.request("GET", self.path, headers=headers)
        response = connection.getresponse()
        if response.status != 200:
            raise ConnectionError(response.status)
        event = {}
        while not enough(self) and self.exit is None:
            line = response.readline()
            if not line.endswith(b"\n"):
                raise ConnectionError("cut")
            name, _, value = line.rstrip(b"\n").decode().partition(": ")
            if name:
                event[name] = value
            elif event:
                self.take(event)
                event = {}
        connection.close()

    def take(self, event):
        self.last = event["id"]
        data = json.loads(event["data"])
        if event["event"] == "exit":
            self.exit = data
        else:
            piece = data["text"].encode() if "text" in data else base64.b64decode(data["base64"])
            self.output[event["event"]] += piece


class ExecTest(atoll.SystemTest):
    def setUp(self):
        self.sandbox = self.atoll.create()["id"]
        self.execs = f"/v1/sandboxes/{self.sandbox}/execs"

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def write(self, exec_id, data, query=""):
        path = f"{self.execs}/{exec_id}/stdin{query}"
        return self.atoll.request("POST", path, data,
                                  headers={"Content-Type": "application/octet-stream"})

    def attach(self, exec_id, query=""):
        path = f"{self.execs}/{exec_id}/attach{query}"
        return WebSocket(self.atoll.address, path, self.atoll.key)

    def crash_daemon(self):
        pid = self.atoll.daemon_pid
        os.kill(pid, signal.SIGKILL)
        atoll.wait_for("atolld to be gone", lambda: self.atoll.daemon_pid not in (pid,))
        self.atoll.close()
        self.atoll.wait_ready()

    def test_input_given_and_streamed(self):
        ran = self.atoll.execute(self.sandbox, ["cat"], stdin="héllo")
        self.assertEqual((ran["stdout"], ran["verdict"]), ("héllo", "ok"))
        started = self.atoll.start(self.sandbox, ["sha256sum"], stdin_open=True)
        data = os.urandom(3_000_000)
        answer = self.write(started["id"], data, "?eof=true")
        self.assertEqual(answer.json, {"offset": len(data), "closed": True})
        ended = self.atoll.wait_ended(self.sandbox, started["id"])
        self.assertEqual(ended["stdout"].split()[0], hashlib.sha256(data).hexdigest())
        self.assertEqual(self.write(started["id"], b"x").json["error"]["code"], "exec_not_running")

    def test_input_that_the_program_has_closed(self):
        started = self.atoll.start(self.sandbox, ["sh", "-c", "exec <&-; sleep 30"],
                                   stdin_open=True)

        def closed():
            return self.write(started["id"], b"x" * 1000).status == 409
        atoll.wait_for("the input to be closed", closed)
        self.assertEqual(self.write(started["id"], b"x").json["error"]["code"], "stdin_closed")

    def test_input_survives_a_crash_of_atolld(self):
        started = self.atoll.start(self.sandbox, ["sha256sum"], stdin_open=True)
        data = os.urandom(2_000_000)
        done, crashes = 0, 0
        while done < len(data):
            path = f"{self.execs}/{started['id']}/stdin?offset={done}"
            answer = self.atoll.try_request("POST", path, data[done:done + 300_000],
                                            headers={"Content-Type": "application/octet-stream"})
            if answer.status == 200:
                done = answer.json["offset"]
            else:
                self.atoll.wait_ready()
            if crashes < 3 and done > 500_000 * crashes:
                crashes += 1
                threading.Timer(0.002, os.kill, (self.atoll.daemon_pid, signal.SIGKILL)).start()
        self.atoll.wait_ready()
        self.assertEqual(self.write(started["id"], b"", f"?offset={done}&eof=true").status, 200)
        ended = self.atoll.wait_ended(self.sandbox, started["id"])
        self.assertEqual(ended["stdout"].split()[0], hashlib.sha256(data).hexdigest())

    def test_events_survive_a_crash_of_atolld(self):
        started = self.atoll.start(self.sandbox, ["python3", "-c", COUNT])
        events = Events(self.atoll, f"{self.execs}/{started['id']}/output")
        events.read(lambda it: len(it.output["stdout"]) > 1000)
        for _ in range(2):
            self.crash_daemon()
            size = len(events.output["stdout"])
            events.read(lambda it: len(it.output["stdout"]) > size + 1000)
        events.read()
        expected = "".join("line %05d é\n" % i for i in range(400)).encode()
        self.assertEqual(events.output["stdout"], expected)
        self.assertEqual(events.exit["verdict"], "ok")
        self.assertEqual(events.exit["stdout_bytes"], len(expected))

    def test_several_readers_get_the_same_bytes(self):
        code = """import os
for i in range(200):
    os.write(1, os.urandom(5000))
    os.write(2, b'e' * 10)"""
        started = self.atoll.start(self.sandbox, ["python3", "-c", code])
        path = f"{self.execs}/{started['id']}/output"
        raw = []

        def follow():
            client = atoll.Atoll(self.atoll.directory)
            raw.append(client.request("GET", path + "?follow=true").body)
            client.close()
        readers = [threading.Thread(target=follow) for _ in range(4)]
        events = [Events(self.atoll, path) for _ in range(2)]
        readers += [threading.Thread(target=reader.read) for reader in events]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        whole = self.atoll.output(self.sandbox, started["id"])
        self.assertEqual(len(whole), 1_000_000)
        for got in raw + [reader.output["stdout"] for reader in events]:
            self.assertEqual(got, whole)
        for reader in events:
            self.assertEqual(reader.output["stderr"], b"e" * 2000)

    def test_terminal_by_web_socket(self):
        started = self.atoll.start(self.sandbox, ["sh"], pty={"cols": 80, "rows": 24},
                                   env={"PS1": "ready> "})
        terminal = self.attach(started["id"])
        self.assertEqual(terminal.read_json(), {"offset": 0})
        terminal.read_until(b"ready> ")
        terminal.send(BINARY, b"tty; stty size\n")
        self.assertIn(b"24 80", terminal.read_until(b"24 80"))
        terminal.send_json({"resize": {"cols": 100, "rows": 30}})
        terminal.send(BINARY, b"stty size\n")
        terminal.read_until(b"30 100")
        # Printed by what is in the foreground then: an earlier ^C could hit the shell itself.
        terminal.send(BINARY, b"sh -c 'echo be\"\"gun; exec sleep 60'\n")
        terminal.read_until(b"begun\r\n")
        terminal.send(BINARY, b"\x03")
        terminal.read_until(b"ready> ")
        terminal.send(BINARY, b"exit 7\n")
        _, ended = terminal.read_to_exit()
        self.assertEqual((ended["exit_code"], ended["verdict"]), (7, "nonzero"))
        self.assertEqual(terminal.read()[0], CLOSE)
        self.assertEqual(terminal.close_code, 1000)
        terminal.close()

    def test_attach_is_for_one_and_can_be_taken_over(self):
        started = self.atoll.start(self.sandbox, ["cat"], stdin_open=True)
        first = self.attach(started["id"])
        first.read_json()
        first.send(BINARY, b"one\n")
        first.read_until(b"one\n")
        with self.assertRaises(Refused) as refused:
            self.attach(started["id"])
        self.assertEqual(refused.exception.status, 409)
        self.assertEqual(json.loads(refused.exception.body)["error"]["code"], "attached")
        second = self.attach(started["id"], "?takeover=true&since=4")
        self.assertEqual(second.read_json(), {"offset": 4})
        self.assertEqual(first.read()[0], CLOSE)
        self.assertEqual(first.close_code, 4001)
        second.send(BINARY, b"two\n")
        self.assertEqual(second.read_until(b"two\n"), b"two\n")
        second.send_json({"eof": True})
        rest, ended = second.read_to_exit()
        self.assertEqual((rest, ended["verdict"]), (b"", "ok"))
        for client in (first, second):
            client.close()

    def test_attach_refuses_what_it_does_not_know(self):
        started = self.atoll.start(self.sandbox, ["cat"], stdin_open=True)
        client = self.attach(started["id"])
        client.read_json()
        client.send_json({"dance": True})
        self.assertEqual(client.read()[0], CLOSE)
        self.assertEqual(client.close_code, 1008)
        client.close()
        plain = self.atoll.request("GET", f"{self.execs}/{started['id']}/attach")
        self.assertEqual((plain.status, plain.json["error"]["code"]), (426, "web_socket_required"))

    def test_a_sandbox_full_of_processes_is_not_our_failure(self):
        full = self.atoll.create(limits={"pids": 8})["id"]
        many = "i=0; while [ $i -lt 20 ]; do sleep 600 >/dev/null 2>&1 & i=$((i+1)); done"
        self.assertEqual(self.atoll.execute(full, ["sh", "-c", many])["verdict"], "pids_limit")
        last = self.atoll.start(full, ["sleep", "600"])  # in place of that shell
        refused = self.atoll.execute(full, ["true"])
        self.assertEqual((refused["verdict"], refused["limits_hit"], refused["exit_code"]),
                         ("pids_limit", ["pids"], None))
        path = f"/v1/sandboxes/{full}/execs/{last['id']}/signal"
        self.assertEqual(self.atoll.request("POST", path, {"signal": "KILL"}).status, 204)
        self.atoll.wait_ended(full, last["id"])
        self.assertEqual(self.atoll.execute(full, ["true"])["verdict"], "ok")
        self.atoll.delete(full)

    def test_users_by_name_and_number(self):
        show = ["sh", "-c", "id -u; echo $HOME; pwd"]
        for user, expected in (("user", "1000\n/home/user\n/home/user\n"),
                               ("root", "0\n/root\n/root\n"), ("nobody", "65534\n")):
            ran = self.atoll.execute(self.sandbox, show, user=user)
            self.assertTrue(ran["stdout"].startswith(expected), ran)
        self.assertEqual(self.atoll.execute(self.sandbox, ["id", "-u"], user="1234:1234")["stdout"],
                         "1234\n")
        missing = self.atoll.execute(self.sandbox, ["id"], user="nosuch")
        self.assertEqual(missing["exit_code"], 126)
        self.assertIn("nosuch", missing["stderr"])


if __name__ == "__main__":
    atoll.main()
