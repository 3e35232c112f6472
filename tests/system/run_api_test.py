"""POST /v1/run: one program, its files and artifacts, and nothing left."""
import base64
import http.client
import json
import statistics

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
        atoll.wait_for("the sandbox to be gone", self.gone, 20)

    def test_timings_add_up(self):
        runs = [self.run_it(cmd=["true"]).json["timings"] for _ in range(10)]
        for key in ("create_ms", "files_ms", "remove_ms", "total_ms"):
            median = statistics.median(run[key] for run in runs)
            print(f"run: {key} {median:.2f}")
        for run in runs:
            self.assertLessEqual(run["create_ms"] + run["remove_ms"], run["total_ms"])


if __name__ == "__main__":
    atoll.main()
