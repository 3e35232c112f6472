"""The way out behind gVisor and in machines: what egress_test.py says of jails, with the same
tests, and what the passage between guest and keeper must hold."""
import functools
import os
import unittest

import atoll
import egress_test

INTERNET = egress_test.INTERNET

# A server that is not read from beside others that are.
STILL = r"""
import socket, time, urllib.request
still = []
for i in range(8):
    s = socket.create_connection(("allowed.example", 80), timeout=20)
    s.sendall(b"GET /large HTTP/1.1\r\nHost: allowed.example\r\n\r\n")
    still.append(s)
time.sleep(1)
for i in range(20):
    print(urllib.request.urlopen("http://allowed.example/x", timeout=20).read().decode())
"""
MANY = r"""
import socket
ends = []
for i in range(200):
    s = socket.create_connection(("allowed.example", 80), timeout=30)
    s.sendall(b"GET /%d HTTP/1.1\r\nHost: allowed.example\r\n\r\n" % i)
    ends.append(s)
answers = [s.recv(1000).decode() for s in ends]
print(sum(answers[i].endswith(f"allowed.example /{i}") for i in range(200)))
"""
LARGE = r"""
import time, urllib.request
begin = time.monotonic()
body = urllib.request.urlopen("http://allowed.example/large", timeout=60).read()
print(len(body), body == b"x" * len(body), time.monotonic() - begin)
"""
LITERALS = r"""
import socket
def tcp(address, port):
    try:
        s = socket.create_connection((address, port), timeout=10)
        s.sendall(b"GET / HTTP/1.1\r\nHost: %s\r\n\r\n" % address.encode())
        return s.recv(1000).decode().split("\r\n")[-1]
    except OSError as error: return type(error).__name__
def udp(address, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
    try: s.sendto(b"x", (address, port)); return s.recv(100)
    except OSError as error: return type(error).__name__
for call in (tcp("10.9.9.9", 80), tcp("10.9.9.8", 80), tcp("20.0.0.80", 80),
             tcp("169.254.169.254", 80), udp("20.0.0.80", 123), udp("20.0.0.53", 5353)):
    print(call)
"""


class WallEgress(egress_test.Egress):
    """Of one wall. What is tried by other protocols than TCP and DNS is refused inside, where no
    row says so."""
    wall = ""
    test_by_default_nothing_leaves_and_everything_is_recorded = None
    test_a_flood_is_counted = None
    test_rules_that_cannot_be_held_are_refused = None
    test_egress_runs_unprivileged = None
    test_the_log_is_a_chain = None

    @classmethod
    def setUpClass(cls):
        image = atoll.MONITORS.get(cls.wall)
        if not image or not os.path.exists(os.path.join(image, "image.erofs")):
            raise unittest.SkipTest(f"the image is not built: make images IMAGES={cls.wall}")
        super().setUpClass()
        cls.atoll.cli("template", "add", image)
        INTERNET.rebinding = 0  # each is to see the first answer
        cls.atoll.create = functools.partial(cls.atoll.create, isolation=cls.wall)

    def test_a_range_is_reached_and_nothing_beside_it(self):
        connections = len(INTERNET.connections)
        sandbox = self.atoll.create(network={"allow": ["10.9.9.9/32:80"]})["id"]
        lines = self.run_inside(sandbox, LITERALS)
        self.assertEqual(lines[0], "10.9.9.9 10.9.9.9 /")
        for line in lines[1:4]:
            self.assertEqual(line, "ConnectionResetError", lines)
        for line in lines[4:]:  # nothing says that nobody is there
            self.assertIn(line, ("ConnectionRefusedError", "TimeoutError"), lines)
        self.assertEqual(INTERNET.connections[connections:], [("10.9.9.9", 80)])
        denied = {row.get("address") for row in self.rows(sandbox) if row.get("decision") == "deny"}
        self.assertLessEqual({"10.9.9.8", "20.0.0.80", "169.254.169.254"}, denied)

    def test_connections_that_stand_still_hold_up_no_other(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        self.assertEqual(self.run_inside(sandbox, STILL),
                         ["20.0.0.80 allowed.example /x"] * 20)

    def test_many_connections_at_once_and_more_after_them(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        for _ in range(2):
            self.assertEqual(self.run_inside(sandbox, MANY), ["200"])

    def test_a_large_answer_arrives_whole(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        size, whole, seconds = self.run_inside(sandbox, LARGE, timeout_ms=120_000)[0].split()
        self.assertEqual((size, whole), (str(64 << 20), "True"))
        print(f"{self.wall}: {64 / float(seconds):.0f} MiB/s", flush=True)

    def test_a_request_costs_little(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        code = ("import http.client, time\nc = http.client.HTTPConnection('allowed.example')\n"
                "def one():\n    c.request('GET', '/x'); c.getresponse().read()\none()\n"
                "begin = time.monotonic()\nfor i in range(200): one()\n"
                "print((time.monotonic() - begin) / 200 * 1000)\n")
        print(f"{self.wall}: a request takes {self.run_inside(sandbox, code)[0]} ms", flush=True)

    def test_it_stands_still_with_its_connections(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        code = ("import http.client, os, time\n"
                "c = http.client.HTTPConnection('allowed.example')\n"
                "for i in range(2):\n"
                "    while i and not os.path.exists('/tmp/go-on'): time.sleep(0.01)\n"
                "    c.request('GET', f'/{i}'); print(c.getresponse().read(), flush=True)\n")
        started = self.atoll.start(sandbox, ["python3", "-c", code])
        atoll.wait_for("the first answer", lambda: b"/0" in self.atoll.output(sandbox,
                                                                            started["id"]))
        path = f"/v1/sandboxes/{sandbox}"
        self.assertEqual(self.atoll.request("POST", path + "/pause", {}).status, 200)
        self.assertEqual(self.atoll.request("POST", path + "/resume", {}).status, 200)
        self.atoll.execute(sandbox, ["touch", "/tmp/go-on"])
        self.assertEqual(self.atoll.wait_ended(sandbox, started["id"])["verdict"], "ok")
        self.assertIn(b"/1", self.atoll.output(sandbox, started["id"]))


class GvisorEgress(WallEgress):
    wall = "gvisor"


class MicrovmEgress(WallEgress):
    wall = "microvm"


SHORT = ("test_a_range_is_reached_and_nothing_beside_it",
         "test_connections_that_stand_still_hold_up_no_other",
         "test_many_connections_at_once_and_more_after_them")


def load_tests(loader, _, __):
    cases = (GvisorEgress, MicrovmEgress)
    if os.environ.get("ATOLL_TEST_LONG"):
        return unittest.TestSuite(loader.loadTestsFromTestCase(case) for case in cases)
    print("only what is of the passage; ATOLL_TEST_LONG=1 tries all that egress_test.py does")
    return unittest.TestSuite(case(name) for case in cases for name in SHORT)


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main()
