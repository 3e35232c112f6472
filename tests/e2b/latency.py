"""How long E2B's own Python and npm packages take for the calls that agents make most, on loopback,
as the client sees it. Not a test: prints the median of each. `tests/e2b/latency.py [ROUNDS]`
begins an Atoll of its own, with a pool; needs root."""
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

import clients

clients.enter_python()

import door  # noqa: E402
import e2b  # noqa: E402
import e2b_code_interpreter  # noqa: E402

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
CREATES = 50  # all alive at once: more do not fit into the budget of a small host


def median_ms(call, rounds=ROUNDS, between=0.0):
    call()
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
        time.sleep(between)
    return 1000 * statistics.median(times)


class Bench(door.DoorTest):
    pool = True

    def plain(self, sandbox):
        """The same by /v1, on one connection and without a package: what is ours of it."""
        connection = http.client.HTTPConnection(*self.atoll.address.split(":"))
        fields = {"Authorization": f"Bearer {self.atoll.key}", "Content-Type": "application/json"}

        def run():
            body = json.dumps({"cmd": ["/bin/bash", "-l", "-c", "true"], "wait": True})
            connection.request("POST", f"/v1/sandboxes/{sandbox}/execs", body, fields)
            answer = connection.getresponse()
            assert answer.status in (200, 201), answer.read()
            answer.read()

        def create():
            connection.request("POST", "/v1/sandboxes", '{"template": "base"}', fields)
            made = json.loads(connection.getresponse().read())
            connection.request("DELETE", f"/v1/sandboxes/{made['id']}", headers=fields)
            connection.getresponse().read()
        return {"plain /v1 exec of bash -l -c true": median_ms(run),
                "plain /v1 create and delete": median_ms(create, CREATES, between=0.2)}

    def python(self):
        made = []

        def create():
            made.append(e2b.Sandbox.create())
        figures = {"Python Sandbox.create()": median_ms(create, CREATES, between=0.2)}
        sandbox = made.pop()
        for one in made:
            one.kill()
        figures["Python commands.run('true')"] = median_ms(lambda: sandbox.commands.run("true"))
        write = sandbox.files.write
        figures["Python files.write, 1 byte"] = median_ms(lambda: write("/tmp/a", "x"))
        figures.update(self.plain(sandbox.sandbox_id))
        code = e2b_code_interpreter.Sandbox.create()
        figures["Python run_code('1+1')"] = median_ms(lambda: code.run_code("1+1"))
        code.kill()
        sandbox.kill()
        return figures

    def node(self):
        if not shutil.which("node"):
            return {}
        directory = clients.node_directory()
        shutil.copy(os.path.join(clients.HERE, "latency.mjs"), directory)
        done = subprocess.run(["node", "latency.mjs", str(ROUNDS), str(CREATES)], cwd=directory,
                              check=True, capture_output=True, text=True, timeout=600)
        return json.loads(done.stdout)

    def test_print_medians(self):
        for name, milliseconds in {**self.python(), **self.node()}.items():
            print(f"{name:45} {milliseconds:8.2f} ms", flush=True)


if __name__ == "__main__":
    del sys.argv[1:]
    door.atoll.main()
