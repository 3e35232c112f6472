"""The rate of disk bytes, where the io controller is in version 2: a program that writes or reads
more has to wait, another sandbox does not."""
import json
import os
import sys

import atoll

MIB = 1 << 20
RATE = MIB
MOVED = 8 * MIB
# The kernel lets a little pass at once, and the last bytes need not be waited for.
LEAST_SECONDS = 0.6 * MOVED / RATE

# Past the page cache. A write into it costs the disk nothing yet, and fsync is nothing on a layer,
# which dies with its sandbox.
DIRECT = f"""
import mmap, os, time
block = mmap.mmap(-1, 1 << 20)
block.write(os.urandom(1 << 20))
fd = os.open("/tmp/data", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
begin = time.monotonic()
for i in range({MOVED // MIB}):
    assert os.pwritev(fd, [block], i << 20) == 1 << 20
middle = time.monotonic()
for i in range({MOVED // MIB}):
    assert os.preadv(fd, [block], i << 20) == 1 << 20
print(middle - begin, time.monotonic() - middle)
"""

# What a sandbox may have in memory needs no disk; the rest has to be written.
MEMORY = 64 * MIB
BUFFERED_RATE = 4 * MIB
BUFFERED = MEMORY + 6 * BUFFERED_RATE
LEAST_BUFFERED_SECONDS = 0.6 * (BUFFERED - MEMORY) / BUFFERED_RATE
BUFFERED_WRITES = f"""
import os, time
begin = time.monotonic()
with open("/tmp/data", "wb") as file:
    for _ in range({BUFFERED // MIB}):
        file.write(os.urandom(1 << 20))
print(time.monotonic() - begin)
"""


def io_is_in_v2():
    for line in atoll.read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            controllers = os.path.join(before.split()[4], "cgroup.controllers")
            return "io" in atoll.read(controllers).split()
    return False


class DiskRate(atoll.SystemTest):
    def seconds(self, sandbox, code):
        done = self.atoll.python(sandbox, code, timeout_ms=300000)
        self.assertEqual(done["verdict"], "ok", done)
        return [float(word) for word in done["stdout"].split()]

    def seconds_with(self, code, **limits):
        sandbox = self.atoll.create(limits=limits)["id"]
        try:
            shown = self.atoll.request("GET", f"/v1/sandboxes/{sandbox}")
            for name, value in limits.items():
                self.assertEqual(json.loads(shown.body)["limits"][name], value)
            return self.seconds(sandbox, code)
        finally:
            self.atoll.delete(sandbox)

    def test_holds_back_writes_and_reads(self):
        free = self.seconds_with(DIRECT)
        slow = self.seconds_with(DIRECT, disk_bytes_per_second=RATE)
        print(f"\n{MOVED // MIB} MiB written, read: at {RATE // MIB} MiB/s {slow[0]:.1f}, "
              f"{slow[1]:.1f} s, without a rate {free[0]:.1f}, {free[1]:.1f} s", flush=True)
        if os.environ.get("ATOLL_TEST_LONG"):
            self.assertLess(max(free), LEAST_SECONDS)
        self.assertGreater(min(slow), LEAST_SECONDS)

    def test_holds_back_writes_through_the_page_cache(self):
        slow = self.seconds_with(BUFFERED_WRITES, memory_bytes=MEMORY, disk_bytes=256 * MIB,
                                 disk_bytes_per_second=BUFFERED_RATE)
        print(f"\n{BUFFERED // MIB} MiB through {MEMORY // MIB} MiB of memory at "
              f"{BUFFERED_RATE // MIB} MiB/s: {slow[0]:.1f} s", flush=True)
        self.assertGreater(slow[0], LEAST_BUFFERED_SECONDS)


if __name__ == "__main__":
    if not io_is_in_v2():
        print("SKIPPED: the io controller is not in the version 2 tree, so there are no disk rates")
        sys.exit(77)
    atoll.main(alone=True)
