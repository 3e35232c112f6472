"""Files, archives and artifacts through the API, on the real kernel: each route, what goes wrong,
and programs inside that mean no good."""
import base64
import gzip
import hashlib
import io
import json
import os
import struct
import tarfile
import time
import urllib.parse

import atoll

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
RACES = 100_000 if LONG else 2_000
ENTRIES = 100_000 if LONG else 20_000


def quoted(path):
    return urllib.parse.quote(path if isinstance(path, bytes) else path.encode(), safe="/")


class FilesTest(atoll.SystemTest):
    def setUp(self):
        self.sandbox = self.atoll.create(limits={"disk_bytes": 64 << 20})["id"]
        self.base = f"/v1/sandboxes/{self.sandbox}"

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def call(self, method, path, body=None, query="", headers=None):
        return self.atoll.request(method, f"{self.base}/files{quoted(path)}{query}", body,
                                  headers=headers)

    def put(self, path, data, query="", **headers):
        return self.call("PUT", path, data, query,
                         {"Content-Type": "application/octet-stream", **headers})

    def code(self, answer):
        return answer.json["error"]["code"]

    def sh(self, script, **fields):
        done = self.atoll.execute(self.sandbox, ["sh", "-c", script], **fields)
        self.assertEqual(done["verdict"], "ok", done)
        if "stdout_base64" in done:
            return base64.b64decode(done["stdout_base64"]).decode("latin-1")
        return done["stdout"]

    # ---- each route

    def test_write_read_list_move_remove(self):
        data = os.urandom(3 << 20)
        made = self.put("/home/user/a/b.bin", data, "?mode=0640")
        self.assertEqual(made.status, 201, made.body)
        self.assertEqual((made.json["size"], made.json["mode"], made.json["uid"]),
                         (len(data), "0640", 1000))
        self.assertEqual(self.put("/home/user/a/b.bin", data).status, 200)
        read = self.call("GET", "/home/user/a/b.bin")
        self.assertEqual(read.body, data)
        self.assertEqual(read.headers["ETag"],
                         self.call("HEAD", "/home/user/a/b.bin").headers["ETag"])
        part = self.call("GET", "/home/user/a/b.bin", headers={"Range": "bytes=1000-1999"})
        self.assertEqual((part.status, part.body), (206, data[1000:2000]))
        inside = self.sh("sha256sum /home/user/a/b.bin").split()[0]
        self.assertEqual(inside, hashlib.sha256(data).hexdigest())

        page = self.call("GET", "/home/user", query="?list&depth=2").json["entries"]
        self.assertIn("/home/user/a/b.bin", [entry["path"] for entry in page])
        moved = self.call("POST", "/home/user/a/b.bin", {"to": "/home/user/c.bin"}, "?move")
        self.assertEqual(moved.status, 200, moved.body)
        self.assertEqual(self.code(self.call("GET", "/home/user/a/b.bin")), "file_not_found")
        self.assertEqual(self.code(self.call("DELETE", "/home/user/nothing")), "file_not_found")
        self.assertEqual(self.call("DELETE", "/home/user/c.bin").status, 204)
        self.assertEqual(self.call("DELETE", "/home/user/a").status, 204)

    def test_only_if_new(self):
        self.assertEqual(self.put("/tmp/n", b"1", **{"If-None-Match": "*"}).status, 201)
        again = self.put("/tmp/n", b"2", **{"If-None-Match": "*"})
        self.assertEqual((again.status, self.code(again)), (412, "exists"))
        self.assertEqual(self.call("GET", "/tmp/n").body, b"1")

    def test_directories_modes_attributes(self):
        made = self.call("POST", "/home/user/x/y", query="?mkdir&parents=true&mode=0700")
        self.assertEqual((made.status, made.json["mode"]), (201, "0700"), made.body)
        self.assertEqual(self.call("POST", "/home/user/x/y", query="?mkdir").status, 200)
        self.assertEqual(self.code(self.call("DELETE", "/home/user/x")), "not_empty")
        self.put("/home/user/x/f", b"x")
        changed = self.call("POST", "/home/user/x/f", {"mode": "0751"}, "?chmod")
        self.assertEqual(changed.json["mode"], "0751", changed.body)
        set_it = self.call("POST", "/home/user/x/f", {"set": {"user.note": "grün"}}, "?xattrs")
        self.assertEqual(set_it.status, 200, set_it.body)
        stat = self.call("GET", "/home/user/x/f", query="?stat").json
        self.assertEqual(stat["xattrs"], {"user.note": "grün"})
        self.call("POST", "/home/user/x/f", {"remove": ["user.note"]}, "?xattrs")
        self.assertEqual(self.call("GET", "/home/user/x/f", query="?stat").json["xattrs"], {})
        self.assertEqual(self.call("DELETE", "/home/user/x", query="?recursive=true").status, 204)

    def test_find(self):
        self.put("/home/user/src/one.py", b"import os\nprint('needle here')\n")
        self.put("/home/user/src/two.txt", b"needle\n")
        found = self.call("GET", "/home/user", query="?find&name=*.py&content=needle").json
        self.assertEqual([(m["path"], m["line"], m["text"]) for m in found["matches"]],
                         [("/home/user/src/one.py", 2, "print('needle here')")])
        by_name = self.call("GET", "/home/user", query="?find&name=two*").json["matches"]
        self.assertEqual([m["name"] for m in by_name], ["two.txt"])
        cut = self.call("GET", "/usr", query="?find&name=*&limit=5").json
        self.assertEqual((len(cut["matches"]), cut["truncated"]), (5, True))

    def test_watch(self):
        connection = atoll.http.client.HTTPConnection(
            *self.atoll.address.rsplit(":", 1), timeout=30)
        connection.request("GET", f"{self.base}/files/home/user?watch&recursive=true",
                           headers={"Authorization": f"Bearer {self.atoll.key}"})
        stream = connection.getresponse()
        self.assertEqual(stream.status, 200)

        def event():
            name = None
            while True:
                line = stream.readline().decode().rstrip("\n")
                if line.startswith("event: "):
                    name = line[7:]
                if line.startswith("data: "):
                    return name, json.loads(line[6:])
        self.assertEqual(event()[0], "ready")
        self.put("/home/user/watched", b"x")
        seen = []
        while not any(path == "/home/user/watched" for _, path in seen):
            name, data = event()
            seen.append((name, data.get("path") if name != "moved" else data["to"]))
        self.assertTrue({name for name, _ in seen} <= {"created", "written", "moved", "changed"})
        connection.close()

    def test_ports(self):
        self.atoll.start(self.sandbox, ["python3", "-m", "http.server", "8123"])

        def listed():
            ports = self.atoll.request("GET", f"{self.base}/ports").json["ports"]
            return 8123 in [port["port"] for port in ports]
        atoll.wait_for("the port", listed)

    def test_users(self):
        self.sh("umask 077; echo secret > /srv/s", user="root")
        denied = self.call("GET", "/srv/s")
        self.assertEqual((denied.status, self.code(denied)), (403, "permission_denied"))
        self.assertEqual(self.call("GET", "/srv/s", query="?user=root").body, b"secret\n")
        self.assertEqual(self.code(self.put("/etc/passwd", b"")), "permission_denied")
        self.assertGreater(len(self.call("GET", "/etc/passwd").body), 10)

    # ---- limits

    def test_a_full_disk_leaves_nothing(self):
        for path in ("/home/user/big", "/home/user/deep/er/big"):
            full = self.put(path, b"x" * (80 << 20))
            self.assertEqual((full.status, self.code(full)), (507, "disk_limit"), full.body)
        self.assertEqual(self.code(self.call("GET", "/home/user/big", query="?stat")),
                         "file_not_found")
        names = self.sh("find /home/user -type f -size +1M; df --output=avail -k /home/user")
        self.assertNotIn("/home/user", names)
        self.assertEqual(self.put("/home/user/small", b"x" * (1 << 20)).status, 201)

    def test_a_large_directory_comes_in_pages(self):
        self.sh(f"mkdir /home/user/many && cd /home/user/many && seq {ENTRIES} | xargs touch",
                timeout_ms=300_000)
        names, cursor = [], ""
        while cursor is not None:
            page = self.call("GET", "/home/user/many", query=f"?list&limit=1000{cursor}").json
            names += [entry["name"] for entry in page["entries"]]
            cursor = page["next_cursor"] and "&cursor=" + urllib.parse.quote(page["next_cursor"])
        self.assertEqual(len(names), ENTRIES)
        self.assertEqual(sorted(names, key=str.encode), names)
        self.assertEqual(set(names), {str(n) for n in range(1, ENTRIES + 1)})

    def test_names_of_all_kinds(self):
        for name in (b"new\nline", b"\xff\xfe", b"-rf", b" x ", b"%2e", b"a" * 255,
                     "ä\u202e".encode(),
                     b"x\r\nSet-Cookie: a=b", b'q"uote', b"\\back"):
            path = b"/home/user/" + name
            self.assertEqual(self.put(path, name).status, 201, name)
            read = self.call("GET", path)
            self.assertEqual(read.body, name)
            self.assertNotIn("Set-Cookie", read.headers)
            stat = self.call("GET", path, query="?stat").json
            shown = stat.get("name", "").encode() or base64.b64decode(stat["name_base64"])
            self.assertEqual(shown, name)
        self.assertEqual(self.put(b"/home/user/" + b"a" * 256, b"").status, 400)

    # ---- hostile paths

    def test_traversal_stays_inside(self):
        for raw in ("/../etc/shadow", "/%2e%2e/%2e%2e/etc/shadow", "/a/..%2f..%2fetc",
                    "//etc/shadow",
                    "/home/./user", "/x%00y", "/%252e%252e/etc", "/..%c0%afetc", "/home\\..\\etc"):
            answer = self.atoll.request("GET", f"{self.base}/files{raw}")
            self.assertIn(answer.status, (400, 404), raw)
        self.sh("ln -s /etc/shadow /home/user/out; ln -s / /home/user/dir")
        # What the link names is the sandbox's, not the host's; the user may not read that either.
        self.assertIn(self.code(self.call("GET", "/home/user/out")),
                      ("permission_denied", "file_not_found"))
        planted = self.put("/home/user/dir/tmp/planted", b"inside")
        self.assertEqual(planted.status, 201)
        self.assertEqual(self.sh("cat /tmp/planted"), "inside")
        self.assertFalse(os.path.exists("/tmp/planted"))
        for path in ("/proc/self/root/etc/passwd", "/proc/1/root/etc/passwd", "/proc/self/cwd/x",
                     "/proc/self/fd/0", "/dev/fd/0"):
            answer = self.call("GET", path)
            self.assertIn(answer.status, (403, 404, 409), (path, answer.body))

    def test_what_is_no_file_is_not_read(self):
        self.sh("mkfifo /home/user/fifo; python3 -c 'import socket;"
                "s=socket.socket(socket.AF_UNIX);s.bind(\"/home/user/sock\")'")
        for path in ("/home/user/fifo", "/home/user/sock", "/dev/zero", "/dev/tty"):
            answer = self.call("GET", path)
            self.assertIn(answer.status, (403, 404, 409), (path, answer.body))
        self.assertEqual(self.code(self.call("GET", "/home/user")), "is_directory")
        self.sh("truncate -s 1T /home/user/sparse")
        part = self.call("GET", "/home/user/sparse", headers={"Range": "bytes=-10"})
        self.assertEqual((part.status, part.body), (206, b"\0" * 10))

    def test_swapped_directories_never_lead_outside(self):
        canary = "/tmp/atoll-canary"
        with open(canary, "w") as file:
            file.write("host")
        self.atoll.request("PATCH", self.base, {"ttl_ms": 7_200_000, "idle_ttl_ms": 7_200_000})
        swapper = self.atoll.start(self.sandbox, ["python3", "-c", SWAPPER], timeout_ms=3_600_000)
        atoll.wait_for("the swapper", lambda: self.call(
            "GET", "/home/user/race/ready", query="?stat").status == 200)
        etc = self.sh("sha256sum /etc/passwd /etc/hostname /etc/group")
        calls = [lambda n: self.put(f"/home/user/race/d/f{n % 7}", b"x"),
                 lambda n: self.call("GET", "/home/user/race/d/passwd"),
                 lambda n: self.call("DELETE", f"/home/user/race/d/f{n % 7}"),
                 lambda n: self.call("POST", "/home/user/race/d/passwd", {"mode": "0777"},
                                     "?chmod"),
                 lambda n: self.call("POST", f"/home/user/race/d/f{n % 7}",
                                     {"to": "/home/user/race/d/g", "replace": True}, "?move"),
                 lambda n: self.call("DELETE", "/home/user/race/d/sub", query="?recursive=true")]
        for n in range(RACES):
            answer = calls[n % len(calls)](n)
            self.assertLess(answer.status, 500, (n, answer.body))
        self.atoll.request("POST", f"{self.base}/execs/{swapper['id']}/signal", {"signal": "KILL"})
        self.assertEqual(self.sh("sha256sum /etc/passwd /etc/hostname /etc/group"), etc)
        self.assertEqual(atoll.read(canary), "host")
        os.unlink(canary)

    # ---- archives

    def archive(self, entries, mode="w", **options):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode=mode, **options) as tar:
            for info, content in entries:
                tar.addfile(info, io.BytesIO(content) if content is not None else None)
        return data.getvalue()

    def entry(self, name, content=b"", **fields):
        info = tarfile.TarInfo(name)
        info.size = len(content or b"")
        for key, value in fields.items():
            setattr(info, key, value)
        return info, content

    def unpack(self, data, path="/home/user/in"):
        return self.atoll.request(
            "PUT", f"{self.base}/archive?path={quoted(path)}", data,
            headers={"Content-Type": "application/x-tar"})

    def test_trees_are_equal_both_ways(self):
        self.sh("mkdir -p t/a/b t/empty; cd t; echo one > a/one; ln a/one a/hard; "
                "ln -s ../a/one a/b/soft;"
                "ln -s /usr/bin/env abs; dd if=/dev/urandom of=big bs=1M count=5 2>/dev/null;"
                "chmod 750 a; chmod 601 a/one; touch -d '2001-02-03 04:05:06' big;"
                "touch \"$(printf 'new\\nline')\" \"$(printf '\\377')\"; mkfifo fifo")
        packed = self.atoll.request("GET", f"{self.base}/archive?path=/home/user/t")
        self.assertEqual((packed.status, packed.headers["Content-Type"]),
                         (200, "application/x-tar"))
        with tarfile.open(fileobj=io.BytesIO(packed.body)) as tar:
            names = tar.getnames()
        self.assertIn("a/b/soft", names)
        self.assertNotIn("fifo", names)
        for data in (packed.body, gzip.compress(packed.body)):
            done = self.unpack(data)
            self.assertEqual(done.status, 200, done.body)
            self.assertEqual(done.json["entries"], len(names))
            listing = ("cd /home/user/%s; find . ! -type p ! -name . "
                       "-printf '%%p %%y %%m %%s %%l %%T@\\n'"
                       "| grep -v ' d ' | sort; find . -type d -printf '%%p %%m\\n' | sort;"
                       "find . -type f -print0 | sort -z | xargs -0 sha256sum")
            # Directories change their times while they are filled.
            self.assertEqual(self.sh(listing % "in"), self.sh(listing % "t"))
            self.assertEqual(self.sh("stat -c %h in/a/one"), "2\n")
            self.sh("rm -r in")

    def test_hostile_archives(self):
        good = self.entry("good", b"x")
        link = tarfile.SYMTYPE
        hard = tarfile.LNKTYPE
        refused = {
            "climbs": [good, self.entry("../up", b"x")],
            "absolute": [good, self.entry("/etc/cron.d/x", b"x")],
            "climbs in the middle": [good, self.entry("a/../../x", b"x")],
            "through a link": [good, self.entry("l", type=link, linkname="/etc"),
                               self.entry("l/passwd", b"x")],
            "through a chain": [self.entry("a", type=link, linkname="b"),
                                self.entry("b", type=link, linkname="/"), self.entry("a/x", b"x")],
            "hard link out": [good, self.entry("h", type=hard, linkname="/etc/passwd")],
            "hard link up": [good, self.entry("h", type=hard, linkname="../../etc/passwd")],
            "hard link to nothing": [good, self.entry("h", type=hard, linkname="later")],
            "hard link to a link": [self.entry("l", type=link, linkname="/etc/passwd"),
                                    self.entry("h", type=hard, linkname="l")],
        }
        for what, entries in refused.items():
            answer = self.unpack(self.archive(entries))
            self.assertEqual((answer.status, self.code(answer)),
                             (400, "archive_entry_refused"), what)
        plain = self.archive([good])
        broken = {
            "no archive": b"hello" * 1000,
            "empty": b"",
            "cut": self.archive([self.entry("big", b"x" * 5000)])[:2000],
            "negative size": patched(plain, 124, b"-0000000001\0"),
            "huge size": patched(plain, 124, b"77777777777\0"),
            "base 256 size": patched(plain, 124, b"\xff" * 12),
            "wrong checksum": plain[:148] + b"0000000\0" + plain[156:],
            "huge pax header": pax_bomb(),
            "zip": b"PK\x03\x04" + b"\0" * 600,
        }
        for what, data in broken.items():
            answer = self.unpack(data)
            self.assertIn(answer.status, (400, 413), (what, answer.body))
        bomb = gzip.compress(self.archive([self.entry("zeros", b"\0" * (200 << 20))]))
        answer = self.unpack(bomb)
        self.assertIn((answer.status, self.code(answer)),
                      [(413, "archive_too_large"), (507, "disk_limit")])
        sparse = self.unpack(gnu_sparse_bomb())
        self.assertIn(sparse.status, (400, 413, 507), sparse.body)
        left = self.sh("find /home/user -type f -newer /etc/hostname 2>/dev/null | head; "
                       "ls /home/user/in 2>/dev/null | head")
        self.assertNotIn("good", left)

    def test_hostile_entries_are_neutralised(self):
        entries = [self.entry("suid", b"x", mode=0o6755, uid=0, gid=0, uname="root"),
                   self.entry("big-uid", b"x", uid=0xffffffff // 2),
                   self.entry("node", None, type=tarfile.CHRTYPE, devmajor=1, devminor=3),
                   self.entry("future", b"x", mtime=8 ** 11 - 1),
                   self.entry("l", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
                   self.entry("l", b"replaced")]
        done = self.unpack(self.archive(entries, format=tarfile.GNU_FORMAT))
        self.assertEqual(done.status, 200, done.body)
        self.assertEqual(done.json["entries"], 5)
        facts = self.sh("cd in; stat -c '%n %a %u' suid big-uid; "
                        "test ! -e node; test ! -L l; cat l")
        self.assertEqual(facts, "suid 755 1000\nbig-uid 644 1000\nreplaced")
        self.assertNotIn("x", self.sh("tail -c1 /etc/passwd"))

    # ---- artifacts

    def test_artifacts_outlive_the_sandbox(self):
        self.sh("mkdir -p /tmp/outputs/deep; cd /tmp/outputs; printf 'a,b' > deep/t.csv;"
                "printf '\\211PNG\\r\\n\\032\\n' > plot; ln -s /etc/passwd link; mkfifo fifo")
        expected = {"deep/t.csv": ("text/csv", b"a,b"),
                    "plot": ("image/png", b"\x89PNG\r\n\x1a\n")}
        for alive in (True, False):
            answer = self.atoll.request("GET", f"{self.base}/artifacts")
            self.assertEqual(answer.status, 200, answer.body)
            listed = {item["name"]: item for item in answer.json["artifacts"]}
            self.assertEqual(set(listed), set(expected))
            for name, (kind, data) in expected.items():
                self.assertEqual(listed[name]["type"], kind)
                self.assertEqual(listed[name]["sha256"], hashlib.sha256(data).hexdigest())
                read = self.atoll.request("GET", f"{self.base}/artifacts/{name}")
                self.assertEqual(read.body, data)
            if alive:
                self.atoll.delete(self.sandbox)
        self.sandbox = self.atoll.create()["id"]

    def test_a_frozen_sandbox_cannot_hold_up_its_end(self):
        self.sh("mkdir /tmp/outputs; echo x > /tmp/outputs/x")
        pid = self.atoll.agent_pid(self.sandbox)
        os.kill(pid, atoll.signal.SIGSTOP)
        begin = time.monotonic()
        self.atoll.delete(self.sandbox)
        took = time.monotonic() - begin
        print(f"deleted in {took:.1f} s", flush=True)
        if LONG:
            self.assertLess(took, 30 * atoll.SLOW)
        self.sandbox = self.atoll.create()["id"]


SWAPPER = r"""
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("/home/user/race/d/sub")
os.chdir("/home/user/race")
os.symlink("/etc", "link")
open("ready", "w").close()
while True:
    libc.renameat2(-100, b"d", -100, b"link", 2)
    try:
        os.makedirs("d/sub", exist_ok=True)
    except OSError:
        pass
"""


def patched(data, offset, field):
    """The first header with another field and the checksum that fits."""
    header = bytearray(data[:512])
    header[offset:offset + len(field)] = field
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header) + data[512:]


def pax_bomb():
    info = tarfile.TarInfo("x")
    info.pax_headers = {"comment": "x" * (10 << 20)}
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info)
    return data.getvalue()


def gnu_sparse_bomb():
    """An old GNU sparse entry whose real size is beyond any disk."""
    header = bytearray(512)
    header[0:6] = b"sparse"
    header[100:108] = b"0000644\0"
    header[108:124] = b"0001750\0" * 2
    header[124:136] = b"00000001000\0"
    header[136:148] = b"00000000000\0"
    header[156] = ord("S")
    header[257:265] = b"ustar  \0"
    header[386:398] = b"\x80" + struct.pack(">11s", (1 << 62).to_bytes(11, "big"))
    header[398:410] = b"00000001000\0"
    header[483:495] = b"\x80" + struct.pack(">11s", (1 << 62).to_bytes(11, "big"))
    return patched(bytes(header) + b"x" * 512 + b"\0" * 1024, 0, b"sparse")


if __name__ == "__main__":
    atoll.main()
