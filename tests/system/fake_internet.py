"""A fake internet: a network and mount namespace of this process, in which `lo` has public
addresses. An authoritative DNS server, HTTP and HTTPS servers and a look-alike of a metadata
service answer there, and everything that arrives is written down. Nothing can leave it:
it has no wires."""
import atexit
import ctypes
import os
import shutil
import socket
import ssl
import struct
import subprocess
import tempfile
import threading

import atoll

CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
DNS, WEB, OTHER, METADATA, INTERNAL = ("20.0.0.53", "20.0.0.80", "20.0.0.81", "169.254.169.254",
                                       "10.9.9.9")
NAMES = {
    "allowed.example": [WEB], "a.wild.example": [WEB], "deep.a.wild.example": [WEB],
    "other.example": [OTHER], "internal.example": [INTERNAL], "loop.example": ["127.0.0.1"],
    "metadata.example": [METADATA], "mixed.example": [INTERNAL, WEB], "evil.example": [OTHER],
    "html.duckduckgo.com": [WEB], "docs.python.org": [OTHER], "en.wikipedia.org": [WEB],
}
# Whom the one certificate speaks for.
CERTIFIED = ("allowed.example", "html.duckduckgo.com", "docs.python.org", "*.wikipedia.org")


def run(*command):
    subprocess.run(command, check=True, capture_output=True)


class FakeInternet:
    def __init__(self):
        self.questions, self.connections, self.requests, self.fields = [], [], [], []
        self.pages = {}  # (host, path) → head and body of the answer
        self.open = set()  # (port, connection)
        self.rebinding = 0
        self.directory = ""

    def enter(self):
        self.directory = tempfile.mkdtemp(prefix="atoll-internet-")
        atexit.register(shutil.rmtree, self.directory)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWNS | CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        run("mount", "--make-rprivate", "/")
        resolver = os.path.join(self.directory, "resolv.conf")
        with open(resolver, "w") as file:
            file.write(f"nameserver {DNS}\n")
        os.chmod(self.directory, 0o755)
        os.chmod(resolver, 0o644)
        run("mount", "--bind", resolver, "/etc/resolv.conf")
        run("ip", "link", "set", "lo", "up")
        for address in (DNS, WEB, OTHER, METADATA, INTERNAL):
            run("ip", "address", "add", f"{address}/32", "dev", "lo")
        self.certificate = os.path.join(self.directory, "certificate.pem")
        self.make_certificate()
        self.serve_dns()
        for address in (WEB, OTHER, METADATA, INTERNAL, "127.0.0.1"):
            self.serve(address, 80, self.http)
        for address in (WEB, OTHER):
            self.serve(address, 443, self.https)
        self.serve(WEB, 2222, self.banner)
        self.serve(WEB, 9000, self.sink)

    def make_certificate(self):
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", "/CN=allowed.example", "-addext",
            "subjectAltName=" + ",".join("DNS:" + name for name in CERTIFIED), "-keyout",
            self.certificate, "-out", self.certificate + ".crt")
        with open(self.certificate, "a") as file, open(self.certificate + ".crt") as crt:
            file.write(crt.read())

    def serve(self, address, port, handler):
        listener = socket.create_server((address, port), backlog=512)

        def loop():
            while True:
                connection, _ = listener.accept()
                self.open.add((port, connection))
                self.connections.append((address, port))
                threading.Thread(target=self.guarded, args=(handler, connection, address, port),
                                 daemon=True).start()
        threading.Thread(target=loop, daemon=True).start()

    def guarded(self, handler, connection, address, port):
        try:
            with connection:
                handler(connection, address)
        except OSError:
            pass
        finally:
            self.open.discard((port, connection))

    def wait_quiet(self, address, port):
        """Until what was connected to it has ended; connections are accepted in their order."""
        before = len(self.connections)
        socket.create_connection((address, port)).close()
        atoll.wait_for("all connections to end", lambda: (
            (address, port) in self.connections[before:]
            and not any(one == port for one, _ in list(self.open))))

    def http(self, connection, address):
        stream = connection.makefile("rb")
        while True:
            line = stream.readline().decode()
            if not line:
                return
            fields, length = {}, 0
            for header in iter(stream.readline, b"\r\n"):
                name, value = header.decode().split(":", 1)
                fields[name.lower()] = value.strip()
            length = int(fields.get("content-length", 0))
            stream.read(length)
            self.requests.append((address, fields.get("host"), line.strip()))
            self.fields.append(fields)
            body = f"{address} {fields.get('host')} {line.split()[1]}".encode()
            if line.split()[1] == "/large":
                body = b"x" * (64 << 20)
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
            page = self.pages.get((fields.get("host"), line.split()[1]))
            if page:
                head, body = page
            connection.sendall(head + body)

    def https(self, connection, address):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate)
        with context.wrap_socket(connection, server_side=True) as secure:
            self.http(secure, address)

    @staticmethod
    def banner(connection, _):
        connection.sendall(b"SSH-2.0-fake\r\n")
        connection.recv(100)

    def sink(self, connection, address):
        while data := connection.recv(65536):
            self.requests.append((address, "sink", len(data)))

    def serve_dns(self):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind((DNS, 53))

        def loop():
            while True:
                message, peer = sock.recvfrom(4096)
                sock.sendto(self.answer(message), peer)
        threading.Thread(target=loop, daemon=True).start()

    def answer(self, message):
        labels, at = [], 12
        while message[at]:
            labels.append(message[at + 1:at + 1 + message[at]].decode("latin-1"))
            at += 1 + message[at]
        kind = struct.unpack(">H", message[at + 1:at + 3])[0]
        name = ".".join(labels).lower()
        self.questions.append(name)
        addresses = list(NAMES.get(name, []))
        if name == "rebinding.example":
            addresses = [WEB] if self.rebinding == 0 else [INTERNAL]
            if kind == 1:
                self.rebinding += 1
        known = name in NAMES or name == "rebinding.example"
        found = addresses if kind == 1 else []
        head = message[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, len(found), 0, 0)
        records = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + socket.inet_aton(one)
                           for one in found)
        return head + message[12:at + 5] + records
