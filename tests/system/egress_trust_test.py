"""What programs believe in a sandbox whose connections are inspected: Python, curl, Node and git
each have their own word for the authorities they trust, and all must find that of the sandbox. An
image that is not built is skipped, with a word; `make test-long` builds all."""
import os
import shutil
import subprocess
import tempfile

import atoll
import egress_case
from certified_internet import CERTIFICATES, CertifiedInternet

INTERNET = CertifiedInternet()
URL = "https://api.example/v1/a"
ANSWER = "20.0.0.80 api.example /v1/a"
RULES = {"rules": [{"allow": "api.example", "inspect": True, "methods": ["GET"],
                    "paths": ["/v1/**", "/project.git/**"]}]}
PYTHON = ["python3", "-c",
          f"import urllib.request as u; print(u.urlopen('{URL}', timeout=10).read().decode())"]
CURL = ["curl", "-sS", "--max-time", "10", URL]
FETCH = ["node", "-e", f"fetch('{URL}').then(r => r.text()).then(console.log)"]
HTTPS = ["node", "-e", f"require('https').get('{URL}', r => r.pipe(process.stdout))"]


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


class TrustCase(egress_case.EgressCase, atoll.ImageTest):
    def setUp(self):
        self.sandbox = self.atoll.create(template=self.template, network=RULES)["id"]
        with open(os.path.join(INTERNET.directory, "authority.crt"), "rb") as file:
            answer = self.atoll.request(
                "PUT", f"/v1/sandboxes/{self.sandbox}/files/tmp/foreign.crt", file.read(),
                headers={"Content-Type": "application/octet-stream"})
        self.assertIn(answer.status, (200, 201), answer.body)

    def assert_trusts(self, command, variable=None):
        """It believes the sandbox's authority, and does not when its variable names another."""
        seen = len(INTERNET.requests)
        done = self.atoll.execute(self.sandbox, command)
        self.assertEqual((done["verdict"], done["stdout"].strip()), ("ok", ANSWER), done)
        self.assertEqual(len(INTERNET.requests), seen + 1)
        requests = [row for row in self.rows(self.sandbox) if row["event"] == "request"]
        self.assertEqual([(row["method"], row["path"]) for row in requests][-1], ("GET", "/v1/a"))
        if not variable:
            return
        done = self.atoll.execute(self.sandbox, command, env={variable: "/tmp/foreign.crt"})
        self.assertNotEqual(done["verdict"], "ok", done)
        self.assertEqual(len(INTERNET.requests), seen + 1)


class PythonTrust(TrustCase):
    template = "python"

    def test_python(self):
        self.assert_trusts(PYTHON, "SSL_CERT_FILE")


class BaseTrust(TrustCase):
    template = "base"

    def test_python(self):
        self.assert_trusts(PYTHON, "SSL_CERT_FILE")

    def test_curl(self):
        self.assert_trusts(CURL, "CURL_CA_BUNDLE")

    def test_node(self):
        for command in (FETCH, HTTPS):
            self.assert_trusts(command, "NODE_EXTRA_CA_CERTS")

    def test_pip_and_npm_reach_a_mirror(self):
        INTERNET.pages[("api.example", "/v1/simple/nothing/")] = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 15\r\n\r\n",
            b"<!DOCTYPE html>")
        done = self.atoll.execute(self.sandbox, [
            "pip", "download", "--no-cache-dir", "--retries", "0", "--index-url",
            "https://api.example/v1/simple/", "nothing"])
        self.assertIn("No matching distribution", done["stderr"], done)
        self.assertNotIn("CERTIFICATE", done["stderr"].upper().replace("CERTIFICATES", ""))
        done = self.atoll.execute(self.sandbox, [
            "npm", "ping", "--registry", "https://api.example/v1/", "--fetch-retries", "0"])
        self.assertIn("/v1/-/ping", str(INTERNET.requests), done)

    def serve_repository(self):
        """By files alone, as any web server can."""
        if not shutil.which("git"):
            self.skipTest("this host has no git to make a repository with")
        with tempfile.TemporaryDirectory() as directory:
            git = ["git", "-C", directory, "-c", "user.name=a", "-c", "user.email=a@b.example",
                   "-c", "init.defaultBranch=main"]
            with open(os.path.join(directory, "file"), "w") as file:
                file.write("content of a repository\n")
            for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"],
                          ["update-server-info"]):
                subprocess.run(git + words, check=True, capture_output=True)
            store = os.path.join(directory, ".git")
            for folder, _, names in os.walk(store):
                for name in names:
                    path = os.path.relpath(os.path.join(folder, name), store)
                    body = read_bytes(os.path.join(folder, name))
                    head = (b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                            b"Content-Length: %d\r\n\r\n" % len(body))
                    for query in ("", "?service=git-upload-pack"):
                        place = ("api.example", f"/project.git/{path}{query}")
                        INTERNET.pages[place] = head, body

    def test_git(self):
        self.serve_repository()
        clone = "rm -rf copy; git clone -q https://api.example/project.git copy && cat copy/file"
        done = self.atoll.execute(self.sandbox, ["sh", "-c", clone])
        self.assertEqual((done["verdict"], done["stdout"]), ("ok", "content of a repository\n"),
                         done)
        paths = {row.get("path") for row in self.rows(self.sandbox) if row["event"] == "request"}
        self.assertLessEqual({"/project.git/info/refs", "/project.git/HEAD"}, paths)

    def test_it_outlives_the_tool_that_makes_the_store_anew(self):
        done = self.atoll.execute(self.sandbox, ["update-ca-certificates"], user="root")
        self.assertEqual(done["verdict"], "ok", done)
        self.assertIn("BEGIN CERTIFICATE", self.atoll.execute(
            self.sandbox, ["cat", CERTIFICATES])["stdout"])
        self.assert_trusts(CURL)  # which looks into the folder of the store too


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main()
