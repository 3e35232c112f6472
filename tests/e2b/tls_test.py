"""Ports by their names over TLS: a domain of the operator's, a wildcard certificate that this test
makes, and E2B's Python packages with no other setting than the domain."""
import http.client
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest

import clients

clients.enter_python()

import door  # noqa: E402
import e2b  # noqa: E402

DOMAIN = "boxes.test"


def make_certificate(directory, *names):
    certificate, key = (os.path.join(directory, name) for name in ("cert.pem", "key.pem"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + names[0],
                    "-addext", "subjectAltName=" + ",".join("DNS:" + name for name in names),
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    os.chmod(directory, 0o755)
    os.chmod(key, 0o644)  # atolld is not root
    return certificate, key


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Tls(door.DoorTest):
    @classmethod
    def up_options(cls):
        cls.directory = tempfile.mkdtemp(prefix="atoll-tls-")
        cls.certificate, key = make_certificate(cls.directory, DOMAIN, "*." + DOMAIN)
        cls.port = free_port()
        return ["--domain", DOMAIN, "--tls-listen", f"127.0.0.1:{cls.port}",
                "--tls-certificate", cls.certificate, "--tls-key", key]

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        shutil.rmtree(cls.directory)

    def connect(self, host):
        context = ssl.create_default_context(cafile=self.certificate)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        connection = http.client.HTTPConnection(host, timeout=20)
        connection.sock = context.wrap_socket(plain, server_hostname=host.split(":")[0])
        return connection

    def get(self, host, path="/", **headers):
        connection = self.connect(host)
        connection.request("GET", path, headers={"Host": host, **headers})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body

    def test_a_port_is_reached_by_the_name_that_clients_are_told(self):
        sandbox = e2b.Sandbox.create(timeout=120)
        self.addCleanup(sandbox.kill)
        host = sandbox.get_host(8000)
        self.assertEqual(host, f"8000-{sandbox.sandbox_id}.{DOMAIN}:{self.port}")
        sandbox.files.write("/tmp/www/index.html", "served " * 100000)
        sandbox.commands.run("python3 -m http.server 8000 --directory /tmp/www", background=True)
        token = {"e2b-traffic-access-token": sandbox.traffic_access_token}
        door.atoll.wait_for("the server", lambda: self.get(host, **token)[0] == 200)
        self.assertEqual(self.get(host, **token), (200, b"served " * 100000))
        self.assertEqual(self.get(host)[0], 401)

    def test_the_control_plane_is_at_api_of_the_domain(self):
        key = {"X-API-Key": os.environ["E2B_API_KEY"]}
        self.assertEqual(self.get(f"api.{DOMAIN}:{self.port}", "/v2/sandboxes", **key)[0], 200)
        self.assertEqual(self.get(f"api.{DOMAIN}:{self.port}", "/v2/sandboxes")[0], 401)

    def test_keeps_a_connection_and_serves_hundreds_at_once(self):
        host = f"api.{DOMAIN}:{self.port}"
        key = {"X-API-Key": os.environ["E2B_API_KEY"], "Host": host}
        many = [self.connect(host) for _ in range(100)]
        for _ in range(3):
            for connection in many:
                connection.request("GET", "/v2/sandboxes", headers=key)
            for connection in many:
                answer = connection.getresponse()
                self.assertEqual((answer.status, answer.read()), (200, b"[]\n"))
        for connection in many:
            connection.close()

    def test_what_is_not_tls_is_dropped(self):
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as plain:
            plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertNotIn(b"200 OK", plain.recv(1000))

    def test_other_names_are_refused(self):
        self.assertEqual(self.get(f"api.{DOMAIN}:{self.port}", "/healthz")[0], 200)
        connection = self.connect(f"api.{DOMAIN}:{self.port}")
        connection.request("GET", "/healthz", headers={"Host": "evil.example"})
        self.assertEqual(connection.getresponse().status, 421)
        connection.close()


class BadFiles(unittest.TestCase):
    def test_atolld_says_what_is_wrong_and_does_not_start(self):
        with tempfile.TemporaryDirectory() as directory:
            one, two = os.path.join(directory, "1"), os.path.join(directory, "2")
            os.mkdir(one), os.mkdir(two)
            certificate, key = make_certificate(one, "a.test")
            _, other_key = make_certificate(two, "b.test")
            os.chmod(directory, 0o755)
            empty = os.path.join(directory, "empty")
            with open(empty, "w"):
                pass
            for files, said in (((certificate, other_key), "key"), ((empty, key), empty),
                                ((certificate, empty), empty),
                                ((os.path.join(directory, "no"), key), "no")):
                server = door.atoll.Atoll()
                try:
                    done = server.cli("up", "--detach", "--listen", "127.0.0.1:0",
                                      "--pool-size", "1GiB", "--tls-listen", "127.0.0.1:0",
                                      "--tls-certificate", files[0], "--tls-key", files[1],
                                      check=False)
                    log = door.atoll.read(os.path.join(server.directory, "atoll.log"))
                    self.assertNotEqual(done.returncode, 0, files)
                    self.assertIn("TLS", done.stderr.decode() + log)
                    self.assertIn(said, done.stderr.decode() + log)
                finally:
                    server.cli("down", check=False)
                    shutil.rmtree(server.directory)

    def test_the_options_belong_together(self):
        with tempfile.TemporaryDirectory() as directory:
            server = door.atoll.Atoll(directory)
            done = server.cli("up", "--tls-listen", "127.0.0.1:0", check=False)
        self.assertIn(b"belong together", done.stderr)


if __name__ == "__main__":
    door.atoll.main()
