"""What the owner of a host decides for all sandboxes, against a fake internet: the ceiling, and a
proxy through which everything is dialled."""
import atexit
import base64
import os
import signal
import socket
import tempfile
import threading

import atoll
import egress_case
import fake_internet
from fake_internet import OTHER, WEB, run

PROXY_PORT = 3128
CEILING = """
allow = ["allowed.example", "internal.example", "loop.example", "10.9.0.0/16:80", "127.0.0.1:80"]
"""


class HostInternet(fake_internet.FakeInternet):
    """With an /etc of its own, and a proxy at OTHER."""

    def enter(self):
        super().enter()
        self.asked = []
        etc = os.path.join(self.directory, "etc")
        os.mkdir(etc)
        run("mount", "-t", "tmpfs", "tmpfs", etc)
        atexit.register(run, "umount", "--lazy", etc)  # before its directory is removed
        for name in ("upper", "work"):
            os.mkdir(os.path.join(etc, name), 0o755)
        resolver = atoll.read("/etc/resolv.conf")
        run("mount", "-t", "overlay", "overlay", "-o",
            f"lowerdir=/etc,upperdir={etc}/upper,workdir={etc}/work", "/etc")
        os.makedirs("/etc/atoll", exist_ok=True)
        if os.path.lexists("/etc/resolv.conf"):
            os.unlink("/etc/resolv.conf")
        self.write("/etc/resolv.conf", resolver)
        self.serve(OTHER, PROXY_PORT, self.proxy)

    @staticmethod
    def write(path, text, mode=0o644):
        with open(path, "w") as file:
            file.write(text)
        os.chmod(path, mode)

    def proxy(self, connection, _):
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        lines = head.decode().split("\r\n")
        self.asked.append((lines[0], [line for line in lines if line.startswith("Proxy-")]))
        name, port = lines[0].split()[1].rsplit(":", 1)
        known = fake_internet.NAMES.get(name, [name])
        if name == "refused.example":
            connection.sendall(b"HTTP/1.1 403 No\r\n\r\n")
            return
        with socket.create_connection((known[0], int(port))) as server:
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\n")
            pump = threading.Thread(target=self.copy, args=(server, connection), daemon=True)
            pump.start()
            self.copy(connection, server)
            pump.join()

    @staticmethod
    def copy(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


INTERNET = HostInternet()


class Ceiling(egress_case.EgressCase):
    @classmethod
    def setUpClass(cls):
        INTERNET.write("/etc/atoll/egress.toml", CEILING)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        os.unlink("/etc/atoll/egress.toml")
        super().tearDownClass()

    def test_nothing_goes_beyond_it(self):
        sandbox = self.atoll.create(network={"allow": [
            "allowed.example", "other.example", "internal.example", "loop.example", "10.0.0.0/8:80",
            "127.0.0.0/8", "20.0.0.81"]})["id"]
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/"))
        self.assertIn("FAILED", self.fetch(sandbox, "http://other.example/"))
        self.assertIn("FAILED", self.fetch(sandbox, f"http://{OTHER}/"))
        # Both have to allow a range: for an address by itself, and for a name that has it.
        self.assertIn("10.9.9.9", self.fetch(sandbox, "http://10.9.9.9/"))
        self.assertIn("10.9.9.9", self.fetch(sandbox, "http://internal.example/"))
        self.assertIn("127.0.0.1", self.fetch(sandbox, "http://loop.example/"))
        self.assertIn("above_ceiling", self.reasons(sandbox))
        self.change_network(sandbox, {"allow": ["internal.example", "loop.example"]})
        for name in ("internal", "loop"):
            self.assertIn("FAILED", self.fetch(sandbox, f"http://{name}.example/"), name)


LOGIN = {"value": "tenant:own word", "hosts": ["own.proxy.example"]}
OWN = {"proxy": "own.proxy.example:3128", "credentials": "PROXY_LOGIN"}
OWN_WORD = "Proxy-Authorization: Basic " + base64.b64encode(b"tenant:own word").decode()


class OwnUpstream(egress_case.EgressCase):
    """A proxy that a policy names."""

    @classmethod
    def setUpClass(cls):
        fake_internet.NAMES["own.proxy.example"] = [OTHER]
        fake_internet.NAMES["inner.proxy.example"] = ["10.9.9.9"]
        super().setUpClass()

    def setUp(self):
        answer = self.atoll.request("PUT", "/v1/secrets/PROXY_LOGIN", LOGIN)
        self.assertIn(answer.status, (200, 201), answer.body)

    def test_it_is_asked_for_what_the_policy_allows(self):
        asked, questions = len(INTERNET.asked), len(INTERNET.questions)
        network = {"allow": ["allowed.example"], "upstream": OWN}
        created = self.atoll.create(network=network)
        sandbox = created["id"]
        self.assertEqual(created["network"], network)
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        self.assertIn(WEB, self.fetch(sandbox, "https://allowed.example/b"))
        self.assertIn("FAILED", self.fetch(sandbox, "http://evil.example/"))
        self.assertEqual(INTERNET.asked[asked:], [
            (f"CONNECT allowed.example:{port} HTTP/1.1", [OWN_WORD]) for port in (80, 443)])
        self.assertEqual(set(INTERNET.questions[questions:]), {"own.proxy.example"})
        rows = [row for row in self.rows(sandbox) if row.get("via") == "upstream"]
        self.assertEqual({row["address"] for row in rows}, {OTHER})
        body = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}/egress").body
        self.assertNotIn(b"own word", body)
        done = self.atoll.execute(sandbox, ["env"])
        self.assertNotIn("PROXY_LOGIN", done["stdout"])

    def test_a_change_takes_effect_at_once(self):
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        asked = len(INTERNET.asked)
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        self.assertEqual(len(INTERNET.asked), asked)
        self.change_network(sandbox, {"allow": ["allowed.example"], "upstream": OWN})
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        self.assertEqual(len(INTERNET.asked), asked + 1)
        answer = self.atoll.request("DELETE", "/v1/secrets/PROXY_LOGIN")
        self.assertEqual(answer.status, 204)
        self.assertNotIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        self.assertIn("upstream_failed", self.reasons(sandbox))
        self.assertEqual(len(INTERNET.asked), asked + 1)

    def test_it_is_no_way_to_what_is_not_the_internet(self):
        for proxy in ("inner.proxy.example:3128", "10.9.9.9:3128", "127.0.0.1:80",
                      "169.254.169.254:80"):
            sandbox = self.atoll.create(network={"allow": ["allowed.example"],
                                                 "upstream": {"proxy": proxy}})["id"]
            connections = len(INTERNET.connections)
            self.assertNotIn(WEB, self.fetch(sandbox, "http://allowed.example/"))
            self.assertEqual(len(INTERNET.connections), connections, proxy)
            self.assertIn("address_refused", self.reasons(sandbox), proxy)

    def test_a_secret_goes_to_its_own_host_alone(self):
        fake_internet.NAMES["foreign.proxy.example"] = [OTHER]
        asked = len(INTERNET.asked)
        sandbox = self.atoll.create(network={"allow": ["allowed.example"], "upstream": {
            **OWN, "proxy": "foreign.proxy.example:3128"}})["id"]
        self.assertNotIn(WEB, self.fetch(sandbox, "http://allowed.example/"))
        self.assertEqual(len(INTERNET.asked), asked)
        self.assertIn("upstream_failed", self.reasons(sandbox))

    def test_what_is_wrong_is_refused(self):
        rule = "invalid_network_rule"
        for upstream, code, field in (({"proxy": "a.example"}, rule, ".proxy"),
                                      ({"credentials": "A"}, rule, ".proxy"),
                                      ({"proxy": "a.example:1", "more": "x"}, "unknown_field",
                                       ".more"),
                                      ({"proxy": "10.1.1.1:1", "credentials": "A"}, rule, ".proxy"),
                                      ({**OWN, "credentials": "NONE"}, "secret_not_found",
                                       ".credentials")):
            answer = self.atoll.request("POST", "/v1/sandboxes", {
                "template": "python", "network": {"allow": [], "upstream": upstream}})
            self.assertGreaterEqual(answer.status, 400, upstream)
            self.assertEqual((answer.json["error"]["code"], answer.json["error"]["field"]),
                             (code, "network.upstream" + field), answer.body)


