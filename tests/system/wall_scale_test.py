"""Many sandboxes of the walls with a kernel of their own: all alive at once, none that does nothing
uses the processor, and cycles leave nothing. ATOLL_TEST_LONG=1 tries the full numbers and judges
what idle ones use, which is printed either way."""
import concurrent.futures
import glob
import os
import time

import atoll

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
IDLE_SECONDS = 5 if LONG else 1
MOST_IDLE = 0.005  # of one processor, each
AT_ONCE = 4


def cpu_seconds(sandbox):
    """Of all that was ever in its groups; every group of version 2 counts that."""
    total = 0
    for path in glob.glob(f"/sys/fs/cgroup/**/atoll/*/{sandbox}/cpu.stat", recursive=True):
        facts = dict(line.split() for line in atoll.read(path).splitlines())
        total = max(total, int(facts.get("usage_usec", 0)))
    assert total > 0, "its groups count nothing"
    return total / 1e6


class WallScale:
    """Of one wall, which the classes below name."""
    limits = {"memory_bytes": 128 << 20}
    alive, cycles = 2, 2

    def ask(self, function, *arguments):
        """By a connection of its own, for it is asked by many at once."""
        client = atoll.Atoll(self.atoll.directory)
        try:
            return function(client, *arguments)
        finally:
            client.close()

    def make(self, client):
        return client.create(isolation=self.wall, limits=self.limits)["id"]

    @staticmethod
    def say(client, box):
        done = client.execute(box, ["sh", "-c", "echo well"])
        return done["stdout"], done["verdict"]

    def cycle(self, client):
        box = self.make(client)
        self.assertEqual(self.say(client, box), ("well\n", "ok"))
        client.delete(box)

    def each(self, function, boxes):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(lambda box: self.ask(function, box), boxes))

    def times(self, function, count):
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as threads:
            return list(threads.map(lambda _: self.ask(function), range(count)))

    def test_all_are_alive_and_idle_ones_use_no_processor(self):
        begin = time.monotonic()
        boxes = self.times(self.make, self.alive)
        print(f"\n{self.alive} made in {time.monotonic() - begin:.1f} s", flush=True)
        self.assertEqual(self.each(self.say, boxes), [("well\n", "ok")] * self.alive)
        time.sleep(1)
        before = {box: cpu_seconds(box) for box in boxes}
        time.sleep(IDLE_SECONDS)
        used = {box: (cpu_seconds(box) - before[box]) / IDLE_SECONDS for box in boxes}
        print(f"idle: {100 * sum(used.values()):.2f} % of a processor for all, "
              f"{100 * max(used.values()):.2f} % for the one that used most", flush=True)
        if LONG:
            self.assertEqual({box: part for box, part in used.items() if part > MOST_IDLE}, {})
        self.assertEqual(self.each(self.say, boxes), [("well\n", "ok")] * self.alive)
        self.each(lambda client, box: client.delete(box), boxes)

    def held(self):
        return {**self.atoll.inventory(), **self.atoll.fds(), "layers": self.atoll.subvolumes(),
                "agents": os.listdir(os.path.join(self.atoll.run_directory, "agents")),
                "isolates": os.listdir(os.path.join(self.atoll.run_directory, "isolates"))}

    def test_cycles_leave_nothing(self):
        self.ask(self.cycle)
        before = atoll.settled(self.held)
        begin = time.monotonic()
        self.times(self.cycle, self.cycles)
        took = time.monotonic() - begin
        print(f"\n{self.cycles} cycles, {1000 * took / self.cycles:.0f} ms each", flush=True)
        try:
            atoll.wait_until_as(before, self.held)
        except AssertionError:
            self.assertEqual(before, self.held())


class GvisorScale(WallScale, atoll.ImageTest):
    wall = "gvisor"
    template = os.path.basename(atoll.MONITORS["gvisor"])
    alive, cycles = (50, 200) if LONG else (4, 4)


class MicrovmScale(WallScale, atoll.ImageTest):
    wall = template = "microvm"
    alive, cycles = (20, 200) if LONG else (2, 2)


if __name__ == "__main__":
    atoll.main(alone=True)
