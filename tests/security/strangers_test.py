"""Who has no key, or one that is over: expired and tampered links, wrong keys, tokens and
signatures by the hundred, and connections by the thousand. Nobody of them is let in, and who has a
key is served meanwhile. `make test` prints how fast."""
import base64
import hashlib
import http.client
import itertools
import multiprocessing
import os
import resource
import select
import socket
import sys
import time
import urllib.parse

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import atoll  # noqa: E402

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
SOCKETS = 20_000 if LONG else 2_000
STRANGERS = 64 if LONG else 8
SANDBOXES = 300 if LONG else 4
SECONDS = 30 if LONG else 4
MOST_WRONG = 5_000  # a second brings ten back; nobody is that slow
SECRET = "/home/user/secret.txt"


def signed(path, operation, token, expiration=None, user=""):
    """The query of a link, as E2B's clients make it."""
    text = f"{path}:{operation}:{user}:{token}"
    text += "" if expiration is None else f":{expiration}"
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode().rstrip("=")
    query = {"path": path, "signature": "v1_" + digest}
    if user:
        query["username"] = user
    if expiration is not None:
        query["signature_expiration"] = str(expiration)
    return query


def files(query):
    return "/files?" + urllib.parse.urlencode(query)


class Caller:
    """From an address of its own, with header fields as given, also twice."""

    def __init__(self, server, address="127.0.0.1"):
        host, port = server.rsplit(":", 1)
        self.connection = http.client.HTTPConnection(host, int(port), timeout=120,
                                                     source_address=(address, 0))

    def send(self, method, target, fields=(), body=None):
        self.connection.putrequest(method, target)
        for name, value in fields:
            self.connection.putheader(name, value)
        if body is not None:
            self.connection.putheader("Content-Length", str(len(body)))
        self.connection.endheaders(body)
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.will_close:
            self.connection.close()
        return answer.status, text

    def close(self):
        self.connection.close()


class StrangersTest(atoll.SystemTest):
    shared = True

    def make_box(self):
        """A sandbox of E2B's clients: its id and token."""
        key = self.atoll.request("POST", "/v1/keys", {"e2b": True}).json["key"]
        made = self.atoll.request("POST", "/sandboxes", {"templateID": "python", "timeout": 900},
                                  headers={"X-API-Key": key})
        self.assertEqual(made.status, 201, made.body)
        box = made.json["sandboxID"].split("-")[0]
        self.addCleanup(self.atoll.delete, box)
        self.write(box, b"the secret")
        return box, made.json["envdAccessToken"]

    def write(self, box, content):
        answer = self.atoll.request("PUT", f"/v1/sandboxes/{box}/files{SECRET}", content,
                                    headers={"Content-Type": "application/octet-stream"})
        self.assertIn(answer.status, (200, 201), answer.body)

    def read(self, box):
        return self.atoll.request("GET", f"/v1/sandboxes/{box}/files{SECRET}").body

    def caller(self, address="127.0.0.1"):
        caller = Caller(self.atoll.address, address)
        self.addCleanup(caller.close)
        return caller


