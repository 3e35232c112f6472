"""Guests whose own kernel is against us: they reboot, panic, spin with interrupts off, fill their
disk, flood their stream, lie in it or end. Nobody else is harmed, and what is left of them goes.
Times, memory and shares of a processor are printed, and judged with ATOLL_TEST_LONG=1.

Programs have no right to any of that, so the agent that is installed here is another one: keepers
and agent are the real ones, /init of a machine and process 1 inside of gVisor do the deed that a
file names (programs/hostile_deeds.h)."""
import glob
import os
import statistics
import time
import unittest

import atoll
from upgrade_test import Installed

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
LIMITS = {"memory_bytes": 128 << 20, "disk_bytes": 64 << 20, "cpu": 1}
MOST_GROWN = 16 << 20  # of atolld, in bytes
MOST_SLOWER, ROOM = 10, 1.0  # times that a neighbour's answer may take, and seconds besides
TIME_MS = 5000  # of an exec whose end nobody tells; enough to begin the deed on a busy host
SILENCE = 30  # seconds beyond its time that an exec may be silent before its sandbox is failed


def resident_bytes(pid):
    return int(atoll.read(f"/proc/{pid}/statm").split()[1]) * 4096


def groups_of(box):
    return glob.glob(f"/sys/fs/cgroup/**/atoll/*/{box}", recursive=True)


class HostileGuests:
    """Behind one wall, which the classes below name."""
    ends_itself, goes_on = (), ()

    @classmethod
    def setUpClass(cls):
        image = atoll.MONITORS[cls.template]
        if not os.path.exists(os.path.join(image, "image.erofs")):
            raise unittest.SkipTest(f"the image of {cls.template} is not built: "
                                    f"make images IMAGES={cls.template}")
        cls.atoll = Installed()
        cls.atoll.install("atoll-agent", "agent-with-hostile-guests")
        cls.atoll.up()
        cls.atoll.cli("template", "add", image)
        cls.neighbours = [cls.atoll.create(isolation=wall, limits=LIMITS)["id"]
                          for wall in ("jail", cls.template)]
        cls.usual = {box: cls.median(box) for box in cls.neighbours}
        cls.held = atoll.settled(cls.inventory)

    @classmethod
    def tearDownClass(cls):
        for box in cls.neighbours:
            cls.atoll.delete(box)
        cls.atoll.destroy()

    @classmethod
    def inventory(cls):
        """Of this service; that of the host is compared when all is over."""
        return {**cls.atoll.fds(), "layers": cls.atoll.subvolumes(), "zombies": 0,
                **{part: sorted(os.listdir(os.path.join(cls.atoll.run_directory, part)))
                   for part in ("agents", "isolates")}}

    @classmethod
    def answer(cls, box):
        begin = time.monotonic()
        assert cls.atoll.execute(box, ["echo", "well"])["stdout"] == "well\n"
        return time.monotonic() - begin

    @classmethod
    def median(cls, box):
        return statistics.median(cls.answer(box) for _ in range(5))

    def check_neighbours(self, deed):
        for box, usual in self.usual.items():
            took = self.median(box)
            print(f"{deed}: a neighbour answers in {1000 * took:.0f} ms, as usual "
                  f"{1000 * usual:.0f} ms", flush=True)
            if LONG:
                self.assertLess(took, MOST_SLOWER * usual + ROOM)

    def begin(self, deed, timeout_ms=600_000):
        box = self.atoll.create(isolation=self.template, limits=LIMITS)["id"]
        ran = self.atoll.start(box, ["sh", "-c", f"echo {deed} > /tmp/deed; sleep 600"],
                               timeout_ms=timeout_ms)
        return box, ran["id"]

    def check_failed(self, box, ran, seconds=60):
        begin = time.monotonic()
        self.assertEqual(self.atoll.wait_ended(box, ran, seconds)["verdict"], "sandbox_gone")
        self.assertEqual(self.atoll.request("GET", f"/v1/sandboxes/{box}").json["state"], "failed")
        return time.monotonic() - begin

    def check_deleted(self, deed, box):
        begin = time.monotonic()
        self.atoll.delete(box)
        took = time.monotonic() - begin
        print(f"{deed}: deleted in {1000 * took:.0f} ms", flush=True)
        if LONG:
            self.assertLess(took, 3.0)
        self.assertEqual(groups_of(box), [])
        atoll.wait_until_as(self.held, self.inventory)

    def check_grown(self, deed, before):
        grown = resident_bytes(self.atoll.daemon_pid) - before
        print(f"{deed}: atolld has {grown / (1 << 20):.1f} MiB more", flush=True)
        if LONG:
            self.assertLess(grown, MOST_GROWN)

    def test_those_that_end_fail_their_sandbox(self):
        for deed in self.ends_itself:
            with self.subTest(deed):
                before = resident_bytes(self.atoll.daemon_pid)
                box, ran = self.begin(deed)
                print(f"{deed}: failed after {self.check_failed(box, ran):.2f} s", flush=True)
                self.check_neighbours(deed)
                self.check_grown(deed, before)
                self.check_deleted(deed, box)

    def test_those_that_go_on_harm_nobody_and_are_deleted(self):
        for deed in self.goes_on:
            with self.subTest(deed):
                before = resident_bytes(self.atoll.daemon_pid)
                box, _ = self.begin(deed)
                time.sleep(1)
                self.check_neighbours(deed)
                self.check_grown(deed, before)
                self.check_deleted(deed, box)

    @unittest.skipUnless(LONG, "waits for half a minute of silence: ATOLL_TEST_LONG=1")
    def test_those_that_are_silent_fail_when_their_time_is_up(self):
        for deed in self.silent:
            with self.subTest(deed):
                box, ran = self.begin(deed, TIME_MS)
                took = self.check_failed(box, ran, 3 * SILENCE)
                print(f"{deed}: failed after {took:.1f} s", flush=True)
                self.check_deleted(deed, box)


class HostileMachines(HostileGuests, atoll.SystemTest):
    template = "microvm"
    ends_itself = ("reboot", "power-off", "panic", "exit", "garbage", "lie")
    goes_on = ("halt", "spin", "disk", "flood")
    silent = ("spin", "flood")

    def test_one_that_spins_uses_its_processor_and_answers_nothing(self):
        """Else the deed would not be what it is called."""
        box, ran = self.begin("spin", TIME_MS)
        is_up = time.monotonic() + TIME_MS / 1000
        stat = glob.glob(f"/sys/fs/cgroup/**/atoll/*/{box}/cpu.stat", recursive=True)

        def used():
            return max(int(line.split()[1]) for path in stat
                       for line in atoll.read(path).splitlines() if line.startswith("usage_usec"))
        time.sleep(max(0.0, is_up - time.monotonic()))
        before, begin = used(), time.monotonic()
        atoll.wait_for("a second of a processor", lambda: used() - before > 1e6)
        share = (used() - before) / 1e6 / (time.monotonic() - begin)
        print(f"spin: {100 * share:.0f} % of a processor", flush=True)
        if LONG:
            self.assertGreater(share, 0.2, "others may want it too")
        answer = self.atoll.show_exec(box, ran)
        self.assertEqual(answer["state"], "running", "its time was up")
        self.check_deleted("spin", box)


class HostileSentries(HostileGuests, atoll.SystemTest):
    template = "gvisor"
    ends_itself = ("garbage", "lie", "end-process-1")
    # "exit" is of the one that passes the stream on: process 1 lives, and is heard no more.
    goes_on = ("flood", "exit")
    silent = ("flood", "exit")


if __name__ == "__main__":
    atoll.main(alone=True)
