"""Thousands of bad requests against a real Atoll: each is refused within 5 s, none is a fault of
ours (5xx), none does anything, and none disturbs who comes next."""
import collections
import os
import re
import shutil
import socket
import tempfile

from contract import Contract
from hostile import Hostile
from peer import SECONDS, Peer, atoll, connect

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
SEED = int(os.environ.get("ATOLL_HOSTILE_SEED", "1"))
# Another build of atolld, with sanitizers, to run beside the programs of the release.
DAEMON = os.environ.get("ATOLL_DAEMON")
COUNT = int(os.environ.get("ATOLL_HOSTILE_COUNT", "20000" if LONG and DAEMON else "1500"))
MAX_ANSWER_BYTES = 64 * 1024 * 1024
STATUS_LINE = re.compile(rb"HTTP/1\.1 ([0-9]{3}) [^\r\n]*\r\n")


def exchange(address, data):
    """Sends all, ends our side, and reads to the end: what came back. Raises TimeoutError."""
    with connect(address) as peer:
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
        except (BrokenPipeError, ConnectionResetError, OSError) as error:
            if isinstance(error, TimeoutError):
                raise
        received = bytearray()
        while len(received) < MAX_ANSWER_BYTES:
            try:
                piece = peer.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            received += piece
        return bytes(received)


def answers(received):
    """[(status, body)] of what came back on one connection."""
    found = []
    while received:
        line = STATUS_LINE.match(received)
        assert line, f"not an answer: {received[:200]!r}"
        head, separator, rest = received.partition(b"\r\n\r\n")
        assert separator, f"header without an end: {received[:200]!r}"
        status = int(line[1])
        length = re.search(rb"\r\ncontent-length: ([0-9]+)", head, re.IGNORECASE)
        size = int(length[1]) if length else 0
        assert length or status in (100, 204, 304) or b"chunked" in head, head
        if status != 100:
            found.append((status, rest[:size]))
        received = rest[size:] if length or status in (100, 204, 304) else b""
    return found


def beside_release(daemon):
    """A directory with the programs of the release but this atolld."""
    directory = tempfile.mkdtemp(prefix="atoll-wire-bin-")
    os.chmod(directory, 0o755)
    for name in os.listdir(atoll.BIN):
        source = daemon if name == "atolld" else os.path.join(atoll.BIN, name)
        if name == "atoll" or name.startswith(("atoll-", "atolld")):
            shutil.copy2(source, os.path.join(directory, name))
    return directory


class HostileTest(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        cls.programs = beside_release(DAEMON) if DAEMON else None
        if cls.programs:
            atoll.BIN = cls.programs
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        try:
            super().tearDownClass()
        finally:
            if cls.programs:
                shutil.rmtree(cls.programs)

    def setUp(self):
        stranger = self.atoll.request("POST", "/v1/keys", {"tenant": "stranger"})
        self.canary = self.atoll.create(ttl_ms=3600000)["id"]
        self.atoll.start(self.canary, ["sleep", "3600"], timeout_ms=7200000)
        context = self.atoll.request("POST", f"/v1/sandboxes/{self.canary}/contexts", {}).json
        self.place = {"host": self.atoll.address, "key": self.atoll.key, "canary": self.canary,
                      "context": context["id"],
                      "stranger": stranger.json["key"]}

    def judge(self, attack, received):
        """What is wrong with an answer, or None."""
        found = answers(received)
        if len(found) > attack.answers:
            return f"{len(found)} answers to one request"
        for status, body in found:
            if status >= 500 and status not in attack.allowed:
                return f"status {status}"
            if status == 502 and b"\"code\":\"port_not_listening\"" not in body:
                return f"status 502, {body[:200]!r}"
        if not found:
            return None
        status, body = found[0]
        if status not in attack.allowed:
            return f"status {status}, {body[:200]!r}"
        if attack.code and f"\"code\":\"{attack.code}\"".encode() not in body:
            return f"another code than {attack.code}: {body[:200]!r}"
        return None

    def undisturbed(self):
        """A good request on a new connection works, and the canary lives."""
        peer = Peer(self.atoll.address)
        try:
            reply = peer.send("GET", f"/v1/sandboxes/{self.canary}/execs/e1",
                              {"Authorization": f"Bearer {self.atoll.key}"})
            return reply.status == 200 and reply.json["state"] == "running"
        finally:
            peer.close()

    def test_bad_requests_are_refused_and_do_nothing(self):
        daemon = self.atoll.daemon_pid
        address = self.atoll.address
        attacks = Hostile(Contract(), self.place).attacks(SEED, COUNT)
        faults, statuses = [], collections.Counter()
        for attack in attacks:
            try:
                received = exchange(address, attack.data)
                fault = self.judge(attack, received)
                statuses[received[9:12].decode("latin-1") or "closed"] += 1
            except TimeoutError:
                fault = f"no end within {SECONDS} s"
            if fault:
                faults.append(f"{fault} <- {attack}")
            if not self.undisturbed():
                faults.append(f"what came next was disturbed <- {attack}")
                break
        print(f"{len(attacks)} bad requests (seed {SEED}): {dict(sorted(statuses.items()))}")
        self.assertEqual(faults, [], "\n" + "\n".join(faults))
        self.assertEqual(self.atoll.daemon_pid, daemon, "atolld was restarted")
        self.atoll.close()  # idle for longer than the server keeps it
        listed = self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]
        self.assertEqual([sandbox["id"] for sandbox in listed], [self.canary])
        execs = self.atoll.request("GET", f"/v1/sandboxes/{self.canary}/execs").json["execs"]
        self.assertEqual(len(execs), 2, "a bad request ran a program")
        contexts = self.atoll.request("GET", f"/v1/sandboxes/{self.canary}/contexts").json
        contexts = contexts["contexts"]
        self.assertEqual([(one["id"], one["runs"]) for one in contexts],
                         [(self.place["context"], 0)], "a bad request ran code")
        self.assertEqual(len(self.atoll.request("GET", "/v1/keys").json["keys"]), 2)
        log = atoll.read(os.path.join(self.atoll.directory, "logs", "atolld.log"))
        self.assertNotRegex(log, "Sanitizer|runtime error")


if __name__ == "__main__":
    atoll.main()
