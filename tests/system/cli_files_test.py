"""The command line and the files of a sandbox, names, artifacts; and what docs/cli.md shows."""
import os
import re
import subprocess
import tempfile
import unittest

import atoll

ATOLL = os.path.join(atoll.BIN, "atoll")


def tree(directory):
    """Names, kinds and contents of everything beneath."""
    found = {}
    for folder, directories, files in os.walk(directory):
        for name in directories + files:
            path = os.path.join(folder, name)
            key = os.path.relpath(path, directory)
            if os.path.islink(path):
                found[key] = ("link", os.readlink(path))
            elif os.path.isdir(path):
                found[key] = ("directory", "")
            else:
                with open(path, "rb") as file:
                    found[key] = (oct(os.stat(path).st_mode & 0o777), file.read())
    return found


class Files(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = tempfile.TemporaryDirectory()
        cls.atoll.create(name="work", ttl_ms=3_600_000, idle_ttl_ms=3_600_000)

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()
        cls.atoll.cli("rm", "work")
        super().tearDownClass()

    def cli(self, *arguments, **options):
        options.setdefault("input", b"")
        options.setdefault("cwd", self.directory.name)
        return self.atoll.cli(*arguments, check=False, **options)

    def good(self, *arguments, **options):
        done = self.cli(*arguments, **options)
        self.assertEqual(done.returncode, 0, (arguments, done.stderr))
        return done.stdout

    def write(self, name, data, mode=0o644):
        path = os.path.join(self.directory.name, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
        os.chmod(path, mode)
        return path

    def test_a_file_goes_in_and_out_whole(self):
        data = os.urandom(3_000_000)
        self.write("tool", data, 0o755)
        self.good("cp", "tool", "work:/home/user/")
        self.assertEqual(self.good("cat", "work", "tool"), data)
        self.good("cp", "work:tool", "back")
        with open(os.path.join(self.directory.name, "back"), "rb") as file:
            self.assertEqual(file.read(), data)
        self.assertTrue(os.access(os.path.join(self.directory.name, "back"), os.X_OK))
        self.good("cp", "-", "work:/tmp/from stdin", input=b"typed")
        self.assertEqual(self.good("cp", "work:/tmp/from stdin", "-"), b"typed")
        missing = self.cli("cp", "work:/no/such", "x")
        self.assertEqual(missing.returncode, 125)
        self.assertIn(b"remedy: ", missing.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.directory.name, "x")))

    def test_a_directory_goes_in_and_out_whole(self):
        self.write("project/a/b/deep", b"deep")
        self.write("project/run.sh", b"#!/bin/sh\n", 0o755)
        self.write("project/" + "n" * 200, b"long")
        self.write("project/empty", b"")
        os.makedirs(os.path.join(self.directory.name, "project/hollow"), exist_ok=True)
        link = os.path.join(self.directory.name, "project/link")
        if not os.path.islink(link):
            os.symlink("run.sh", link)
        refused = self.cli("cp", "project", "work:/home/user/project")
        self.assertIn(b"cp -r", refused.stderr)
        self.good("cp", "-r", "project", "work:/home/user/project")
        self.good("cp", "-r", "work:project", "returned")
        self.assertEqual(tree(os.path.join(self.directory.name, "project")),
                         tree(os.path.join(self.directory.name, "returned")))
        self.good("cp", "-r", "project", "work:/tmp")
        self.assertEqual(self.good("cat", "work:/tmp/project/a/b/deep"), b"deep")

    def test_links_that_lead_out_do_not_come_back(self):
        script = ("mkdir -p trap && ln -sfn / trap/root && "
                  "ln -sf /etc/passwd trap/file && echo 1 >trap/x")
        self.good("exec", "work", "--", "sh", "-c", script)
        done = self.cli("cp", "-r", "work:trap", "trap")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(b"2 entries were left out", done.stderr)
        self.assertEqual(list(tree(os.path.join(self.directory.name, "trap"))), ["x"])

    def test_lists_and_watches(self):
        self.good("exec", "work", "--", "sh", "-c", "mkdir -p w/sub; echo hi >w/file")
        self.assertEqual(sorted(self.good("ls-files", "work", "w").split()), [b"file", b"sub/"])
        self.assertRegex(self.good("ls-files", "-l", "work", "w").decode(), r"- 0\d+ .* 3 .*file")
        self.good("exec", "work", "--", "sh", "-c", "echo hi >w/sub/inner")
        self.assertIn(b"w/sub/inner", self.good("ls-files", "-R", "work", "w"))
        command = [ATOLL, "--state-dir", self.atoll.directory, "watch", "work", "w"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL) as watch:
            self.assertIn(b"watching", watch.stderr.readline())
            self.good("exec", "work", "--", "sh", "-c", "echo new >w/new")
            line = watch.stdout.readline()
            self.assertIn(b"w/new", line)
            watch.terminate()

    def test_names_with_control_characters_are_shown_not_obeyed(self):
        self.good("exec", "work", "--", "python3", "-c",
                  r"import os; os.makedirs('odd', exist_ok=True); open('odd/\x1b[31m', 'w')")
        listed = self.good("ls-files", "work", "odd")
        self.assertNotIn(b"\x1b", listed)
        self.assertIn(b"\\x1b[31m", listed)

    def test_run_takes_scripts_files_and_arguments_and_gives_artifacts(self):
        self.write("data.csv", b"1,2,3\n")
        self.write("script.py", b"import sys, os\n"
                   b"os.makedirs('/tmp/outputs/deep', exist_ok=True)\n"
                   b"open('/tmp/outputs/deep/sum', 'w').write("
                   b"str(sum(map(int, open('data.csv').read().split(',')))))\n"
                   b"print(sys.argv[1:], os.path.basename(__file__))\n")
        done = self.cli("run", "--file", "data.csv:/home/user/", "--out", "results", "script.py",
                        "--", "-a", "b")
        self.assertEqual((done.returncode, done.stdout), (0, b"['-a', 'b'] script.py\n"),
                         done.stderr)
        self.assertEqual(tree(os.path.join(self.directory.name, "results"))["deep/sum"][1], b"6")
        self.write("broken.py", b"raise ValueError('x')\n")
        done = self.cli("run", "broken.py")
        self.assertEqual(done.returncode, 1)
        self.assertIn(b'File "/home/user/broken.py", line 1', done.stderr)
        self.write("Unknown", b"?")
        self.assertIn(b"remedy: ", self.cli("run", "Unknown").stderr)

    def test_names_are_used_like_ids(self):
        again = self.cli("create", "--name", "work")
        self.assertEqual(again.returncode, 125)
        self.assertIn(b"name_taken: ", again.stderr)
        self.assertEqual(self.good("create", "--name", "work", "--reuse"),
                         self.good("ls", "-q"))
        self.assertIn(b"work", self.good("ls"))

    def test_ports(self):
        server = ("import http.server, threading\n"
                  "handler = http.server.SimpleHTTPRequestHandler\n"
                  "s = http.server.HTTPServer(('0.0.0.0', 8123), handler)\n"
                  "print('up', flush=True)\ns.serve_forever()\n")
        exec_id = self.good("exec", "-d", "work", "--", "python3", "-c", server).decode().strip()

        def listens():
            return b"8123" in self.good("ports", "work")
        atoll.wait_for("the port to be seen", listens)
        self.atoll.request("POST", f"/v1/sandboxes/work/execs/{exec_id}/signal", {"signal": "KILL"})


