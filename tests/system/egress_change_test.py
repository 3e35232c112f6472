"""A change of the network holds when it is answered, whatever stands in its way: connections that
take all descriptors of atoll-egress, its death, its standing still. Against a fake internet that
keeps what a program wrote and when: after an answer nothing arrives that was written later and that
the new policy does not allow, be the answer 200 or 503."""
import os
import random
import re
import signal
import subprocess
import time

import atoll
import egress_case
import fake_internet
from fake_internet import OTHER, WEB

ROUNDS = 200 if os.environ.get("ATOLL_TEST_LONG") else 20
PORT = 9100
HOSTS = {"allowed.example": WEB, "other.example": OTHER}

# Writes the time to both hosts, on connections that stay and on new ones. The clock that all
# sandboxes have in common with the host is that of the day.
WRITER = r"""
import socket, sys, threading, time
def write(host, lines):
    while True:
        try:
            with socket.create_connection((host, 9100), timeout=2) as s:
                for i in range(lines):
                    s.sendall(b"%d\n" % time.time_ns()); time.sleep(0.002)
        except OSError: time.sleep(0.002)
for host in ("allowed.example", "other.example"):
    for lines in (1, 1 << 40): threading.Thread(target=write, args=(host, lines)).start()
"""
# As many connections as there can be, none of which says anything.
HOLDER = r"""
import resource, socket, time
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
held = []
while True:
    try:
        if len(held) < 700: held.append(socket.create_connection(("allowed.example", 9100), 1))
        else: time.sleep(1)
    except OSError: time.sleep(0.05)
"""


class TimedInternet(fake_internet.FakeInternet):
    def enter(self):
        super().enter()
        self.written = {WEB: [], OTHER: []}  # by address: when what arrived was written
        for address in self.written:
            self.serve(address, PORT, self.keep)

    def keep(self, connection, address):
        for line in connection.makefile("rb"):
            if line.endswith(b"\n"):
                self.written[address].append(int(line))

    def since(self, address, began):
        return [one for one in list(self.written[address]) if one > began]


INTERNET = TimedInternet()


def network_of(hosts):
    return {"rules": [{"allow": host, "ports": [PORT], "protocol": "tcp"} for host in hosts]}


class Changes(egress_case.EgressCase):
    limit = None  # of descriptors of egress

    def setUp(self):
        if self.limit:
            self.set_limit(self.limit)

    @property
    def egress_pid(self):
        lock = os.path.join(self.atoll.run_directory, "egress", "egress.lock")
        return atoll.wait_for("egress", lambda: atoll.lock_holder(lock))

    def set_limit(self, count):
        """As egress's own user, who may lower it on any host; 0: as high as it was."""
        pid = self.egress_pid
        status = atoll.read(f"/proc/{pid}/status")
        uid, gid = (int(re.search(rf"\n{kind}:\s+(\d+)", status)[1]) for kind in ("Uid", "Gid"))
        code = (f"import resource as r; most = r.prlimit({pid}, r.RLIMIT_NOFILE)[1]\n"
                f"r.prlimit({pid}, r.RLIMIT_NOFILE, ({count} or most, most))")
        subprocess.run(["/usr/bin/python3", "-c", code], user=uid, group=gid, extra_groups=[],
                       check=True)

    def write(self, sandbox):
        self.atoll.start(sandbox, ["python3", "-c", WRITER], timeout_ms=3_600_000)

    def change(self, sandbox, hosts):
        """The status of the answer, and when it was there."""
        answer = self.atoll.request("PATCH", f"/v1/sandboxes/{sandbox}",
                                    {"network": network_of(hosts)})
        return answer, time.time_ns()

    def wait_written(self, hosts, since):
        for host in hosts:
            atoll.wait_for(f"bytes at {host}", lambda: INTERNET.since(HOSTS[host], since))

    def check_nothing(self, hosts, since):
        """Of what is not among the hosts."""
        for host, address in HOSTS.items():
            if host not in hosts:
                late = INTERNET.since(address, since)
                self.assertEqual(late, [], f"{host}, {len(late)} times after the answer")

    def one_round(self, sandbox, rng, wanted=(200,)):
        hosts = [host for host in HOSTS if rng.random() < 0.5]
        answer, now = self.change(sandbox, hosts)
        self.assertIn(answer.status, wanted, answer.body)
        if answer.status == 200:
            self.wait_written(hosts, now)
        time.sleep(0.02)  # in which something might arrive
        self.check_nothing(hosts, now)
        return answer.status