class Links(StrangersTest):
    def setUp(self):
        self.box, self.token = self.make_box()
        self.other, self.other_token = self.make_box()
        # One address for each, because wrong ones are counted.
        self.addresses = (f"127.0.{number // 250}.{number % 250 + 2}" for number in
                          itertools.count(1))

    def shown(self):
        """What may stand beside a link and must not help it: [(name, value)]."""
        name = "X-Access-Token"
        return {"nothing": [], "a wrong token": [(name, "junk")], "an empty token": [(name, "")],
                "another's token": [(name, self.other_token)],
                "two tokens": [(name, "junk"), (name, self.token)],
                "the right token twice": [(name, self.token)] * 2,
                "a wrong key": [("Authorization", "Bearer junk")],
                "a wrong traffic token": [("E2b-Traffic-Access-Token", "junk")]}

    def try_all(self, link, cases):
        """Sends it by every method with everything that may stand beside it: nobody is let in."""
        named = [("E2b-Sandbox-Id", self.box), ("E2b-Sandbox-Port", "49983")]
        for method, (what, fields), to in itertools.product(
                ("GET", "HEAD", "POST"), cases.items(), ([], named)):
            body = b"overwritten" if method == "POST" else None
            kind = [("Content-Type", "application/octet-stream")] if body else []
            caller = self.caller(next(self.addresses))
            with self.subTest(method=method, beside=what, named=bool(to)):
                status, text = caller.send(method, link("write" if body else "read"),
                                           to + kind + fields, body)
                self.assertNotIn(b"the secret", text)
                self.assertEqual(status, 401, text)
            caller.close()
        self.assertEqual(self.read(self.box), b"the secret")
        self.assertEqual(self.read(self.other), b"the secret")

    def test_one_that_is_over_admits_nobody(self):
        over = int(time.time()) - 600
        cases = {**self.shown(), "the right token": [("X-Access-Token", self.token)],
                 "a right key": [("Authorization", f"Bearer {self.atoll.key}")]}
        self.try_all(lambda operation: files(signed(SECRET, operation, self.token, over)), cases)
        for ends in ("soon", "", "-1", "99999999999999999999999"):
            query = signed(SECRET, "read", self.token, over)
            query["signature_expiration"] = ends
            self.assertEqual(self.caller().send("GET", files(query))[0], 401, ends)

    def test_one_that_is_tampered_with_admits_nobody(self):
        later = int(time.time()) + 600
        right = self.caller().send("GET", files(signed(SECRET, "read", self.token, later)))
        self.assertEqual(right, (200, b"the secret"))
        cases = self.shown()
        del cases["another's token"]  # by itself that is a request of its owner to that sandbox
        for change in ({"path": "/home/user/../user/secret.txt"}, {"username": "root"},
                       {"signature_expiration": str(later + 1)}, {"signature": "v1_" + "A" * 43}):
            def link(operation, change=change):
                return files({**signed(SECRET, operation, self.token, later), **change})
            self.try_all(link, cases)
        twice = files(signed(SECRET, "read", self.token, later)) + "&signature_expiration=1"
        self.assertEqual(self.caller().send("GET", twice)[0], 401)

    def test_a_path_that_is_too_long_is_refused_first(self):
        for named in ([], [("E2b-Sandbox-Id", self.box), ("E2b-Sandbox-Port", "49983")]):
            query = signed("/" + "a" * 4096, "read", self.token)
            status, text = self.caller().send("GET", files(query), named)
            self.assertEqual(status, 400, text)
            self.assertIn(b"4096", text)


class WrongOnes(StrangersTest):
    def setUp(self):
        self.box, self.token = self.make_box()
        self.named = [("E2b-Sandbox-Id", self.box), ("E2b-Sandbox-Port", "49983")]

    def kinds(self):
        token, code = "X-Access-Token", [("E2b-Sandbox-Id", self.box),
                                         ("E2b-Sandbox-Port", "49999")]
        wrong = files({**signed(SECRET, "read", self.token), "signature": "v1_x"})
        return {
            "keys": ("/v1/sandboxes", [("Authorization", "Bearer wrong")]),
            "keys of E2B's clients": ("/sandboxes", [("X-API-Key", "wrong")]),
            "tokens": ("/files?path=/x", [(token, "wrong")]),
            "tokens of a sandbox": ("/files?path=/x", self.named + [(token, "wrong")]),
            "signatures": (wrong, []),
            "signatures of a sandbox": (wrong, self.named),
            "traffic tokens": ("/contexts", code + [("E2b-Traffic-Access-Token", "wrong")]),
            "private URLs": (f"/v1/sandboxes/{self.box}/ports/8000~1-99999999999-wrong/", [])}

    def test_are_counted_by_address_whatever_they_are(self):
        for number, (kind, (target, fields)) in enumerate(self.kinds().items()):
            caller = self.caller(f"127.0.3.{number + 1}")
            statuses = []
            while 429 not in statuses:
                statuses.append(caller.send("GET", target, fields)[0])
                self.assertLess(len(statuses), MOST_WRONG, f"{kind} are not counted")
            self.assertGreaterEqual(statuses.count(401), 100, kind)
            self.assertEqual(set(statuses), {401, 429}, kind)
            # Who is right is served from the same address.
            right = caller.send("GET", files({"path": SECRET}),
                                self.named + [("X-Access-Token", self.token)])
            self.assertEqual(right, (200, b"the secret"), kind)
            by_link = caller.send("GET", files(signed(SECRET, "read", self.token)), self.named)
            self.assertEqual(by_link, (200, b"the secret"), kind)

    def test_a_link_that_was_right_before_is_served_all_the_same(self):
        link = files(signed(SECRET, "read", self.token))
        caller = self.caller("127.0.3.100")
        self.assertEqual(caller.send("GET", link)[0], 200)
        wrong = link.replace("signature=v1_", "signature=v1_x")
        self.assertTrue(any(caller.send("GET", wrong)[0] == 429 for _ in range(MOST_WRONG)))
        self.assertEqual(caller.send("GET", link), (200, b"the secret"))

    def test_cost_those_with_a_key_little_however_many_sandboxes_there_are(self):
        for _ in range(SANDBOXES):
            self.addCleanup(self.atoll.delete, self.atoll.create()["id"])
        wrong = files({**signed("/" + "a" * 4000, "read", self.token), "signature": "v1_x"})
        crowd = Crowd(STRANGERS, ask_wrongly, (self.atoll.address, wrong))
        self.addCleanup(crowd.stop)
        times = self.ask_while(crowd)
        seen = crowd.stop()
        self.assertTrue(all(kind in (401, 429) for counts in seen for kind in counts), seen)
        self.assertTrue(all(counts.get(429) for counts in seen), seen)
        print(f"{STRANGERS} strangers with {sum(sum(c.values()) for c in seen)} wrong links beside "
              f"{SANDBOXES + 1} sandboxes; {report(times)}", flush=True)

    def ask_while(self, crowd):
        """Requests with a key, each by a connection of its own, while the crowd is at it."""
        return ask_for(self, SECONDS, crowd)


