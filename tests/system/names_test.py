"""Names, generations, keys of requests and changes of sandboxes that run, on the real kernel."""
import concurrent.futures
import json
import os
import random
import signal
import sqlite3
import tempfile
import threading
import time

import atoll
import chosen

MIB = 1 << 20
SANDBOXES = "/v1/sandboxes"


class Names(atoll.SystemTest):
    def tearDown(self):
        self.atoll.wait_ready()
        for sandbox in self.listed():
            self.atoll.delete(sandbox["id"])
        self.assertEqual(self.atoll.subvolumes(), [])

    def listed(self, query=""):
        return self.atoll.request("GET", SANDBOXES + query).json["sandboxes"]

    def code(self, answer):
        return answer.json["error"]["code"]

    def at_once(self, count, body, headers=None):
        """The same POST from as many clients at once."""
        def post(_):
            client = atoll.Atoll(self.atoll.directory)
            try:
                return client.request("POST", SANDBOXES, body, headers=headers)
            finally:
                client.close()
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            return list(pool.map(post, range(count)))

    def test_of_creates_at_once_exactly_one_gets_the_name(self):
        answers = self.at_once(8, {"template": "python", "name": "build"})
        self.assertEqual(sorted(answer.status for answer in answers), [201] + [409] * 7)
        shown = self.atoll.request("GET", f"{SANDBOXES}/build").json
        self.assertEqual(shown["name"], "build")
        self.assertEqual(self.atoll.python("build", "print(1)")["stdout"], "1\n")
        answers = self.at_once(4, {"template": "python", "name": "build",
                                   "on_name_conflict": "use"})
        self.assertEqual([(a.status, a.json["id"]) for a in answers], [(200, shown["id"])] * 4)
        self.atoll.delete("build")
        answers = self.at_once(8, {"template": "python", "name": "build",
                                   "on_name_conflict": "use"})
        self.assertEqual(sorted(answer.status for answer in answers), [200] * 7 + [201])
        self.assertEqual(len({answer.json["id"] for answer in answers}), 1)

    def test_a_name_and_a_change_survive_a_kill_of_the_daemon(self):
        sandbox = self.atoll.create(name="build", metadata={"team": "a"})
        changed = self.atoll.request("PATCH", f"{SANDBOXES}/build", {
            "ttl_ms": 3_600_000, "metadata": {"team": "b"}, "limits": {"pids": 33}})
        self.assertEqual(changed.status, 200, changed.body)
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        self.atoll.wait_ready()
        shown = self.atoll.request("GET", f"{SANDBOXES}/build",
                                   headers={"Atoll-Generation": "1"}).json
        self.assertEqual(shown["id"], sandbox["id"])
        self.assertEqual((shown["ttl_ms"], shown["limits"]["pids"]), (3_600_000, 33))
        self.assertEqual([one["id"] for one in self.listed("?state=running&metadata=team:b")],
                         [sandbox["id"]])
        stale = self.atoll.request("GET", f"{SANDBOXES}/build", headers={"Atoll-Generation": "2"})
        self.assertEqual((stale.status, self.code(stale)), (409, "stale_generation"))

    def test_changed_limits_hold_for_what_runs_and_are_in_the_receipt(self):
        limits = {"memory_bytes": 128 * MIB, "disk_bytes": 64 * MIB}
        sandbox = self.atoll.create(limits=limits)["id"]
        path = f"{SANDBOXES}/{sandbox}"
        hog = "bytearray({} << 20); print('held')"
        self.assertEqual(self.atoll.python(sandbox, hog.format(160))["verdict"], "oom")
        grown = self.atoll.request("PATCH", path, {"limits": {
            "memory_bytes": 256 * MIB, "disk_bytes": 96 * MIB, "cpu": 0.5, "pids": 40,
            "output_bytes": 4}})
        self.assertEqual(grown.status, 200, grown.body)
        self.assertEqual(self.atoll.python(sandbox, hog.format(160))["stdout"], "held")
        fill = "open('/tmp/big', 'wb').write(bytes(80 << 20))"
        self.assertEqual(self.atoll.python(sandbox, fill)["verdict"], "ok")
        receipt = self.atoll.request("GET", path + "/receipt")
        facts = {fact["name"]: fact["outside"] for fact in receipt.json["receipt"]["facts"]}
        self.assertEqual((facts["limits.memory_bytes"], facts["limits.pids"],
                          facts["limits.cpu_millis"], facts["limits.disk_bytes"]),
                         (str(256 * MIB), "40", "500", str(96 * MIB)))
        with tempfile.NamedTemporaryFile() as file:
            file.write(receipt.body)
            file.flush()
            self.atoll.cli("receipt", "verify", file.name)

    def test_memory_in_use_is_not_taken_away(self):
        sandbox = self.atoll.create(limits={"memory_bytes": 256 * MIB})["id"]
        program = "import time; x = bytearray(120 << 20); print('held', flush=True); time.sleep(99)"
        holder = self.atoll.start(sandbox, ["python3", "-c", program], timeout_ms=600_000)["id"]
        atoll.wait_for("the memory to be held",
                       lambda: self.atoll.output(sandbox, holder) == b"held\n")
        path = f"{SANDBOXES}/{sandbox}"
        refused = self.atoll.request("PATCH", path, {"limits": {"memory_bytes": 64 * MIB,
                                                                "pids": 20}})
        self.assertEqual((refused.status, self.code(refused)), (409, "memory_in_use"))
        limits = self.atoll.request("GET", path).json["limits"]
        self.assertEqual((limits["memory_bytes"], limits["pids"]), (256 * MIB, 256))
        self.assertEqual(self.atoll.show_exec(sandbox, holder)["state"], "running")
        shrunk = self.atoll.request("PATCH", path, {"limits": {"memory_bytes": 192 * MIB}})
        self.assertEqual(shrunk.status, 200, shrunk.body)

    def test_of_a_hundred_equal_requests_one_happens(self):
        answers = self.at_once(100, {"template": "python"}, {"Idempotency-Key": "hundred"})
        self.assertEqual({answer.status for answer in answers}, {201})
        self.assertEqual(len({answer.body for answer in answers}), 1)
        self.assertEqual(len(self.listed()), 1)
        other = self.atoll.request("POST", SANDBOXES, {"template": "python", "ttl_ms": 5000},
                                   headers={"Idempotency-Key": "hundred"})
        self.assertEqual((other.status, self.code(other)), (422, "idempotency_key_reused"))

    def made(self, key):
        """Of the row of a key: what was made for it and the status that was stored."""
        path = os.path.join(self.atoll.directory, "daemon", "atoll.db")
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return database.execute("SELECT sandbox_id, exec, status FROM idempotency_keys "
                                    "WHERE idempotency_key = ?", (key,)).fetchone()
        finally:
            database.close()

    def kill_after(self, path, body, key, condition):
        """Posts, kills atolld when the key's row fulfils the condition, and gives the answer."""
        client = atoll.Atoll(self.atoll.directory)
        headers = {"Idempotency-Key": key}
        answers = []
        thread = threading.Thread(target=lambda: answers.append(
            client.try_request("POST", path, body, headers=headers)))
        thread.start()
        atoll.wait_for("the row of the key", lambda: condition(self.made(key)))
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        thread.join()
        client.close()
        self.atoll.close()
        self.atoll.wait_ready()
        return answers[0]

    def test_create_happens_once_though_the_daemon_is_killed_before_its_answer(self):
        answered, chance = 0, random.Random(chosen.seed("ATOLL_NAMES_SEED"))
        for turn in range(12):
            key, tag = f"create-{turn}", f"tag:{turn}"
            body = {"template": "python", "metadata": {"tag": str(turn)}}
            pause = chance.choice((0, chance.uniform(0, 0.02)))

            def made(row):
                if row and row[0]:
                    time.sleep(pause)
                    return True
                return False
            first = self.kill_after(SANDBOXES, body, key, made)
            answered += first.status == 201
            again = self.atoll.request("POST", SANDBOXES, body, headers={"Idempotency-Key": key})
            self.assertEqual(again.status, 201, again.body)
            listed = self.listed(f"?metadata={tag}")
            self.assertEqual([one["id"] for one in listed], [again.json["id"]])
            if first.status == 201:
                self.assertEqual(first.body, again.body)
            self.atoll.delete(again.json["id"])
        print(f"killed 12 times, {answered} of them after the answer", flush=True)

    def test_exec_runs_once_though_the_daemon_is_killed_before_its_answer(self):
        sandbox = self.atoll.create()["id"]
        path = f"{SANDBOXES}/{sandbox}/execs"
        program = "import time; open('/tmp/runs', 'a').write('x'); time.sleep(1); print('done')"
        body = {"cmd": ["python3", "-c", program], "wait": True}
        self.kill_after(path, body, "exec", lambda row: row and row[1])
        again = self.atoll.request("POST", path, body, headers={"Idempotency-Key": "exec"})
        self.assertEqual(again.status, 200, again.body)
        self.assertEqual(again.headers.get("Idempotency-Replayed"), "true")
        replayed = self.atoll.request("POST", path, body, headers={"Idempotency-Key": "exec"})
        self.assertEqual(replayed.body, again.body)
        execs = self.atoll.request("GET", path).json["execs"]
        self.assertEqual([one["id"] for one in execs], [again.json["id"]])
        if again.json["verdict"] == "ok":
            self.assertEqual(again.json["stdout"], "done\n")
            runs = self.atoll.python(sandbox, "print(open('/tmp/runs').read())")
            self.assertEqual(runs["stdout"], "x\n")
        else:  # killed before the agent had it: it never ran, and that is the answer
            self.assertEqual(again.json["verdict"], "platform_error", json.dumps(again.json))


if __name__ == "__main__":
    atoll.main()