class FewDescriptors(Changes):
    limit = 1100

    def ask(self, method, path, body=None):
        """As another tenant."""
        return self.atoll.request(method, "/v1/sandboxes" + path, body, key=self.other)

    def hold_all(self):
        """Sandboxes of another tenant that take what they can, until they are refused."""
        made = self.atoll.cli("key", "create", "--tenant", "greedy", "--name", f"of-{self.limit}")
        self.other = made.stdout.decode().split()[-1]
        holders = []
        for _ in range(2):
            box = self.ask("POST", "", {"template": "python", "network": network_of(HOSTS)})
            self.assertEqual(box.status, 201, box.body)
            holders.append(box.json["id"])
            body = {"cmd": ["python3", "-c", HOLDER], "timeout_ms": 3_600_000}
            self.assertEqual(self.ask("POST", f"/{holders[-1]}/execs", body).status, 202)
        for one in holders:
            self.addCleanup(self.ask, "DELETE", f"/{one}")
            atoll.wait_for("connections that are refused", lambda: b'"too_many_connections"'
                           in self.ask("GET", f"/{one}/egress?cursor=0").body)
        return holders

    def test_a_change_holds_when_it_is_answered(self):
        rng = random.Random(23)
        holders = self.hold_all()
        writer = self.atoll.create(network=network_of(HOSTS))["id"]
        self.write(writer)
        for _ in range(ROUNDS):
            self.one_round(writer, rng)
            created = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
            self.assertEqual(created.status, 201, created.body)
            self.atoll.delete(created.json["id"])
        # Those that hold too much are held to a change as well.
        for one in holders:
            answer = self.ask("PATCH", f"/{one}", {"network": network_of([])})
            self.assertEqual(answer.status, 200, answer.body)
            self.assertEqual(answer.json["network"].get("rules", []), [])
        atoll.wait_for("nothing to be held", lambda: len(
            [one for one in list(INTERNET.open) if one[0] == PORT]) <= 2 * len(HOSTS) + 2)


class VeryFewDescriptors(FewDescriptors):
    limit = 256


class FullOfSandboxes(Changes):
    limit = 256

    def test_a_create_beyond_what_egress_can_hold_is_refused_and_leaves_nothing(self):
        first = self.atoll.create(network=network_of(HOSTS))["id"]
        count, answer = 1, None
        while count < 30:
            answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
            if answer.status != 201:
                break
            count += 1
        self.assertEqual((answer.status, answer.json["error"]["code"]), (503, "host_full"))
        self.assertIn("Retry-After", answer.headers)
        rows = self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]
        self.assertEqual({row["state"] for row in rows}, {"running"}, rows)
        self.assertEqual(len(rows), count)
        self.assertEqual(self.change(first, [])[0].status, 200)
        self.atoll.delete(rows[-1]["id"])
        self.atoll.create()


class NoneLeft(Changes):
    def test_a_message_whose_descriptors_are_lost_is_answered(self):
        first = self.atoll.create(network=network_of(HOSTS))["id"]
        used = len(os.listdir(f"/proc/{self.egress_pid}/fd"))
        self.set_limit(used + 3)  # there is room by the count, but not for seven sockets
        self.addCleanup(self.set_limit, 0)
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "python"})
        self.assertEqual((answer.status, answer.json["error"]["code"]), (503, "host_full"))
        rows = self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]
        self.assertEqual([row["id"] for row in rows if row["state"] == "running"], [first])
        self.assertEqual(self.change(first, ["allowed.example"])[0].status, 200)
        self.set_limit(0)
        self.atoll.create()
        self.write(first)
        self.wait_written(["allowed.example"], time.time_ns())


class Dead(Changes):
    def test_a_change_holds_when_it_is_answered(self):
        rng = random.Random(6)
        writer = self.atoll.create(network=network_of(HOSTS))["id"]
        self.write(writer)
        refused = 0
        for i in range(ROUNDS):
            if i % 2:
                os.kill(self.egress_pid, signal.SIGKILL)
            refused += self.one_round(writer, rng, wanted=(200, 503)) == 503
        self.assertGreater(refused, 0)
        atoll.wait_for("egress to be told", lambda: self.change(writer, HOSTS)[0].status == 200)
        self.wait_written(HOSTS, time.time_ns())


class StandingStill(Changes):
    def setUp(self):
        self.writer = self.atoll.create(network=network_of(["allowed.example"]))["id"]
        self.write(self.writer)
        self.wait_written(["allowed.example"], time.time_ns())

    def test_a_change_is_refused_and_the_old_policy_never_serves_again(self):
        for hosts in ([], ["other.example"]):
            pid = self.egress_pid
            os.kill(pid, signal.SIGSTOP)
            answer, now = self.change(self.writer, hosts)
            self.assertEqual((answer.status, answer.json["error"]["code"]),
                             (503, "egress_unavailable"))
            self.wake(pid)
            if hosts:
                self.wait_written(hosts, now)
            self.check_served(hosts, now)

    def test_also_when_it_cannot_even_be_told(self):
        # More than a socket holds: what comes last is not sent.
        large = [{"allow": f"{'x' * 60}{i}.{'y' * 60}.{'z' * 60}.example", "ports": [PORT]}
                 for i in range(200)]
        pid = self.egress_pid
        os.kill(pid, signal.SIGSTOP)
        for _ in range(4):
            answer = self.atoll.request("PATCH", f"/v1/sandboxes/{self.writer}", {
                "network": {"rules": network_of(["allowed.example"])["rules"] + large}})
            self.assertEqual(answer.status, 503, answer.body)
        answer, now = self.change(self.writer, ["other.example"])
        self.assertEqual(answer.status, 503, answer.body)
        self.wake(pid)
        self.wait_written(["other.example"], now)
        self.check_served(["other.example"], now)

    @staticmethod
    def wake(pid):
        try:
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass  # replaced meanwhile

    def check_served(self, hosts, since):
        """The same policy is in force once more, and nothing came in between."""
        atoll.wait_for("egress to answer", lambda: self.change(self.writer, hosts)[0].status == 200)
        self.check_nothing(hosts, since)
        self.assertEqual(self.change(self.writer, ["allowed.example"])[0].status, 200)
        self.wait_written(["allowed.example"], time.time_ns())


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main()
