"""A small WebSocket client (RFC 6455) on the standard library, for tests."""
import base64
import json
import os
import socket
import struct

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The server did not upgrade; the answer's status and body."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body!r}")
        self.status, self.body = status, body


class WebSocket:
    def __init__(self, address, path, key):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.input = b""
        self.close_code = None
        nonce = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
            f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {nonce}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.input:
            self.receive()
        head, self.input = self.input.split(b"\r\n\r\n", 1)
        status = int(head.split()[1])
        if status != 101:
            length = [line for line in head.lower().split(b"\r\n") if b"content-length" in line]
            body = self.take(int(length[0].split(b":")[1])) if length else b""
            self.socket.close()
            raise Refused(status, body)

    def receive(self):
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed the connection")
        self.input += data

    def take(self, count):
        while len(self.input) < count:
            self.receive()
        taken, self.input = self.input[:count], self.input[count:]
        return taken

    def send(self, kind, data):
        mask = os.urandom(4)
        head = bytes([0x80 | kind])
        if len(data) < 126:
            head += bytes([0x80 | len(data)])
        elif len(data) < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", len(data))
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", len(data))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def send_json(self, value):
        self.send(TEXT, json.dumps(value).encode())

    def read(self):
        """(kind, data) of the next message; (CLOSE, b"") when the server has closed."""
        while True:
            first, second = self.take(2)
            length = second & 0x7f
            if length == 126:
                length = struct.unpack(">H", self.take(2))[0]
            elif length == 127:
                length = struct.unpack(">Q", self.take(8))[0]
            data = self.take(length)
            kind = first & 0xf
            if kind == PING:
                self.send(PONG, data)
            elif kind == CLOSE:
                self.close_code = struct.unpack(">H", data[:2])[0] if data else 1005
                self.send(CLOSE, data[:2])
                return CLOSE, b""
            else:
                return kind, data

    def read_json(self):
        kind, data = self.read()
        assert kind == TEXT, (kind, data)
        return json.loads(data)

    def read_until(self, mark):
        """Output up to and including `mark`."""
        output = b""
        while mark not in output:
            kind, data = self.read()
            assert kind == BINARY, (kind, data, output)
            output += data
        return output

    def read_to_exit(self):
        """The rest of the output, and the exec that ended."""
        output = b""
        while True:
            kind, data = self.read()
            if kind == TEXT:
                return output, json.loads(data)["exit"]
            assert kind == BINARY, (kind, output)
            output += data

    def close(self):
        self.socket.close()
