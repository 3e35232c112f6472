"""The kernel's memory that no limit counts: a sandbox that makes it grow by file locks is ended for
it, whatever its neighbour does. At most LOCKS of them are there, which is some 250 MiB."""
import atoll

GROWTH = 48 << 20  # from which on the warden looks for whoever it is
LOCKS = 1_000_000
# Locks of one byte each with a gap between them, which the kernel cannot join. It walks through all
# of a file for each new one, so they are few in a file, and there are many files. When there are
# enough, all are given back and it begins anew.
GROW = f"""
import fcntl, os, struct
for child in range(3):
    if os.fork() == 0:
        break
name = f"/dev/shm/{{os.getpid()}}-"
while True:
    files = [open(name + str(n), "w+b", buffering=0) for n in range(900)]
    for at in range({LOCKS} // 4 // 900):
        lock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 2 * at, 1, 0)
        for file in files:
            fcntl.fcntl(file, 37, lock)  # F_OFD_SETLK
    for file in files:
        file.close()
"""
# Busier in the kernel than the other, and charged for what it makes grow.
WORK = """
import os
kept, rounds = [], 0
while True:
    for n in range(200):
        with open(f"/home/user/{n}", "wb") as file:
            file.write(os.urandom(4096))
    for n in range(200):
        os.unlink(f"/home/user/{n}")
    if len(kept) < 60:
        kept.append(os.pipe())
    rounds += 1
    print(rounds, flush=True)
"""


def unreclaimable():
    for line in atoll.read("/proc/meminfo").splitlines():
        if line.startswith("SUnreclaim:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no SUnreclaim")


class KernelMemory(atoll.SystemTest):
    @classmethod
    def up_options(cls):
        return ("--kernel-memory-growth", str(GROWTH))

    def rounds(self, sandbox, exec_id):
        return self.atoll.output(sandbox, exec_id).count(b"\n")

    def test_who_makes_it_grow_is_ended_and_its_busy_neighbour_is_not(self):
        limits = {"memory_bytes": 64 << 20}
        neighbour, grower = (self.atoll.create(limits=limits, ttl_ms=900_000)["id"]
                             for _ in range(2))
        work = self.atoll.start(neighbour, ["python3", "-c", WORK], timeout_ms=600_000)["id"]
        atoll.wait_for("the neighbour to work", lambda: self.rounds(neighbour, work) > 5)
        before = unreclaimable()
        grow = self.atoll.start(grower, ["python3", "-c", GROW], timeout_ms=600_000)["id"]
        most = 0

        def failed():
            nonlocal most
            most = max(most, unreclaimable())
            shown = self.atoll.request("GET", f"/v1/sandboxes/{grower}").json
            return shown if shown["state"] == "failed" else None
        shown = atoll.wait_for("the sandbox to be ended", failed, 400)
        self.assertRegex(shown["failure"], "^kernel_memory: ")
        self.assertEqual(self.atoll.wait_ended(grower, grow)["verdict"], "sandbox_gone")
        print(f"SUnreclaim grew by {(most - before) >> 20} MiB at most", flush=True)
        self.atoll.delete(grower)
        atoll.wait_for("what it held to be free", lambda: unreclaimable() < before + GROWTH, 60)
        shown = self.atoll.request("GET", f"/v1/sandboxes/{neighbour}").json
        self.assertEqual(shown["state"], "running", shown)
        then = self.rounds(neighbour, work)
        atoll.wait_for("the neighbour to go on", lambda: self.rounds(neighbour, work) > then + 5)
        self.assertEqual(self.atoll.python(neighbour, "print(1)")["stdout"], "1\n")
        self.atoll.delete(neighbour)


if __name__ == "__main__":
    atoll.main()
