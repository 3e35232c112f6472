"""Generates bad requests, the same ones for the same seed.

An attack is bytes for one connection, and what may come back. None of them may do anything: bodies
carry a field that no route knows, and what is smuggled would delete the canary.
"""
import gzip
import json
import random
import re
import zlib
from urllib.parse import urlencode

from odd_json import MALFORMED, OPEN, WELL_FORMED

UNKNOWN = "no_such_field"
REFUSED = frozenset(range(400, 500))
# Of requests that reach a port inside, on which nothing listens.
SILENT_PORT = REFUSED | {502}
PORT_TARGET = re.compile(r"/v1/sandboxes/[^/]+/ports/[^/]+/")
ODD_VALUES = (
    0, -1, 1, 1.5, -0.0, 1e308, 2 ** 31, 2 ** 32, 2 ** 53 + 1, 2 ** 63, 2 ** 64, 2 ** 64 + 1,
    -2 ** 63, 10 ** 40, True, False,
    "", " ", "0", "-1", "null", "a" * 100, "a" * 70000, "\0", "a\0b", "../../etc/passwd", "/", "//",
    ".", "..", "%00", "\r\nX: y",
    "$(id)", "`id`", "'; DROP TABLE keys; --", "\u202e", "\ufeff", "\ud7ff", "\U0001f600" * 50, [],
    [[]], [None], [0], ["", ""],
    ["a"] * 5000, [{}], {}, {"": ""}, {"a": None}, {"a": {"a": {}}}, {"__proto__": {}},
    {"A=B": "c"}, {"a": "x" * 140000},
    {f"k{i}": "v" for i in range(300)}, {"\0": "a"}, {"a": "\0"},
)
# Fields by which a client might try to be somebody else (API-04).
PRIVILEGES = ("tenant", "tenant_id", "owner", "isAdmin", "admin", "role", "operator", "driver",
              "privileged", "host_network",
              "hostNetwork", "image", "uid", "mounts", "capabilities", "state", "id", "created_at",
              "generation", "__proto__",
              "constructor", "$ref", "@type")


class Attack:
    def __init__(self, kind, data, allowed=REFUSED, code=None, answers=1):
        self.kind, self.data = kind, data
        self.allowed = allowed  # statuses; a connection closed without an answer is allowed too
        self.code = code
        self.answers = answers  # at most so many

    def __repr__(self):
        return f"{self.kind}: {self.data[:300]!r}{'…' if len(self.data) > 300 else ''}"