def ask_for(case, seconds, crowd):
    """How long each request with a key took, in ms; each must be served."""
    crowd.wait_begun()
    times, end = [], time.monotonic() + seconds
    while time.monotonic() < end or not crowd.has_done():
        begin = time.monotonic()
        caller = Caller(case.atoll.address)
        status, text = caller.send("GET", "/v1/limits",
                                   [("Authorization", f"Bearer {case.atoll.key}")])
        caller.close()
        case.assertEqual(status, 200, text)
        times.append((time.monotonic() - begin) * 1000)
        time.sleep(0.005)
    return times


def report(times):
    times = sorted(times)
    return (f"{len(times)} requests with a key, all served, p50 {times[len(times) // 2]:.1f} ms, "
            f"p99 {times[len(times) * 99 // 100]:.1f} ms, longest {times[-1]:.0f} ms")


class Crowd:
    """So many processes that do the same until they are told to stop: work(number, tell, end)."""

    def __init__(self, count, work, arguments):
        context = multiprocessing.get_context("fork")
        self.end = context.Event()
        self.begun, self.done = context.Semaphore(0), context.Semaphore(0)
        self.counts = context.Queue()
        self.processes = [
            context.Process(target=self.run, args=(work, number, *arguments), daemon=True)
            for number in range(count)]
        self.finished, self.seen = 0, None
        for process in self.processes:
            process.start()

    def run(self, work, number, *arguments):
        self.counts.put(work(number, self, *arguments))

    def wait_begun(self):
        for _ in self.processes:
            self.begun.acquire()

    def has_done(self):
        """Whether each has got as far as it must."""
        while self.finished < len(self.processes) and self.done.acquire(block=False):
            self.finished += 1
        return self.finished == len(self.processes)

    def stop(self):
        """What each has counted."""
        if self.seen is None:
            self.end.set()
            self.seen = [self.counts.get() for _ in self.processes]
            for process in self.processes:
                process.join()
        return self.seen


def ask_wrongly(number, crowd, server, target):
    """{status: how often} of a link that fits nobody, until a while after the first 429."""
    caller, counts = Caller(server, f"127.0.4.{number + 1}"), {}
    crowd.begun.release()
    while not crowd.end.is_set():
        try:
            status, _ = caller.send("GET", target)
        except (OSError, http.client.HTTPException):
            caller.close()  # had to make room
            continue
        counts[status] = counts.get(status, 0) + 1
        if (status == 429 and counts[429] == 1) or counts.get(401) == MOST_WRONG:
            crowd.done.release()
    caller.close()
    return counts


def hold_connections(number, crowd, server, count):
    """So many that say nothing, opened again when they are closed: how often."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    host, port = server.rsplit(":", 1)
    poll, peers, opened = select.epoll(), {}, 0

    def open_one():
        peer = socket.socket()
        peer.setblocking(False)
        peer.bind((f"127.0.0.{number + 1}", 0))
        try:
            peer.connect((host, int(port)))
        except BlockingIOError:
            pass
        poll.register(peer, select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR)
        peers[peer.fileno()] = peer
    while opened < count:
        open_one()
        opened += 1
    crowd.begun.release()
    crowd.done.release()
    while not crowd.end.is_set():
        for descriptor, _ in poll.poll(0.1, 512):
            peers.pop(descriptor).close()
            open_one()
            opened += 1
    for peer in peers.values():
        peer.close()
    return {"opened": opened, "held": len(peers)}


class Connections(StrangersTest):
    def test_of_strangers_do_not_keep_out_who_has_a_key(self):
        crowd = Crowd(10, hold_connections, (self.atoll.address, SOCKETS // 10))
        self.addCleanup(crowd.stop)
        times = ask_for(self, SECONDS, crowd)
        seen = crowd.stop()
        print(f"{SOCKETS} sockets from ten addresses, opened {sum(c['opened'] for c in seen)} "
              f"times; {report(times)}", flush=True)
        self.assertEqual(self.atoll.request("GET", "/readyz").status, 200)


if __name__ == "__main__":
    atoll.main()