class Examples(atoll.SystemTest):
    def test_every_example_of_the_document_runs(self):
        with open(os.path.join(atoll.ROOT, "docs", "cli.md")) as file:
            blocks = re.findall(r"^```\n(.*?)^```$", file.read(), re.M | re.S)
        lines = [line for block in blocks for line in block.splitlines()]
        # rm comes last, whatever the order of the chapters is; watch would not end by itself.
        lines.sort(key=lambda line: line.startswith("atoll rm"))
        self.assertGreater(len(lines), 15)
        compiler = os.path.join(os.path.dirname(atoll.IMAGE), "cpp-algorithm")
        if os.path.exists(os.path.join(compiler, "image.erofs")):
            self.atoll.cli("template", "add", compiler)
        else:
            print("not run: main.cpp, because the image of cpp-algorithm is not built")
            lines = [line for line in lines if "main.cpp" not in line]
        with tempfile.TemporaryDirectory() as directory:
            os.mkdir(os.path.join(directory, "project"))
            for name, text in (("script.py", "print(1)"), ("main.cpp", "int main() {}"),
                               ("data.csv", "1"), ("key.txt", "k"), ("project/x", "x")):
                with open(os.path.join(directory, name), "w") as file:
                    file.write(text)
            for line in lines:
                self.run_example(line, directory)

    def run_example(self, line, directory):
        function = f'atoll() {{ {ATOLL} --state-dir {self.atoll.directory} "$@"; }}\n'
        with subprocess.Popen(["bash", "-c", function + line], cwd=directory,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, start_new_session=True) as process:
            if " watch " in line:
                self.assertIn(b"watching", process.stdout.readline())
                os.killpg(process.pid, 15)
                process.wait(60)
                return
            output = process.communicate(timeout=120)[0]
        self.assertEqual(process.returncode, 0, (line, output))


if __name__ == "__main__":
    atoll.main()
