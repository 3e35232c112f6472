"""Servers inside a sandbox, reached through …/ports: HTTP, WebSocket, private URLs, strangers."""
import http.client
import json
import os
import socket
import urllib.parse

import atoll

SERVER = r'''
import http.server, socketserver
class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        chunked = self.headers.get("Transfer-Encoding") == "chunked"
        body = self.rfile.read(length)
        while chunked:
            size = int(self.rfile.readline(), 16)
            body += self.rfile.read(size)
            self.rfile.readline()
            chunked = size > 0
        text = (self.command + " " + self.path + "\n" + str(self.headers)).encode() + body
        self.send_response(201)
        self.send_header("Set-Cookie", "stolen=1")
        self.send_header("NEL", '{"report_to": "x", "max_age": 9}')
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = answer
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", 8000), Server).serve_forever()
'''

UPGRADER = r'''
import socket
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", 8001)); server.listen()
while True:
    peer, _ = server.accept()
    head = b""
    while b"\r\n\r\n" not in head: head += peer.recv(1)
    peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n"
                 b"Connection: Upgrade\r\n\r\n")
    while True:
        data = peer.recv(100000)
        if not data: break
        peer.sendall(data.upper())
    peer.close()
'''

# Takes connections and says nothing; what it was sent stays unread.
SILENT = r'''
import socket, time
server = socket.create_server(("127.0.0.1", 8003), backlog=500)
held = []
while True: held.append(server.accept())
'''