class UpstreamOfATenantOrATemplate(egress_case.EgressCase):
    """A proxy that all sandboxes of a tenant have, or all of a template."""

    @classmethod
    def setUpClass(cls):
        fake_internet.NAMES["own.proxy.example"] = [OTHER]
        fake_internet.NAMES["other.proxy.example"] = [OTHER]
        super().setUpClass()

    def setUp(self):
        answer = self.atoll.request("PUT", "/v1/secrets/PROXY_LOGIN", LOGIN)
        self.assertIn(answer.status, (200, 201), answer.body)

    def tearDown(self):
        self.set_upstream(None)

    def set_upstream(self, upstream):
        answer = self.atoll.request("PATCH", "/v1/tenants/local", {"upstream": upstream})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.json.get("upstream"), upstream)

    def asked_by(self, sandbox):
        before = len(INTERNET.asked)
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        return INTERNET.asked[before:]

    def test_sandboxes_that_are_there_and_that_come_go_through_it(self):
        asked = [("CONNECT allowed.example:80 HTTP/1.1", [OWN_WORD])]
        network = {"allow": ["allowed.example"]}
        old, shut = self.atoll.create(network=network)["id"], self.atoll.create()["id"]
        self.assertEqual(self.asked_by(old), [])
        self.set_upstream(OWN)
        new = self.atoll.create(network=network)
        self.assertEqual(new["network"], network, "what it asked for itself")
        self.assertEqual(self.asked_by(old), asked)
        self.assertEqual(self.asked_by(new["id"]), asked)
        self.assertIn("FAILED", self.fetch(shut, "http://allowed.example/a"))
        own = self.atoll.create(network={**network, "upstream": {
            "proxy": "other.proxy.example:3128"}})["id"]
        self.assertEqual(self.asked_by(own), [("CONNECT allowed.example:80 HTTP/1.1", [])])
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        self.atoll.wait_ready()
        self.assertEqual(self.asked_by(old), asked, "after a restart")
        self.set_upstream(None)
        self.assertEqual(self.asked_by(old), [])

    def test_what_is_wrong_is_refused_and_changes_nothing(self):
        self.set_upstream(OWN)
        for upstream, code, field in (
                ("own.proxy.example:3128", "invalid_field", "upstream"),
                ({"proxy": "own.proxy.example"}, "invalid_field", "upstream.proxy"),
                ({"credentials": "PROXY_LOGIN"}, "missing_field", "upstream.proxy"),
                ({**OWN, "more": 1}, "unknown_field", "upstream.more"),
                ({**OWN, "credentials": "NONE"}, "secret_not_found", "upstream.credentials")):
            answer = self.atoll.request("PATCH", "/v1/tenants/local", {"upstream": upstream})
            self.assertEqual(answer.status, 404 if code == "secret_not_found" else 400, upstream)
            error = answer.json["error"]
            self.assertEqual((error["code"], error["field"]), (code, field), answer.body)
        listed = self.atoll.request("GET", "/v1/tenants").json["tenants"]
        self.assertEqual(listed[0]["upstream"], OWN)

    def test_a_template_names_one(self):
        manifest = atoll.read(os.path.join(atoll.IMAGE, "template.toml"))
        manifest = manifest.replace('name = "python"', 'name = "behind-a-proxy"', 1)
        manifest = manifest.replace("allow = []", 'allow = ["allowed.example"]\n[network.upstream]'
                                    '\nproxy = "own.proxy.example:3128"'
                                    '\ncredentials = "PROXY_LOGIN"', 1)
        with tempfile.TemporaryDirectory() as directory:
            for file in ("digest", "image.erofs"):
                os.symlink(os.path.join(atoll.IMAGE, file), os.path.join(directory, file))
            with open(os.path.join(directory, "template.toml"), "w") as file:
                file.write(manifest)
            self.atoll.cli("template", "add", directory)
        sandbox = self.atoll.create(template="behind-a-proxy")["id"]
        self.assertEqual(self.asked_by(sandbox),
                         [("CONNECT allowed.example:80 HTTP/1.1", [OWN_WORD])])


