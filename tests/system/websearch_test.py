"""What websearch-tools brings, against a fake internet: its programs reach the hosts that its
manifest allows, with certificates checked, and no others. Only Python is needed for that, so the
image is that of `python`, with the manifest and the files of the template."""
import json
import os
import signal
import tempfile

import atoll
import fake_internet

INTERNET = fake_internet.FakeInternet()
TEMPLATE = os.path.join(atoll.ROOT, "templates", "websearch-tools")
RESULTS = ('<a class="result__a" href="//duckduckgo.com/l/?uddg=https%3A%2F%2Fdocs.python.org%2F3'
           '%2F">Python <b>3</b></a><a class="result__snippet">The docs &amp; more</a>'
           '<a class="result__a" href="https://en.wikipedia.org/wiki/Atoll">Atoll</a>')
PAGE = "<head><title>Docs</title><script>no()</script></head><p>First</p><p>Second &lt;3</p>"


def html(text, kind="text/html; charset=utf-8"):
    body = text.encode()
    return (f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
            "\r\n").encode(), body


def redirect(where):
    return f"HTTP/1.1 302 Found\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode(), b""


class WebsearchTest(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with tempfile.TemporaryDirectory() as directory:
            for name in ("digest", "image.erofs"):
                os.symlink(os.path.join(atoll.IMAGE, name), os.path.join(directory, name))
            os.symlink(os.path.join(TEMPLATE, "template.toml"),
                       os.path.join(directory, "template.toml"))
            cls.atoll.cli("template", "add", directory)
        INTERNET.pages.update({
            ("html.duckduckgo.com", "/html/?q=python+docs"): html(RESULTS),
            ("html.duckduckgo.com", "/html/?q=nothing"): html("<p>none</p>"),
            ("docs.python.org", "/3/"): html(PAGE),
            ("docs.python.org", "/raw"): html("plain <b>text", "text/plain"),
            ("docs.python.org", "/moved"): redirect("https://en.wikipedia.org/there"),
            ("docs.python.org", "/out"): redirect("https://evil.example/x"),
            ("docs.python.org", "/file"): redirect("file:///etc/passwd"),
            ("en.wikipedia.org", "/there"): html("arrived", "text/plain"),
        })

    def setUp(self):
        # One of its own: what a test does to it is not for the next.
        self.sandbox = self.atoll.create(template="websearch-tools", singleton=False)["id"]
        files = os.path.join(TEMPLATE, "files")
        for folder, _, names in os.walk(files):
            for name in names:
                path = os.path.join(folder, name)
                self.put(path[len(files):], path, os.stat(path).st_mode & 0o777)
        self.put("/home/user/ca.pem", INTERNET.certificate + ".crt", 0o644)

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def put(self, path, source, mode):
        with open(source, "rb") as file:
            answer = self.atoll.request(
                "PUT", f"/v1/sandboxes/{self.sandbox}/files{path}?user=root&mode={mode:o}",
                file.read(), headers={"Content-Type": "application/octet-stream"})
        self.assertIn(answer.status, (200, 201), answer.body)

    def tool(self, *words, trusted=True):
        env = {"SSL_CERT_FILE": "/home/user/ca.pem"} if trusted else {}
        done = self.atoll.execute(self.sandbox, list(words), env=env)
        return done["exit_code"], done["stdout"], done["stderr"]

    def rows(self):
        path = f"/v1/sandboxes/{self.sandbox}/egress"
        return self.atoll.request("GET", path).json["rows"]

    def test_a_search_is_a_list_and_a_page_is_text(self):
        code, out, err = self.tool("search", "python", "docs")
        self.assertEqual(code, 0, err)
        found = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(found, [
            {"title": "Python 3", "url": "https://docs.python.org/3/",
             "snippet": "The docs & more"},
            {"title": "Atoll", "url": "https://en.wikipedia.org/wiki/Atoll", "snippet": ""}])
        self.assertEqual(self.tool("fetch", found[0]["url"])[:2],
                         (0, "Docs\n\nFirst\n\nSecond <3\n"))
        self.assertEqual(self.tool("fetch", "--raw", "https://docs.python.org/raw")[:2],
                         (0, "plain <b>text"))
        self.assertEqual(self.tool("search", "nothing")[0], 1)
        connects = [(row["name"], row["port"]) for row in self.rows() if row["event"] == "connect"]
        self.assertEqual(set(connects), {("html.duckduckgo.com", 443), ("docs.python.org", 443)})

    def test_a_redirect_is_followed_only_where_the_rules_lead(self):
        self.assertEqual(self.tool("fetch", "https://docs.python.org/moved")[:2], (0, "arrived\n"))
        connections = len(INTERNET.connections)
        code, out, err = self.tool("fetch", "https://docs.python.org/out")
        self.assertEqual((code, out), (3, ""))
        self.assertIn("reaches only what its rules allow", err)
        self.assertEqual(len(INTERNET.connections) - connections, 1, "and the other never came")
        code, out, err = self.tool("fetch", "https://docs.python.org/file")
        self.assertEqual((code, out), (1, ""))

    def test_other_hosts_and_ports_are_denied_and_recorded(self):
        connections = len(INTERNET.connections)
        for url in ("https://evil.example/", "http://docs.python.org/3/", "https://20.0.0.80/",
                    "http://169.254.169.254/latest/meta-data/"):
            code, out, err = self.tool("fetch", url)
            self.assertEqual((code, out), (3, ""), err)
        self.assertEqual(len(INTERNET.connections), connections)
        atoll.wait_for("the rows", lambda: sum(
            row.get("count", 1) for row in self.rows() if row["decision"] == "deny") >= 4)

    def ask(self, status, **fields):
        answer = self.atoll.request("POST", "/v1/sandboxes",
                                    {"template": "websearch-tools", **fields})
        self.assertEqual(answer.status, status, answer.body)
        return answer.json

    def test_creates_share_one_sandbox_of_each_tenant(self):
        first = self.ask(201)
        self.assertEqual(first["name"], "websearch-tools")
        self.assertNotEqual(first["id"], self.sandbox)
        self.assertEqual(self.ask(200)["id"], first["id"])
        done = self.atoll.execute("websearch-tools", ["sh", "-c", "echo kept > here"])
        self.assertEqual(done["verdict"], "ok", done)
        # Also by one that does not know that there is one, and after a restart.
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        atoll.wait_for("atolld", lambda: self.atoll.daemon_pid)
        self.atoll.wait_ready()
        self.assertEqual(self.ask(200)["id"], first["id"])
        self.assertEqual(self.atoll.execute(first["id"], ["cat", "here"])["stdout"], "kept\n")
        # A name, or the wish for one of its own, makes another; so do a run and other tenants.
        named = self.ask(201, name="mine")["id"]
        own = self.ask(201, singleton=False)["id"]
        self.assertEqual(len({first["id"], named, own, self.sandbox}), 4)
        run = self.atoll.request("POST", "/v1/run", {"template": "websearch-tools",
                                                     "shell": "ls here; true"})
        self.assertEqual((run.status, run.json["stdout"]), (200, ""), run.body)
        key = self.atoll.request("POST", "/v1/keys", {"tenant": "stranger"}).json["key"]
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "websearch-tools"},
                                    key=key)
        self.assertEqual(answer.status, 201, answer.body)
        foreign = answer.json["id"]
        self.assertNotEqual(foreign, first["id"])
        gone = self.atoll.request("DELETE", f"/v1/sandboxes/{foreign}", key=key)
        self.assertEqual(gone.status, 204)
        for sandbox in (first["id"], named, own):
            self.atoll.delete(sandbox)
        second = self.ask(201)["id"]
        self.assertNotEqual(second, first["id"])
        self.atoll.delete(second)

    def test_the_command_line_runs_in_one_of_its_own(self):
        first = self.ask(201)["id"]
        done = self.atoll.cli("run", "-t", "websearch-tools", "-v", "-c", "print(1)")
        self.assertEqual(done.stdout, b"1\n")
        self.assertEqual(self.ask(200)["id"], first, "it is still there")
        made = self.atoll.cli("create", "-t", "websearch-tools").stdout.decode()
        self.assertIn(first, made)
        self.atoll.delete(first)

    def test_a_certificate_that_nobody_signed_is_refused(self):
        code, out, err = self.tool("fetch", "https://docs.python.org/3/", trusted=False)
        self.assertEqual((code, out), (1, ""))
        self.assertIn("its certificate is not trusted", err)


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main()
