"""What somebody sees who meets Atoll for the first time: what is printed can be pasted, what is
said is true, and what cannot work is refused at once."""
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import unittest

import atoll

REFUSED = 125


def make_certificate(directory, name):
    certificate, key = (os.path.join(directory, name + end) for end in (".pem", ".key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                    "-keyout", key, "-out", certificate], check=True, capture_output=True)
    os.chmod(key, 0o600)  # as certbot leaves it
    return certificate, key


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


class Words(unittest.TestCase):
    def test_every_command_that_the_readme_names_is_there(self):
        shown = subprocess.run([os.path.join(atoll.BIN, "atoll"), "completion", "bash"],
                               capture_output=True, text=True, check=True).stdout
        text = atoll.read(os.path.join(atoll.ROOT, "README.md"))
        block = text.split("## Use")[1].split("```")[1]
        word = "[a-z]+(?: (?:create|show|tree|export|import))?"
        named = [name for names in re.findall(rf"\batoll ({word}(?:, {word})*)", block)
                 for name in names.split(", ")]
        self.assertIn("snapshot tree", named)
        for name in named:
            first, _, second = name.partition(" ")
            self.assertRegex(shown, rf"\b{first}\b", name)
            if second:
                done = subprocess.run([os.path.join(atoll.BIN, "atoll"), first, second, "--help"],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{name}: {done.stderr}")
                self.assertIn(f"atoll {name}", done.stdout)


class FirstTouch(atoll.SystemTest):
    def printed_by_quickstart(self, directory):
        """The commands that it shows. Its Atoll is the one of this test, whose image is there."""
        program = os.path.join(directory, "atoll")
        with open(program, "w", encoding="utf-8") as file:
            file.write('#!/bin/sh\n[ "$1 $2" = "template build" ] && exit 0\n'
                       f'exec {atoll.BIN}/atoll --state-dir {self.atoll.directory} "$@"\n')
        os.chmod(program, 0o755)
        done = subprocess.run([os.path.join(atoll.ROOT, "tools", "quickstart")], text=True,
                              env={**os.environ, "ATOLL_BIN": directory}, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("verdict ok", done.stdout)
        return re.findall(r"^\$ ((?:.*\\\n)*.*)$", done.stderr, flags=re.M)

    def test_what_quickstart_prints_can_be_pasted(self):
        with tempfile.TemporaryDirectory() as directory:
            key, create, execute, remove = self.printed_by_quickstart(directory)

            def paste(command):
                done = subprocess.run(["bash", "-c", f"{key}\n{command}"], capture_output=True,
                                      text=True)
                self.assertEqual(done.returncode, 0, command + done.stdout + done.stderr)
                return done.stdout
            made = json.loads(paste(create))["id"]
            gone = re.search("/v1/sandboxes/([a-z0-9]+)", remove)[1]
            ended = json.loads(paste(execute.replace(gone, made)))
            self.assertEqual(ended["verdict"], "ok", ended)
            paste(remove.replace(gone, made))

    def test_a_sandbox_with_a_name_stays_and_create_says_how_long(self):
        made = self.atoll.cli("create", "--name", "work")
        shown = self.atoll.request("GET", "/v1/sandboxes/work").json
        self.assertEqual(made.stdout.decode(), shown["id"] + "\n")
        self.assertEqual((shown["idle_ttl_ms"], shown["ttl_ms"]), (3_600_000, 7 * 86_400_000))
        self.assertIn(b"deleted 1h after it was last used, at most 7d after", made.stderr)
        self.atoll.delete("work")
        short = self.atoll.cli("create")
        self.assertIn(b"deleted 2m after it was last used, at most 5m after", short.stderr)
        self.assertEqual(self.atoll.cli("--json", "create", "--ttl", "10m").stderr, b"")
        self.atoll.cli("rm", "--all", "--yes")


class UnusableTls(unittest.TestCase):
    def setUp(self):
        self.files = tempfile.mkdtemp(prefix="atoll-tls-")
        os.chmod(self.files, 0o755)
        self.addCleanup(shutil.rmtree, self.files)
        self.atoll = atoll.Atoll()
        self.addCleanup(shutil.rmtree, self.atoll.directory, ignore_errors=True)

    def refused(self, certificate, key):
        done = self.atoll.cli("up", "--detach", "--no-warm-pool", "--kvm-trial", "0",
                              "--listen", "127.0.0.1:0", "--tls-listen",
                              f"127.0.0.1:{free_port()}", "--tls-certificate", certificate,
                              "--tls-key", key, check=False)
        self.assertEqual(done.returncode, REFUSED, done.stderr)
        lines = done.stderr.decode().splitlines()
        self.assertEqual(len(lines), 2, lines)
        self.assertTrue(lines[1].startswith("  remedy: "), lines)
        self.assertIsNone(self.atoll.supervisor_pid, "it was started nevertheless")
        return lines

    def test_a_key_that_the_daemon_cannot_read_is_found_at_once(self):
        certificate, key = make_certificate(self.files, "a")
        said, remedy = self.refused(certificate, key)
        self.assertIn(f"user atoll cannot open {key}: Permission denied", said)
        self.assertIn(f"chgrp atoll {key}", remedy)

    def test_a_key_of_another_certificate_is_found_at_once(self):
        certificate, first = make_certificate(self.files, "a")
        _, other = make_certificate(self.files, "b")
        for key in (first, other):
            os.chmod(key, 0o644)
        said, _ = self.refused(certificate, other)
        self.assertIn(f"TLS: {other}: key values mismatch", said)
        said, _ = self.refused(first, first)
        self.assertIn(first, said)
        said, remedy = self.refused(certificate, os.path.join(self.files, "missing"))
        self.assertIn("missing: No such file", said)
        self.assertIn("name a file", remedy)


if __name__ == "__main__":
    atoll.main()