class OwnUpstreamBeneathACeiling(egress_case.EgressCase):
    @classmethod
    def setUpClass(cls):
        INTERNET.write("/etc/atoll/egress.toml", 'allow = ["allowed.example"]\n')
        fake_internet.NAMES["own.proxy.example"] = [OTHER]
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        os.unlink("/etc/atoll/egress.toml")
        super().tearDownClass()

    def test_the_ceiling_must_allow_it(self):
        asked = len(INTERNET.asked)
        sandbox = self.atoll.create(network={"allow": ["allowed.example"], "upstream": {
            "proxy": "own.proxy.example:3128"}})["id"]
        self.assertNotIn(WEB, self.fetch(sandbox, "http://allowed.example/"))
        self.assertEqual(len(INTERNET.asked), asked)
        self.assertIn("above_ceiling", self.reasons(sandbox))


class UpstreamOfTheEnvironment(egress_case.EgressCase):
    @classmethod
    def setUpClass(cls):
        INTERNET.write("/etc/atoll/upstream.toml", 'proxy = "environment"\n')
        fake_internet.NAMES["proxy.corp.example"] = [OTHER]
        os.environ["https_proxy"] = "http://host:its%20word@proxy.corp.example:3128/"
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        del os.environ["https_proxy"]
        os.unlink("/etc/atoll/upstream.toml")
        super().tearDownClass()

    def test_egress_dials_as_this_hosts_programs_do(self):
        asked = len(INTERNET.asked)
        sandbox = self.atoll.create(network={"allow": ["allowed.example"]})["id"]
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        word = "Proxy-Authorization: Basic " + base64.b64encode(b"host:its word").decode()
        self.assertEqual(INTERNET.asked[asked:],
                         [("CONNECT allowed.example:80 HTTP/1.1", [word])])
        self.assertNotIn("word", self.atoll.execute(sandbox, ["env"])["stdout"])


