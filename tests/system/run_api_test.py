"""POST /v1/run: one program, its files and artifacts, and nothing left."""
import base64
import http.client
import json
import os
import re
import statistics
import tempfile

import atoll


class RunApiTest(atoll.SystemTest):
    def run_it(self, **fields):
        return self.atoll.request("POST", "/v1/run", {"template": "python", **fields})

    def gone(self):
        return self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"] == []

    def test_code_files_and_artifacts(self):
        answer = self.run_it(
            code="import os\nos.makedirs('/tmp/outputs')\n"
                 "text = open('/home/user/in.txt').read().upper()\n"
                 "open('/tmp/outputs/out.txt','w').write(text)\n"
                 "open('/tmp/outputs/big','wb').write(b'x' * 100_000)\nprint(input())",
            stdin="typed\n", files=[{"path": "/home/user/in.txt", "text": "words"}])
        self.assertEqual(answer.status, 200, answer.body)
        run = answer.json
        self.assertEqual((run["verdict"], run["stdout"]), ("ok", "typed\n"))
        artifacts = {item["name"]: item for item in run["artifacts"]}
        self.assertEqual(base64.b64decode(artifacts["out.txt"]["base64"]), b"WORDS")
        big = self.atoll.request("GET", artifacts["big"]["url"])
        self.assertEqual(big.body, b"x" * 100_000)
        gone = self.atoll.request("GET", f"/v1/sandboxes/{run['sandbox_id']}")
        self.assertEqual(gone.status, 404)
        self.assertTrue(self.gone())

    def add_template(self, name, collect):
        """The template of this test, under another name and with other outputs."""
        with tempfile.TemporaryDirectory() as directory:
            for file in ("digest", "image.erofs"):
                os.symlink(os.path.join(atoll.IMAGE, file), os.path.join(directory, file))
            manifest = atoll.read(os.path.join(atoll.IMAGE, "template.toml"))
            manifest = re.sub(r'^name = .*$', f'name = "{name}"', manifest, flags=re.M)
            manifest = re.sub(r'^\[outputs\]\n(?!\[)(.+\n)*', "", manifest, flags=re.M)
            manifest += f"\n[outputs]\ncollect = {json.dumps(collect)}\n"
            with open(os.path.join(directory, "template.toml"), "w") as file:
                file.write(manifest)
            self.atoll.cli("template", "add", directory)

    def test_a_template_says_what_is_collected(self):
        self.add_template("collector", ["/home/user/reports/*.csv", "/tmp/outputs/**/*.txt",
                                        "/home/user/nowhere/**"])
        code = ("mkdir -p /home/user/reports/deep /tmp/outputs/a && cd /home/user/reports && "
                "echo 1,2 >one.csv && echo no >one.txt && echo no >deep/two.csv && "
                "echo yes >/tmp/outputs/a/b.txt && echo no >/tmp/outputs/c.bin")
        # Nothing stands in /tmp/outputs in the second: it must be looked at nevertheless.
        for shell, names in ((code, {"home/user/reports/one.csv": b"1,2\n", "a/b.txt": b"yes\n"}),
                             ("mkdir reports && echo 3 >reports/x.csv",
                              {"home/user/reports/x.csv": b"3\n"}),
                             ("true", {})):
            run = self.run_it(template="collector", shell=shell).json
            self.assertEqual(run["verdict"], "ok", run)
            found = {item["name"]: base64.b64decode(item["base64"]) for item in run["artifacts"]}
            self.assertEqual(found, names)

    def test_a_live_sandbox_shows_what_its_template_collects(self):
        self.add_template("collector", ["/home/user/*.csv"])
        sandbox = self.atoll.request("POST", "/v1/sandboxes", {"template": "collector"}).json["id"]
        base = f"/v1/sandboxes/{sandbox}"
        self.atoll.request("POST", base + "/execs", {
            "shell": "echo a >a.csv; echo b >b.txt; mkdir /tmp/outputs; echo c >/tmp/outputs/c.csv",
            "wait": True})
        listed = self.atoll.request("GET", base + "/artifacts").json["artifacts"]
        self.assertEqual([item["name"] for item in listed], ["home/user/a.csv"])
        self.assertEqual(self.atoll.request("GET", base + "/artifacts/home/user/a.csv").body,
                         b"a\n")
        for name in ("home/user/b.txt", "etc/passwd", "c.csv", "tmp/outputs/c.csv"):
            self.assertEqual(self.atoll.request("GET", f"{base}/artifacts/{name}").status, 404,
                             name)
        self.atoll.delete(sandbox)
        kept = self.atoll.request("GET", base + "/artifacts").json["artifacts"]
        self.assertEqual([item["name"] for item in kept], ["home/user/a.csv"])

    def test_how_it_ended_is_told(self):
        self.assertEqual(self.run_it(cmd=["sh", "-c", "exit 3"]).json["exit_code"], 3)
        self.assertEqual(self.run_it(shell="sleep 60", timeout_ms=200).json["verdict"], "wall_time")
        self.assertEqual(self.run_it(cmd=["/nothing"]).json["state"], "ended")
        self.assertTrue(self.gone())

    def test_what_is_wrong_leaves_nothing(self):
        for fields in ({}, {"cmd": ["true"], "shell": "true"}, {"cmd": ["true"], "unknown": 1},
                       {"cmd": ["true"], "files": [{"path": "relative", "text": ""}]},
                       {"cmd": ["true"], "cwd": "relative"},
                       {"cmd": ["true"], "name": "x", "on_name_conflict": "use"}):
            answer = self.run_it(**fields)
            self.assertEqual(answer.status, 400, (fields, answer.body))
        full = self.run_it(cmd=["true"], files=[{"path": "/etc/x", "text": ""}])
        self.assertEqual(full.status, 403, full.body)
        atoll.wait_for("all sandboxes to be gone", self.gone)

    def test_a_client_that_goes_away_leaves_nothing(self):
        connection = http.client.HTTPConnection(*self.atoll.address.rsplit(":", 1))
        connection.request("POST", "/v1/run",
                           json.dumps({"template": "python", "shell": "sleep 600",
                                       "timeout_ms": 900_000}),
                           {"Authorization": f"Bearer {self.atoll.key}",
                            "Content-Type": "application/json"})
        atoll.wait_for("the sandbox", lambda: not self.gone())
        connection.close()
        atoll.wait_for("the sandbox to be gone", self.gone)

    def test_timings_add_up(self):
        runs = [self.run_it(cmd=["true"]).json["timings"] for _ in range(10)]
        for key in ("create_ms", "files_ms", "remove_ms", "total_ms"):
            median = statistics.median(run[key] for run in runs)
            print(f"run: {key} {median:.2f}")
        for run in runs:
            self.assertLessEqual(run["create_ms"] + run["remove_ms"], run["total_ms"])


if __name__ == "__main__":
    atoll.main()
