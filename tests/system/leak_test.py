"""Create, run, delete, many times: afterwards the host holds what it held before.

`make test-long` runs 1,000 cycles, `make test` 60.
"""
import os
import time

import atoll

CYCLES = 1000 if os.environ.get("ATOLL_TEST_LONG") else 60


class Leak(atoll.SystemTest):
    def cycle(self):
        sandbox = self.atoll.create()["id"]
        done = self.atoll.python(sandbox, "print(1)")
        self.assertEqual((done["verdict"], done["stdout"]), ("ok", "1\n"))
        self.atoll.delete(sandbox)

    def held(self):
        return {**self.atoll.inventory(), **self.atoll.fds(), "layers": self.atoll.subvolumes(),
                "agents": os.listdir(os.path.join(self.atoll.run_directory, "agents")),
                "isolates": os.listdir(os.path.join(self.atoll.run_directory, "isolates")),
                "outputs": os.listdir(os.path.join(self.atoll.directory, "daemon", "outputs"))}

    def test_cycles_leave_nothing(self):
        for _ in range(5):  # the first ones open what stays open: pool, image, database pages
            self.cycle()
        before = atoll.settled(self.held)
        begin = time.monotonic()
        for _ in range(CYCLES):
            self.cycle()
        took = time.monotonic() - begin
        print(f"\n{CYCLES} cycles, {1000 * took / CYCLES:.1f} ms each", flush=True)
        try:
            atoll.wait_until_as(before, self.held)
        except AssertionError:
            self.assertEqual(before, self.held())


if __name__ == "__main__":
    atoll.main()
