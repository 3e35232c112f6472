"""Peers that say nothing, say it slowly, or do not listen: the server cuts them, and a client that
behaves does not notice them. `make test` gives them a few seconds, with --slow-peer-time of atolld;
the times of http::Limits, which are up to a minute, are those of the long tests."""
import multiprocessing
import os
import resource
import socket
import time

from peer import Peer, atoll, connect
import upgrade_test

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
PEERS = 1000 if LONG else 100
P99_MS = 50.0
OUTPUT_BYTES = 64 * 1024 * 1024
KINDS = ("silent", "header", "stalled body", "trickled body", "reader")
CUT_SECONDS = 120  # twice the longest of http::Limits
STEP_SECONDS = 1.0


class SlowPeers:
    """So many slow peers of each kind, in a process of their own: it must not share our time."""

    def __init__(self, address, key, kinds, output):
        self.address, self.key, self.kinds, self.output = address, key, kinds, output
        self.opened, self.end = multiprocessing.Event(), multiprocessing.Event()
        self.process = multiprocessing.Process(target=self.run, daemon=True)
        self.process.start()

    def stop(self):
        self.end.set()
        self.process.join(30)

    def first_bytes(self, kind):
        signed = f"Host: {self.address}\r\nAuthorization: Bearer {self.key}\r\n"
        if kind == "silent":
            return b""
        if kind == "header":
            return f"GET /healthz HTTP/1.1\r\n{signed}X: ".encode()
        if kind == "reader":
            return f"GET {self.output} HTTP/1.1\r\n{signed}\r\n".encode()
        return (f"POST /v1/sandboxes HTTP/1.1\r\n{signed}Content-Type: application/json\r\n"
                "Content-Length: 100000\r\n\r\n{").encode()

    def open(self, kind):
        peer = socket.socket()
        if kind == "reader":
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        host, port = self.address.rsplit(":", 1)
        peer.settimeout(30)
        peer.connect((host, int(port)))
        peer.sendall(self.first_bytes(kind))
        peer.setblocking(False)
        return peer

    def run(self):
        peers = [(kind, self.open(kind)) for kind, count in self.kinds.items()
                 for _ in range(count)]
        self.opened.set()
        while not self.end.wait(STEP_SECONDS):
            for kind, peer in peers:
                if kind not in ("header", "trickled body"):
                    continue
                try:
                    peer.send(b"x")
                except OSError:
                    continue  # cut, which is what the test waits for
        for _, peer in peers:
            peer.close()


class SlowTest(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.before = atoll.settled()
        cls.atoll = upgrade_test.Installed()
        if not LONG:
            cls.atoll.install("atolld-itself", "atolld")
            cls.atoll.install("atolld", "impatient-daemon")  # which adds the option
        cls.atoll.up()

    def setUp(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        self.sandbox = self.atoll.create(limits={"output_bytes": OUTPUT_BYTES})["id"]
        printed = self.atoll.execute(self.sandbox, ["head", "-c", str(OUTPUT_BYTES), "/dev/zero"])
        self.assertEqual(printed["stdout_bytes"], OUTPUT_BYTES)
        self.output = f"/v1/sandboxes/{self.sandbox}/execs/{printed['id']}/output"
        self.key, self.daemon = self.atoll.key, self.atoll.daemon_pid
        self.peer = Peer(self.atoll.address)
        self.addCleanup(self.peer.close)

    def connections(self):
        """How many sockets atolld has open."""
        folder, count = f"/proc/{self.daemon}/fd", 0
        for name in os.listdir(folder):
            try:
                count += os.readlink(f"{folder}/{name}").startswith("socket:")
            except FileNotFoundError:
                continue  # closed since it was listed
        return count

    def ask(self):
        """One good request on a kept connection, and how long it took."""
        begin = time.monotonic()
        reply = self.peer.send("GET", f"/v1/sandboxes/{self.sandbox}",
                               {"Authorization": f"Bearer {self.key}"})
        self.assertEqual(reply.status, 200)
        return (time.monotonic() - begin) * 1000

    def ask_until(self, condition):
        times = []
        deadline = time.monotonic() + CUT_SECONDS * atoll.SLOW
        while not condition():
            self.assertLess(time.monotonic(), deadline, "slow peers were not cut")
            times += [self.ask() for _ in range(20)]
            with connect(self.atoll.address) as fresh:  # also who comes anew is served
                fresh.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertTrue(fresh.recv(4096).startswith(b"HTTP/1.1 200 "))
            time.sleep(0.05)
        return times

    def test_slow_peers_are_cut_and_others_do_not_notice(self):
        kinds = {kind: PEERS // len(KINDS) for kind in KINDS}
        self.ask()
        before = self.connections()
        slow = SlowPeers(self.atoll.address, self.key, kinds, self.output)
        self.addCleanup(slow.stop)
        total = sum(kinds.values())
        atoll.wait_for("the slow peers to be connected",
                       lambda: self.connections() > before + total * 3 // 4)
        self.assertTrue(slow.opened.wait(60 * atoll.SLOW))
        allowed = before + 1  # one that the client itself has just closed
        times = sorted(self.ask_until(lambda: self.connections() <= allowed))
        p50, p99 = times[len(times) // 2], times[len(times) * 99 // 100]
        print(f"{total} slow peers: {len(times)} requests of another client, "
              f"p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        if LONG:
            self.assertLess(p99, P99_MS * atoll.SLOW)
        self.assertEqual(self.atoll.python(self.sandbox, "print(1)")["stdout"], "1\n")


if __name__ == "__main__":
    atoll.main()
