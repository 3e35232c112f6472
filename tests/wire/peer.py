"""A client that can be told to be wrong: any bytes, any speed."""
import http.client
import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))

import atoll  # noqa: E402

SECONDS = 30.0 * atoll.SLOW


class Reply:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def code(self):
        return self.json["error"]["code"]

    @property
    def media_type(self):
        return (self.headers.get("Content-Type") or "").split(";")[0]


class Peer:
    """One kept connection for requests that are well-formed HTTP."""

    def __init__(self, address):
        self.host, self.port = address.rsplit(":", 1)
        self.connection = None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def send(self, method, target, headers=None, body=None):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.host, int(self.port), timeout=120)
        try:
            self.connection.request(method, target, body, headers or {})
            return self._receive()
        except BaseException:
            self.close()
            raise

    def claim(self, method, target, headers, claimed_bytes):
        """Says that a body comes, and sends none."""
        self.close()
        self.connection = http.client.HTTPConnection(self.host, int(self.port), timeout=SECONDS)
        try:
            self.connection.putrequest(method, target)
            for name, value in {**headers, "Content-Length": str(claimed_bytes)}.items():
                self.connection.putheader(name, value)
            self.connection.endheaders()
            return self._receive()
        finally:
            self.close()

    def _receive(self):
        response = self.connection.getresponse()
        reply = Reply(response.status, response.headers, response.read())
        if response.will_close or response.status == 101:
            self.close()
        return reply


def connect(address, seconds=SECONDS):
    host, port = address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=seconds)