class Upstream(egress_case.EgressCase):
    @classmethod
    def setUpClass(cls):
        INTERNET.write("/etc/atoll/credentials", "atoll:open sesame\n", 0o640)
        run("chgrp", "atoll-egress", "/etc/atoll/credentials")
        INTERNET.write("/etc/atoll/upstream.toml", 'proxy = "proxy.corp.example:3128"\n'
                                                   'credentials = "/etc/atoll/credentials"\n')
        fake_internet.NAMES["proxy.corp.example"] = [OTHER]
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        os.unlink("/etc/atoll/upstream.toml")
        super().tearDownClass()

    def test_everything_is_asked_of_it_and_decided_here(self):
        connections, questions = len(INTERNET.connections), len(INTERNET.questions)
        asked = len(INTERNET.asked)
        sandbox = self.atoll.create(network={"allow": [
            "allowed.example", "refused.example", "10.9.9.9:80"]})["id"]
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        self.assertIn(WEB, self.fetch(sandbox, "https://allowed.example/b"))
        self.assertIn("10.9.9.9", self.fetch(sandbox, "http://10.9.9.9/"))
        for url in ("http://refused.example/", "http://evil.example/", "http://20.0.0.80/"):
            self.assertIn("FAILED", self.fetch(sandbox, url), url)
        word = "Proxy-Authorization: Basic " + base64.b64encode(b"atoll:open sesame").decode()
        self.assertEqual(INTERNET.asked[asked:], [
            (f"CONNECT {to} HTTP/1.1", [word])
            for to in ("allowed.example:80", "allowed.example:443", "10.9.9.9:80",
                       "refused.example:80")])
        self.assertEqual(set(INTERNET.questions[questions:]), {"proxy.corp.example"})
        # From egress itself only the proxy was dialled; the rest is the proxy's own.
        dialled = INTERNET.connections[connections:]
        self.assertEqual(dialled.count((OTHER, PROXY_PORT)), 4)
        self.assertEqual(len(dialled), 7)
        rows = [row for row in self.rows(sandbox) if row.get("via") == "upstream"]
        self.assertEqual({row["address"] for row in rows}, {OTHER})
        self.assertIn("upstream_refused", self.reasons(sandbox))
        body = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}/egress").body
        self.assertNotIn(b"sesame", body)

    def test_a_proxy_of_the_policy_is_asked_of_it(self):
        fake_internet.NAMES["own.proxy.example"] = [OTHER]
        asked = len(INTERNET.asked)
        sandbox = self.atoll.create(network={"allow": ["allowed.example"], "upstream": {
            "proxy": "own.proxy.example:3128"}})["id"]
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        self.assertEqual([line for line, _ in INTERNET.asked[asked:]],
                         ["CONNECT own.proxy.example:3128 HTTP/1.1",
                          "CONNECT allowed.example:80 HTTP/1.1"])
        self.assertEqual(INTERNET.asked[-1][1], [], "the host's word is for the host's proxy")

    def test_what_goes_through_it_is_inspected_too(self):
        sandbox = self.atoll.create(network={"rules": [
            {"allow": "allowed.example", "inspect": True, "paths": ["/a"]}]})["id"]
        asked = len(INTERNET.asked)
        self.assertIn(WEB, self.fetch(sandbox, "http://allowed.example/a"))
        self.assertIn("403", self.fetch(sandbox, "http://allowed.example/b"))
        # TLS is spoken with the server behind it, which has no certificate to be believed by.
        self.assertIn("502", self.fetch(sandbox, "https://allowed.example/a"))
        self.assertEqual([line for line, _ in INTERNET.asked[asked:]],
                         ["CONNECT allowed.example:80 HTTP/1.1",
                          "CONNECT allowed.example:443 HTTP/1.1"])
        self.assertLessEqual({"request_not_allowed", "certificate_refused"},
                             self.reasons(sandbox))


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main()
