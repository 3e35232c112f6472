"""Seven bombs beside a neighbour, one after another: it works on, the verdict names the limit, and
delete takes them away. How long that takes and by how much atolld grows is printed, and judged by
`make test-long`, which measures for as long as the figures need.
"""
import os
import statistics
import time

import atoll

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
ROUNDS = 300 if LONG else 20
DISK_BYTES = (64 if LONG else 16) << 20
MEMORY_BYTES = (128 if LONG else 64) << 20
OUTPUT_MIB = 10240 if LONG else 64
# Of one that never ends; the others have time enough to come to their limit.
ENDLESS_MS, ENDING_MS = 20_000 if LONG else 5000, 300_000

# name, program, fields of the exec, verdicts that name the limit, and the bit in limits_hit
FORK = """
import os
while True:
    try:
        os.fork()
    except OSError:
        os._exit(1) if os.getpid() % 7 else None
"""
BOMBS = [
    ("fork bomb", FORK, {"timeout_ms": ENDLESS_MS}, {"pids_limit", "wall_time"}, "pids"),
    ("memory bomb", "x = []\nwhile True: x.append(bytearray(1 << 20))", {}, {"oom"}, "memory"),
    ("disk fill", "f = open('/tmp/fill', 'wb')\nwhile True: f.write(bytes(1 << 20))", {},
     {"disk_limit"}, "disk"),
    ("inode fill", "import os\ni = 0\nos.makedirs('/tmp/i', exist_ok=True)\n"
     "while True:\n open(f'/tmp/i/{i}', 'w').write('x' * 3000)\n i += 1", {},
     {"disk_limit"}, "disk"),
    ("much output", "import os\nb = b'x' * (1 << 20)\n"
     f"for _ in range({OUTPUT_MIB}): os.write(1, b)",
     {"limits": {"output_bytes": 1 << 20}}, {"ok"}, "output"),
    ("descriptors", "import os\nwhile True: os.dup(0)", {}, {"nonzero"}, None),
    ("zombies", "import os\nwhile True:\n if os.fork() == 0: os._exit(0)", {}, {"pids_limit"},
     "pids"),
]


def resident_bytes(pid):
    for line in atoll.read(f"/proc/{pid}/status").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    return 0


class Abuse(atoll.SystemTest):
    def setUp(self):
        self.neighbour = self.atoll.create()["id"]

    def tearDown(self):
        self.atoll.delete(self.neighbour)

    def beats(self, rounds=ROUNDS):
        """Milliseconds of each exec of the neighbour, through a connection of its own."""
        times = []
        for _ in range(rounds):
            begin = time.monotonic()
            done = self.atoll.execute(self.neighbour, ["/bin/true"])
            times.append(1000 * (time.monotonic() - begin))
            self.assertEqual(done["verdict"], "ok")
        return sorted(times)

    def bomb(self, code, fields, limits):
        sandbox = self.atoll.create(limits=limits)["id"]
        started = self.atoll.start(sandbox, ["python3", "-c", code],
                                   **{"timeout_ms": ENDING_MS, **fields})
        return sandbox, started["id"]

    def delete_in_time(self, sandbox):
        begin = time.monotonic()
        self.atoll.delete(sandbox)
        return time.monotonic() - begin

    def test_each_bomb_is_named_and_the_neighbour_lives(self):
        before = resident_bytes(self.atoll.daemon_pid)
        idle = self.beats()
        limits = {"memory_bytes": MEMORY_BYTES, "disk_bytes": DISK_BYTES, "pids": 64, "cpu": 1.0}
        slowest_delete, under_load = 0.0, []
        for name, code, fields, verdicts, bit in BOMBS:
            with self.subTest(name):
                sandbox, exec_id = self.bomb(code, fields, limits)
                under_load += self.beats(ROUNDS // len(BOMBS) + 1)
                done = self.atoll.wait_ended(sandbox, exec_id, ENDING_MS / 1000)
                self.assertIn(done["verdict"], verdicts, done)
                if bit:
                    self.assertIn(bit, done["limits_hit"], done)
                slowest_delete = max(slowest_delete, self.delete_in_time(sandbox))
        grown = resident_bytes(self.atoll.daemon_pid) - before
        under_load.sort()
        p95 = [times[int(0.95 * len(times))] for times in (idle, under_load)]
        p99 = under_load[int(0.99 * len(under_load))]
        print(f"\nneighbour exec p50 {statistics.median(idle):.1f} → "
              f"{statistics.median(under_load):.1f} ms, p95 {p95[0]:.1f} → {p95[1]:.1f} ms "
              f"({p95[1] / p95[0]:.1f}×), p99 {p99:.1f} ms; slowest delete "
              f"{1000 * slowest_delete:.0f} ms; atolld grew by {grown / (1 << 20):.1f} MiB",
              flush=True)
        if LONG:
            self.assertLess(grown, 64 << 20)
            self.assertLess(slowest_delete, 1.0)

    def test_five_thousand_processes_are_killed(self):
        count = 5000 if LONG else 500
        sandbox = self.atoll.create(limits={"pids": count + 100, "memory_bytes": 8 << 30})["id"]
        code = ("import os, sys, time\n"
                f"for i in range({count}):\n"
                "    if os.fork() == 0:\n        time.sleep(600)\n        os._exit(0)\n"
                "print('all', flush=True)\ntime.sleep(600)")
        started = self.atoll.start(sandbox, ["python3", "-c", code], timeout_ms=300000)
        atoll.wait_for("all processes", lambda: b"all" in self.atoll.output(
            sandbox, started["id"]), 120)
        took = self.delete_in_time(sandbox)
        print(f"\n{count} processes: delete took {1000 * took:.0f} ms", flush=True)
        if LONG:
            self.assertLess(took, 1.0)


if __name__ == "__main__":
    atoll.main(alone=True)