class Ports(atoll.SystemTest):
    def setUp(self):
        self.sandbox = self.atoll.create()["id"]
        self.base = f"/v1/sandboxes/{self.sandbox}/ports"
        for code in (SERVER, UPGRADER):
            self.atoll.start(self.sandbox, ["python3", "-c", code], timeout_ms=600_000)

        def listening():
            found = self.atoll.request("GET", self.base).json["ports"]
            return {8000, 8001} <= {each["port"] for each in found}
        atoll.wait_for("both servers to listen", listening)

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def test_requests_arrive_without_what_is_private(self):
        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            body = None if method in ("GET", "OPTIONS") else b"x" * 300_000
            answer = self.atoll.request(method, self.base + "/8000/a%20b/c?d=e", body, headers={
                "Cookie": "mine=1", "Content-Type": "text/plain", "User-Agent": "test"})
            self.assertEqual(answer.status, 201, answer.body[:300])
            text = answer.body.decode()
            self.assertTrue(text.startswith(f"{method} /a%20b/c?d=e\n"), text[:100])
            self.assertIn("User-Agent: test", text)
            self.assertIn("Host: localhost:8000", text)
            self.assertTrue(text.endswith("x" * 300_000 if body else "\n"))
            for private in ("Authorization", "Bearer", "Cookie", self.atoll.key):
                self.assertNotIn(private, text)
            self.assertIsNone(answer.headers["Set-Cookie"])
            self.assertIsNone(answer.headers["NEL"], "it would hold for the API's origin")
            self.assertEqual(answer.headers["ETag"], '"1"')
            self.assertTrue(answer.headers["Content-Security-Policy"].startswith("sandbox "))
            self.assertNotIn("allow-same-origin", answer.headers["Content-Security-Policy"])

    def connection(self):
        host, port = self.atoll.address.rsplit(":", 1)
        return http.client.HTTPConnection(host, int(port), timeout=30)

    def status(self, path):
        connection = self.connection()
        connection.request("GET", path)
        status = connection.getresponse().status
        connection.close()
        return status

    def test_private_urls_open_one_port_for_a_time(self):
        def sign(milliseconds):
            signed = self.atoll.request("POST", self.base,
                                        {"port": 8000, "expires_in_ms": milliseconds})
            self.assertEqual(signed.status, 201)
            return signed.json["url"].split(self.atoll.address, 1)[1]
        path, short = sign(600_000), sign(1000)
        self.assertEqual(self.status(path + "relative/link"), 201)
        self.assertEqual(self.status(path.replace("/8000~", "/8001~")), 401)
        self.assertEqual(self.status(path.replace("~1-", "~2-")), 401)
        self.assertEqual(self.status(path[:-4] + path[-3:]), 401)
        other = self.atoll.create()["id"]
        self.assertEqual(self.status(path.replace(self.sandbox, other)), 401)
        self.atoll.delete(other)
        for elsewhere in ("", "/execs", "/files/etc/passwd"):
            self.assertEqual(self.status(f"/v1/sandboxes/{self.sandbox}{elsewhere}"), 401)
        atoll.wait_for("the time of the other to be over", lambda: self.status(short) == 401)
        self.assertEqual(self.status(path), 201)

    def test_an_upgrade_becomes_a_tunnel(self):
        host, port = self.atoll.address.rsplit(":", 1)
        with socket.create_connection((host, int(port)), timeout=30) as peer:
            peer.sendall((f"GET {self.base}/8001/ HTTP/1.1\r\nHost: localhost\r\n"
                          f"Authorization: Bearer {self.atoll.key}\r\nUpgrade: echo\r\n"
                          "Connection: Upgrade\r\n\r\n").encode())
            head = b""
            while b"\r\n\r\n" not in head:
                head += peer.recv(1)
            self.assertTrue(head.startswith(b"HTTP/1.1 101 "), head)
            data = os.urandom(200_000).hex().encode()
            received = b""
            peer.settimeout(30)
            for start in range(0, len(data), 50_000):
                peer.sendall(data[start:start + 50_000])
                while len(received) < start + 50_000:
                    received += peer.recv(100_000)
            self.assertEqual(received, data.upper())

    def open_connections(self):
        """To the silent server, as the kernel inside counts them."""
        code = ("print(sum(f[1].endswith(':1F43') and f[3] == '01' "
                "for f in map(str.split, open('/proc/net/tcp'))))")
        return int(self.atoll.python(self.sandbox, code)["stdout"])

    def test_vanished_clients_leave_no_connection(self):
        self.atoll.start(self.sandbox, ["python3", "-c", SILENT], timeout_ms=600_000)

        def listening():
            found = self.atoll.request("GET", self.base).json["ports"]
            return 8003 in {each["port"] for each in found}
        atoll.wait_for("the silent server to listen", listening)
        host, port = self.atoll.address.rsplit(":", 1)
        forms = (("GET", "", ""), ("PUT", "Content-Length: 3\r\n", "abc"),
                 ("PUT", "Content-Length: 3\r\n", "a"),
                 ("GET", "Connection: upgrade\r\nUpgrade: x\r\n", ""))
        # More in all than a sandbox may have at a time (128).
        for _ in range(2):
            peers = []
            for number in range(100):
                method, fields, body = forms[number % len(forms)]
                peer = socket.create_connection((host, int(port)), timeout=30)
                peer.sendall((f"{method} {self.base}/8003/ HTTP/1.1\r\nHost: localhost\r\n"
                              f"Authorization: Bearer {self.atoll.key}\r\n{fields}\r\n{body}"
                              ).encode())
                peers.append(peer)
            atoll.wait_for("all to be connected", lambda: self.open_connections() == 100)
            for peer in peers:
                peer.close()
            atoll.wait_for("none to be left", lambda: self.open_connections() == 0)

    def at(self, host, path, key=None, origin=None):
        """A request to a host of that name: (status, body or code, headers)."""
        connection = self.connection()
        headers = {"Host": host, "Cookie": "mine=1"}
        headers.update({"Authorization": f"Bearer {key}"} if key else {})
        headers.update({"Origin": origin} if origin else {})
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        code = json.loads(text)["error"]["code"] if answer.status >= 400 else text
        return answer.status, code, answer.headers

    def test_a_port_has_a_host_of_its_own(self):
        site = f"localhost:{self.atoll.address.rsplit(':', 1)[1]}"
        signed = self.atoll.request("POST", self.base, {"port": 8000}, headers={"Host": site})
        url = urllib.parse.urlsplit(signed.json["host_url"])
        self.assertEqual(url.netloc, f"8000-{self.sandbox}.{site}")
        status, text, headers = self.at(url.netloc, f"/v1/keys?a=b&{url.query}&c")
        self.assertEqual(status, 201)
        # Every path is the port's, and the token stays here.
        self.assertTrue(text.startswith("GET /v1/keys?a=b&c\n"), text[:200])
        self.assertNotIn("atoll_token", text)
        self.assertNotIn("mine=1", text)
        self.assertIsNone(headers["Set-Cookie"])
        self.assertIsNotNone(headers["NEL"], "it holds for no other origin")
        self.assertTrue(headers["Content-Security-Policy"].startswith("sandbox "))
        self.assertEqual(headers["Referrer-Policy"], "no-referrer")
        self.assertEqual(self.at(url.netloc.upper(), "/x", key=self.atoll.key)[0], 201)
        self.assertEqual(self.at(url.netloc, f"/?{url.query}", origin=f"http://{url.netloc}")[0],
                         201)

    def test_what_the_host_of_a_port_does_not_open(self):
        host = f"8000-{self.sandbox}.localhost"
        signed = self.atoll.request("POST", self.base, {"port": 8000},
                                    headers={"Host": "localhost"})
        query = urllib.parse.urlsplit(signed.json["host_url"]).query
        self.assertIsNone(self.atoll.request("POST", self.base, {"port": 8000}).json["host_url"])
        self.assertEqual(self.at(host, "/")[:2], (401, "unauthenticated"))
        for other in (f"8001-{self.sandbox}.localhost", f"8000-{'s' + 'a' * 19}.localhost"):
            self.assertEqual(self.at(other, "/?" + query)[:2], (401, "unauthenticated"), other)
        self.assertEqual(self.at(host, "/?" + query[:-1] + "x")[:2], (401, "unauthenticated"))
        for name in (f"8000-{self.sandbox}.attacker.example", f"8000-{self.sandbox}.127.0.0.1",
                     f"8000-{self.sandbox}", f"x.8000-{self.sandbox}.localhost",
                     "8000-short.localhost", f"{self.sandbox}.localhost"):
            self.assertEqual(self.at(name, "/", key=self.atoll.key)[:2], (421, "wrong_host"), name)
        # A page of a port is no page of this server, nor of another port.
        for origin in ("http://attacker.example", f"http://8001-{self.sandbox}.localhost", "null"):
            self.assertEqual(self.at(host, "/?" + query, origin=origin)[:2], (403, "cross_site"))
        self.assertEqual(self.at("localhost", "/v1/sandboxes", key=self.atoll.key,
                                 origin=f"http://{host}")[:2], (403, "cross_site"))

    def test_what_cannot_be(self):
        answer = self.atoll.request("GET", self.base + "/9999/")
        self.assertEqual((answer.status, answer.json["error"]["code"]),
                         (502, "port_not_listening"))
        for port in ("0", "65536", "-1", "08000", "x", "8000x"):
            self.assertEqual(self.atoll.request("GET", f"{self.base}/{port}/").status, 400, port)
        self.atoll.start(self.sandbox, ["python3", "-c", "import socket\n"
                                        "s=socket.create_server(('127.0.0.1',8002))\n"
                                        "while 1:\n c,_=s.accept(); c.send(b'220 hi\\r\\n\\r\\n');"
                                        " c.close()"], timeout_ms=600_000)

        def answered():
            return self.atoll.request("GET", self.base + "/8002/").json["error"]["code"]
        atoll.wait_for("a stranger's answer", lambda: answered() == "bad_gateway")


if __name__ == "__main__":
    atoll.main()