class Hostile:
    def __init__(self, contract, place):
        """`place`: host, key, stranger (another tenant's key), canary (a sandbox)."""
        self.contract, self.place = contract, place
        self.execs = f"/v1/sandboxes/{place['canary']}/execs"
        self.show = f"/v1/sandboxes/{place['canary']}"
        self.all_bodies = list(self.bodies())

    def head(self, method, target, extra=b"", key=None, version=b"HTTP/1.1"):
        place = self.place
        key = place["key"] if key is None else key
        lines = b"%s %s %s\r\nHost: %s\r\n" % (
            method.encode(), target if isinstance(target, bytes) else target.encode(), version,
            place["host"].encode())
        if key:
            lines += b"Authorization: Bearer %s\r\n" % key.encode()
        return lines + extra + b"\r\n"

    def post(self, target, body, media_type=b"application/json", extra=b""):
        return self.send("POST", target, body, media_type, extra)

    def send(self, method, target, body, media_type=b"application/json", extra=b""):
        head = b"Content-Type: %s\r\nContent-Length: %d\r\n" % (media_type, len(body))
        return self.head(method, target, head + extra) + body

    @property
    def smuggled(self):
        return self.head("DELETE", self.show)

    # --- bodies

    def json_syntax(self):
        for text in MALFORMED:
            yield Attack("malformed JSON", self.post(self.execs, text), {400}, "invalid_json")
            yield Attack("malformed JSON inside", self.post(self.execs, self.around(text)), {400},
                         "invalid_json")
        for text in WELL_FORMED:
            yield Attack("well-formed JSON", self.post(self.execs, self.around(text)), {400},
                         "unknown_field")
        for text in OPEN:
            yield Attack("open JSON", self.post(self.execs, text), {400, 413})
            yield Attack("open JSON", self.post(self.execs, self.around(text)), {400, 413})

    @staticmethod
    def around(text):
        return b"{\"cmd\": [\"true\"], \"%s\": %s}" % (UNKNOWN.encode(), text)

    def bodies(self):
        """((method, target), schema, base) of every operation with a JSON body."""
        for operation in self.contract.operations():
            for query, schema, examples in operation.bodies():
                target = self.target(operation) + ("?" + urlencode(query) if query else "")
                yield (operation.method, target), schema, examples[0]

    def target(self, operation):
        """Of something that is there, as far as the canary has it."""
        names = {"{id}": self.place["canary"], "{exec}": "e1", "{key}": "k", "{port}": "8000",
                 "{context}": self.place["context"], "{run}": "1",
                 "{path}": "home/user/a.txt", "{name}": "plot", "{snapshot}": "n" + "a" * 19,
                 "{tenant}": "local"}
        return re.sub(r"\{\w+\}", lambda name: names[name[0]], operation.path)

    def wrong_types(self):
        for route, schema, base in self.all_bodies:
            for keys in self.fields(schema):
                for value in ODD_VALUES:
                    yield self.wrong_type(route, base, keys, value)
            for name in PRIVILEGES:
                if name not in schema["properties"]:
                    body = json.dumps({**base, name: "x", UNKNOWN: 1}).encode()
                    yield Attack("privilege", self.send(*route, body), {400}, "unknown_field")

    def wrong_type(self, route, base, keys, value):
        body = {**base, UNKNOWN: 1}
        inner = body
        for key in keys[:-1]:
            inner[key] = {}
            inner = inner[key]
        inner[keys[-1]] = value
        return Attack(f"wrong type of {'.'.join(keys)}",
                      self.send(*route, json.dumps(body).encode()), {400, 413})

    def fields(self, schema, prefix=()):
        for name, field in schema["properties"].items():
            field = self.contract.resolve(field)
            yield [*prefix, name]
            if "properties" in field:
                yield from self.fields(field, (*prefix, name))

    def encodings(self):
        body = json.dumps({"cmd": ["true"], UNKNOWN: 1}).encode()
        for media_type in (b"", b"text/plain", b"application/x-www-form-urlencoded",
                           b"multipart/form-data; boundary=x", b"text/json",
                           b"application/jsonx", b"application/json+x", b"*/*", b"application/",
                           b"json", b"application/xml",
                           b"application/json, text/plain", b"\x80", b"a" * 4000):
            yield Attack("content type", self.post(self.execs, body, media_type), {400, 415})
        for media_type in (b"application/json;charset=utf-8", b"application/json ;charset=utf-16",
                           b"application/json;;;"):
            yield Attack("content type", self.post(self.execs, body, media_type), {400},
                         "unknown_field")
        for name, packed in ((b"gzip", gzip.compress(body, mtime=0)),
                             (b"deflate", zlib.compress(body)), (b"br", body),
                             (b"gzip", gzip.compress(b"\0" * 10 ** 7, mtime=0)),
                             (b"identity", b"{"), (b"x" * 200, b"{")):
            extra = b"Content-Encoding: %s\r\n" % name
            yield Attack("content encoding", self.post(self.execs, packed, extra=extra), {400, 415})
        for charset in ("utf-16", "utf-16-le", "utf-32", "cp037"):
            yield Attack(charset, self.post(self.execs, body.decode().encode(charset)), {400},
                         "invalid_json")

    # --- framing

    def smuggling(self):
        inner, tail = self.smuggled, b"Content-Type: application/json\r\n"
        chunked = b"0\r\n\r\n" + inner
        for field in (b"Transfer-Encoding: chunked", b"Transfer-Encoding : chunked",
                      b"Transfer-Encoding:\tchunked",
                      b"Transfer-Encoding: xchunked", b"Transfer-Encoding: chunked, identity",
                      b"Transfer-Encoding: identity, chunked",
                      b"Transfer-Encoding:\x0bchunked", b"Transfer-Encoding: \"chunked\"",
                      b"transfer-ENCODING: ChunkeD",
                      b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
                      b"X: y\nTransfer-Encoding: chunked",
                      b"X: y\rTransfer-Encoding: chunked", b"Transfer-Encoding\r\n : chunked",
                      b"Transfer-Encoding:\r\n chunked",
                      b" Transfer-Encoding: chunked", b"Transfer-Encoding: chunked\0",
                      b"\x00Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked",
                      b"Transfer-Encoding:",
                      b"Transfer-Encoding: chunked;q=1", b"X\xff: y\r\nTransfer-Encoding: chunked"):
            for length in (b"Content-Length: %d\r\n" % len(chunked), b"Content-Length: 5\r\n",
                           b"Content-Length: 6\r\n"):
                for extra in (tail + length + field + b"\r\n", tail + field + b"\r\n" + length):
                    yield Attack("CL and TE", self.head("POST", self.execs, extra) + chunked)
        for lengths in (b"Content-Length: 0\r\nContent-Length: %d",
                        b"Content-Length: %d\r\nContent-Length: 0", b"Content-Length: 0, %d",
                        b"Content-Length: +%d", b"Content-Length: -%d", b"Content-Length: 0x%d",
                        b"Content-Length: %d.0",
                        b"Content-Length: %d \t x", b"Content-Length: 0%d e",
                        b"Content-Length: 1e%d", b"Content-Length: ,%d",
                        b"Content-Length: 99999999999999999999%d",
                        b"Content-Length: 18446744073709551616%d", b"Content-Length : %d",
                        b"Content-Length:\r\n %d", b"Content-Length\t: %d",
                        b"Content-Length: \xd9\xa1%d", b"Content-Length: %d\0",
                        b"Content-Length: %d\r\nContent-Length: %%d"):
            field = lengths % len(inner)
            yield Attack("odd length",
                         self.head("POST", self.execs, tail + field + b"\r\n") + inner)
            yield Attack("odd length", self.head("GET", self.show, field + b"\r\n") + inner)

    def chunks(self):
        extra = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        inner = self.smuggled
        for text in (b"-1\r\n", b"+1\r\na\r\n", b"0x1\r\na\r\n", b" 1\r\na\r\n", b"1 \r\na\r\n",
                     b"1\na\n0\n\n", b"1\r\nab\r\n0\r\n\r\n",
                     b"g\r\n", b"\r\n0\r\n\r\n", b"FFFFFFFFFFFFFFFFF\r\n", b"FFFFFFFFFFFFFFFF\r\na",
                     b"8000000000000000\r\na",
                     b"10000000000000000\r\n", b"1;a\nb\r\na\r\n0\r\n\r\n", b"1\r\r\na\r\n",
                     b"1\r\na0\r\n\r\n", b"1\r\na\n0\r\n\r\n",
                     b"1\r\na\r0\r\n\r\n", b"0\r\nX\r\n\r\n", b"0\r\n X: y\r\n\r\n",
                     b"0\r\nX: y\n\r\n", b"0\n\n", b"0\r\r\n\r\n",
                     b"1\x00\r\na\r\n", b"\x001\r\na\r\n", b"1,1\r\na\r\n", b"1.0\r\na\r\n",
                     b"\xc2\xb2\r\naa\r\n", b"1" * 70000,
                     b"1;" + b"x" * 70000 + b"\r\na\r\n0\r\n\r\n", b"0" * 70000 + b"\r\n\r\n",
                     b"0\r\n" + b"X: y\r\n" * 20000 + b"\r\n"):
            yield Attack("chunk", self.head("POST", self.execs, extra) + text + inner, answers=1)
        body = self.around(b"1")
        whole = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n"
        yield Attack("trailer",
                     self.head("POST", self.execs, extra) + whole + b"Content-Length: 5\r\n\r\n",
                     {400},
                     "malformed_request")
        for trailer in (b"", b"X: y\r\n", b"Authorization: Bearer x\r\n",
                        b"Host: attacker.example\r\n"):
            yield Attack("trailer",
                         self.head("POST", self.execs, extra) + whole + trailer + b"\r\n", {400},
                         "unknown_field")

    def lines(self):
        inner = self.smuggled
        show = self.show.encode()
        host, key = self.place["host"].encode(), self.place["key"].encode()
        for data in (b"GET %s\r\n\r\n", b"GET %s HTTP/0.9\r\n\r\n",
                     b"GET %s HTTP/2.0\r\nHost: h\r\n\r\n", b"GET %s HTTP/1.2\r\n\r\n",
                     b"GET %s HTTP/1.1\t\r\n\r\n", b"GET  %s HTTP/1.1\r\n\r\n",
                     b"GET %s  HTTP/1.1\r\n\r\n", b"GET\t%s\tHTTP/1.1\r\n\r\n",
                     b" GET %s HTTP/1.1\r\n\r\n", b"\r\n\r\nGET %s HTTP/1.1\r\n\r\n",
                     b"GET %s HTTP/1.1\n\n", b"GET %s HTTP/1.1\r\r\n\r\n",
                     b"GET %s http/1.1\r\n\r\n", b"GET %s HTTP/1.1 x\r\n\r\n",
                     b"GET %s HTTP/11\r\n\r\n", b"GET %s HTTP/1.10\r\n\r\n",
                     b"get %s HTTP/1.1\r\n\r\n", b"GE\x00T %s HTTP/1.1\r\n\r\n",
                     b"GET %s\x00 HTTP/1.1\r\n\r\n", b"GET %s#x HTTP/1.1\r\n\r\n",
                     b"GET http://x%s HTTP/1.1\r\n\r\n", b"GET x%s HTTP/1.1\r\n\r\n",
                     b"CONNECT x:1%s HTTP/1.1\r\n\r\n",
                     b"GET * HTTP/1.1\r\n\r\n%s", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%s",
                     b"\x16\x03\x01\x02\x00%s", b"GET %s\xff HTTP/1.1\r\n\r\n",
                     b"GET %s HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
                     b"GET %s HTTP/1.1\r\nNo colon\r\n\r\n", b"GET %s HTTP/1.1\r\n: x\r\n\r\n",
                     b"GET %s HTTP/1.1\r\nA\x00: x\r\n\r\n",
                     b"GET %s HTTP/1.1\r\nA: x\x00y\r\n\r\n", b"GET %s HTTP/1.1\r\nA : x\r\n\r\n",
                     b"GET %s HTTP/1.1\r\nA: x\r\n y\r\n\r\n",
                     b"GET %s HTTP/1.1\r\nA: x\ry\r\n\r\n", b"GET %s HTTP/1.1\r\nA(: x\r\n\r\n"):
            for more in (b"", inner):
                yield Attack("request line or field", data % show + more, REFUSED | {505})
        for name in (b"attacker.example", b"127.0.0.1.attacker.example", b"localhost:1@x",
                     b"localhost.", b"[::1", b"", b"127.0.0.1, x",
                     b"\xe2\x84\xaalocalhost", b"0x7f.1", b"2130706433", b"127.1", b"::1",
                     b"localhost\\@x", b"x" * 5000):
            data = b"GET %s HTTP/1.1\r\nHost: %s\r\n" % (show, name)
            yield Attack("host", data + b"Authorization: Bearer %s\r\n\r\n" % key)
        for origin in (b"null", b"http://attacker.example", b"https://localhost.attacker.example",
                       b"file://", b"x", b"",
                       b"http://localhost@attacker.example", b"http://%s.attacker.example" % host):
            yield Attack("origin", self.head("DELETE", self.show, b"Origin: %s\r\n" % origin),
                         {400, 403})

    def floods(self):
        for extra in (b"A: b\r\n" * 1000, b"A: b\r\n" * 100000, b"A: " + b"b" * 16000 + b"\r\n",
                      b"A: " + b"b" * 10 ** 6 + b"\r\n",
                      b"A" * 10 ** 5 + b": b\r\n", b"Cookie: a=b; " * 5000 + b"\r\n",
                      b"Authorization: Bearer x\r\n" * 2,
                      b"Authorization: Bearer %s\r\n" % self.place["key"].encode(),
                      b"Expect: 100-continue\r\nExpect: x\r\n",
                      b"Expect: 200-ok\r\n", b"Range: bytes=" + b"0-1," * 3000 + b"\r\n"):
            yield Attack("header flood", self.head("DELETE", f"/v1/sandboxes/{'x' * 20}", extra))
        for length in (5000, 15000, 20000, 10 ** 6):
            yield Attack("long target", self.head("GET", "/" + "a" * length))
            yield Attack("long target", self.head("GET", "/v1/sandboxes?limit=" + "1" * length))
        request = self.head("GET", "/v1/sandboxes/x")
        yield Attack("pipeline", request * 500, {404}, answers=500)

    # --- names

    def ids(self):
        canary = self.place["canary"]
        forms = (canary.upper(), canary.capitalize(), canary[:-1], canary[1:], canary + "0",
                 canary + "a", "{" + canary + "}",
                 canary + "%00", canary + "%20", "%20" + canary, canary + "%0a", canary + "\t",
                 canary + ";x=1", canary + ".json",
                 canary + "%2f..", "..%2f" + canary, "." + canary, canary + ".", "%252e", "0", "1",
                 "-1", "*", "%", "%zz", "%c0%af",
                 canary.replace("a", "%D0%B0"), canary + "%ef%bb%bf", canary.swapcase(), "null",
                 "undefined", "[]", "[object Object]",
                 "%5B%22" + canary + "%22%5D", "%27%20OR%201=1--", "%25", "x" * 4000,
                 "%F0%9F%98%80", canary[::-1], canary * 2,
                 "%2e%2e", "..", ".", "~", canary + "%", canary + "%2", "e1", "%ff", "me", "self",
                 "current")
        for form in (form for form in forms if form != canary):
            for tail in ("", "/execs", "/execs/e1", "/execs/e1/output", "/execs/e1/attach",
                         "/receipt", "/ports", "/archive", "/artifacts", "/artifacts/a",
                         "/files/etc/passwd", "/files?list"):
                for key in (self.place["key"], self.place["stranger"]):
                    yield Attack("id", self.head("GET", f"/v1/sandboxes/{form}{tail}", key=key),
                                 REFUSED)
        encoded = "".join(f"%{ord(letter):02x}" for letter in canary)
        for form in (canary, encoded):
            yield Attack("another tenant's id",
                         self.head("DELETE", f"/v1/sandboxes/{form}", key=self.place["stranger"]),
                         {404})
        for form in ("e0", "e01", "e-1", "e1.0", "E1", "e", "e18446744073709551616",
                     "e99999999999999999999", "%651x", "e1%00", "1", "..", "e%31x"):
            yield Attack("exec id", self.head("GET", f"{self.show}/execs/{form}"), {400, 404})

    def methods(self):
        paths = {}
        for operation in self.contract.operations():
            paths.setdefault(self.target(operation), set()).add(operation.method)
        twists = ("{}/", "//{}", "{}//", "{};x=1", "/.{}", "/x/..{}", "{}%2f", "{}%00", "{}/.",
                  "{}/..%2f", "{}%3f", "/%2e{}", "{}\\", "{}%20")
        override = b"".join(name + b": DELETE\r\n" for name in (
            b"X-HTTP-Method-Override", b"X-HTTP-Method", b"X-Method-Override"))
        for path in sorted(paths):
            for method in ("PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "Get",
                           "GETT", "DELETE%20", "X" * 200):
                if method not in paths[path]:
                    yield Attack("method", self.head(method, path), REFUSED)
            for twist in twists:
                target = twist.format(path)
                reaches_port = PORT_TARGET.match(target)
                yield Attack("path", self.head("GET", target),
                             SILENT_PORT if reaches_port else REFUSED)
                # Whether there is such a route or not: without a key nobody learns it.
                yield Attack("path without key", self.head("DELETE", target, key=""), {400, 401})
            if path not in ("/healthz", "/readyz", "/openapi.json"):
                for target in (path, path + "?key=" + self.place["key"],
                               path + "?access_token=" + self.place["key"]):
                    yield Attack("no key", self.head("GET", target, override, key=""), {401})
        yield Attack("override", self.head("GET", self.show, override), {200})
        yield Attack("override", self.head("GET", self.show + "?_method=DELETE", override), {200})

    def queries(self):
        for query in ("limit", "limit=", "limit=0", "limit=-1", "limit=1e3",
                      "limit=%31%30%30%30%30", "limit=99999999999999999999", "limit=1.0",
                      "limit=0x1", "limit=%00", "limit=+", "limit=1%20", "cursor=x", "cursor=%00",
                      "cursor=" + "a" * 5000,
                      "cursor='", "cursor=1:2:3", "cursor=-1", "cursor=99999999999999999999:x",
                      "cursor=%ff"):
            yield Attack("query", self.head("GET", "/v1/sandboxes?" + query), REFUSED | {200})
            yield Attack("query", self.head("GET", self.execs + "?" + query), REFUSED | {200})
            yield Attack("query", self.head("GET", self.show + "/files?list&" + query),
                         REFUSED | {200})
        for number in ("", "-1", "1.5", "0x1", "%00", "%31%00", "99999999999999999999", "1e3", "+1",
                       "%D9%A1"):
            for target in ("/execs/e1?wait_ms=", "/execs/e1/output?offset=",
                           "/execs/e1/output?limit=", "/execs/e1/attach?since=",
                           "/files?list&depth=", "/files?find&limit="):
                yield Attack("number", self.head("GET", self.show + target + number))
            yield Attack("number", self.send("POST", f"{self.execs}/e1/stdin?offset={number}",
                                             b"x", b"application/octet-stream"))
        for query in ("metadata=", "metadata=a", "metadata=%00", "metadata=:", "state=",
                      "state=%00", "state=running&state=running", "metadata=a:b&" * 17):
            yield Attack("filter", self.head("GET", "/v1/sandboxes?" + query))

    def paths(self):
        """Names of files that lead out, are none, or are not what a route is for."""
        forms = ("..", "../..", "../../../../etc/shadow", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc/shadow",
                 "home/../etc/passwd", "home/%2e%2e/etc/passwd", "home//user", "home/./user",
                 "%00", "etc/passwd%00", "etc/passwd%00.txt", "%", "%zz", "%2", "a" * 256,
                 "a/" * 2500, "%2f", "%2fetc%2fpasswd", "proc/self/root/../x", "..%5c..%5cx",
                 "etc/passwd/x", "home/user/" + "%F0%9F%98%80" * 80)
        absent = ("home/user/%ff/none", "home/user/none%0d%0aX:%20y", "proc/1/mem", "proc/kcore",
                  "proc/1/environ", "proc/self/fd/0", "dev/mem", "sys/kernel/x")
        for form in absent:
            yield Attack("file", self.head("GET", f"{self.show}/files/{form}"))
            yield Attack("archive", self.head("GET", f"{self.show}/archive?path=/{form}"))
        for form in forms:
            for query in ("", "?user=no-such-user", "?user=", "?user=%00", "?user=-1",
                          "?user=0:0:0", "?user=4294967296", "?user=../root"):
                yield Attack("file", self.head("GET", f"{self.show}/files/{form}{query}"))
            yield Attack("file", self.send("PUT", f"{self.show}/files/{form}", b"x"))
            yield Attack("file", self.head("DELETE", f"{self.show}/files/{form}?recursive=true"))
            yield Attack("file", self.head("POST", f"{self.show}/files/{form}?mkdir=&parents=x"))
            yield Attack("artifact", self.head("GET", f"{self.show}/artifacts/{form}"))
            # Without its first slash, which these have.
            if not form.startswith("%2f"):
                yield Attack("archive", self.head("GET", f"{self.show}/archive?path={form}"))
            yield Attack("archive", self.send("PUT", f"{self.show}/archive?path={form}", b"x"))
        for mode in ("", "x", "8", "-1", "4755", "2755", "07777777", "%00", "0x1ff"):
            target = f"{self.show}/files/home/user/a.txt?mode={mode}"
            yield Attack("mode", self.send("PUT", target, b"x"), {400})
        for body in (b"", b"x", gzip.compress(b"x", mtime=0),
                     gzip.compress(b"a" * 10 ** 7, mtime=0), b"\x1f\x8b",
                     b"\x28\xb5\x2f\xfd", b"a" * 512, b"a" * 100000):
            yield Attack("archive", self.send("PUT", f"{self.show}/archive", body), {400, 413})

    def upgrades(self):
        """Half a WebSocket."""
        key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        version = b"Sec-WebSocket-Version: 13\r\n"
        upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
        for extra in (b"", upgrade, upgrade + key, upgrade + version, key + version,
                      upgrade + b"Sec-WebSocket-Version: 12\r\n" + key,
                      upgrade + version + b"Sec-WebSocket-Key: x\r\n",
                      b"Connection: close\r\nUpgrade: websocket\r\n" + key + version):
            yield Attack("upgrade", self.head("GET", self.execs + "/e1/attach", extra))
            yield Attack("upgrade", self.head("GET", self.execs + "/e99/attach", extra))

    def headers(self):
        body = json.dumps({"cmd": ["true"], UNKNOWN: 1}).encode()
        for value in (b"", b"x", b"0", b"-1", b"1.0", b"2", b"4294967297",
                      b"1\r\nAtoll-Generation: 1"):
            field = b"Atoll-Generation: %s\r\n" % value
            yield Attack("generation", self.head("DELETE", self.show, field), {400, 409})
            yield Attack("generation", self.head("GET", self.show + "/artifacts", field),
                         {400, 409})
        for value in (b"", b"a" * 256, b"\x80", b"a\tb", b"a\r\nIdempotency-Key: a", b"a"):
            field = b"Idempotency-Key: %s\r\n" % value
            yield Attack("idempotency key", self.post(self.execs, body, extra=field), {400})

    # --- all

    def garbled(self, choose):
        """A body with several wrong fields, and now and then no JSON in the middle."""
        route, schema, base = choose.choice(self.all_bodies)
        body = {**base, UNKNOWN: 1}
        for keys in choose.sample(list(self.fields(schema)), min(3, len(schema["properties"]))):
            value = choose.choice(ODD_VALUES)
            body[keys[0]] = value if len(keys) == 1 else {keys[1]: value}
        text = json.dumps(body).encode()
        if choose.random() < 0.3:
            at = choose.randrange(len(text))
            odd = choose.choice(MALFORMED + WELL_FORMED)
            text = text[:at] + odd + text[at + choose.randint(0, 3):]
        return Attack("garbled", self.send(*route, text), {400, 413})

    def mutated(self, choose):
        """A good request with some of its bytes wrong."""
        body = json.dumps({"template": "no-such-template", UNKNOWN: 1}).encode()
        chunked = b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
        base = choose.choice((
            self.head("GET", self.show), self.head("GET", self.execs + "?limit=5"),
            self.post(self.execs, body), self.post("/v1/sandboxes", body),
            self.head("POST", self.execs, chunked) + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)))
        data = bytearray(base)
        for _ in range(choose.randint(1, 4)):
            at = choose.randrange(len(data))
            kind = choose.randrange(5)
            if kind == 0:
                data[at] = choose.randrange(256)
            elif kind == 1:
                data[at:at] = choose.choice((b"\0", b"\r", b"\n", b"\r\n", b" ", b"\t", b":", b"%",
                                             b"\xff", b"0", b"{", b"\""))
            elif kind == 2:
                del data[at:at + choose.randint(1, 8)]
            elif kind == 3:
                data[at:at] = data[at:at + choose.randint(1, 40)]
            else:
                data[at] ^= 1 << choose.randrange(8)
            if not data:
                data = bytearray(b"\0")
        return Attack("mutated", bytes(data), REFUSED | {200, 505}, answers=20)

    def attacks(self, seed, count):
        choose = random.Random(seed)
        always = (self.smuggling, self.chunks, self.lines, self.floods, self.json_syntax,
                  self.encodings, self.upgrades, self.headers)
        chosen = [attack for kind in always for attack in kind()]
        # The many pairs of name and twist, field and value: as far as there is room.
        pairs = [attack for kind in (self.ids, self.methods, self.queries,
                                     self.paths, self.wrong_types) for attack in kind()]
        choose.shuffle(pairs)
        chosen += pairs[:max(0, (count - len(chosen)) // 2)]
        while len(chosen) < count:
            chosen.append(choose.choice((self.mutated, self.garbled))(choose))
        choose.shuffle(chosen)
        return chosen[:count]
