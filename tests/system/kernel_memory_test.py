"""Memory that the kernel keeps for a program and charges to nobody: each way of making it grow, in
a small sandbox beside a neighbour, judged by what the host says and not only by the group.

What is judged moves little by what others do on this host: slabs that cannot be freed, the buffers
of TCP and UDP, the count of asynchronous I/O, code compiled from filters. MemAvailable is judged
too where nothing else runs (`make test-long`).
"""
import os
import re
import time

import atoll

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
MIB = 1 << 20
LIMIT = 64 * MIB
SANDBOXES = 20 if LONG else 1
# A program stops by itself; a test that goes wrong must not fill the host before.
STOP = 300 * MIB
SPARE = 256 * MIB if LONG else 96 * MIB
# Of compiled filters: of our own, and those of other tests on this host.
MOST_COMPILED = 16 * MIB

CALLS = """
import ctypes, os, resource, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    ctypes.set_errno(0)
    values = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    return libc.syscall(*values), ctypes.get_errno()
def hold(word):
    print(word, flush=True)
    time.sleep(600)
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
"""

# Acknowledgements that nobody reads.
NETLINK = """
kept = []
request = struct.pack("=IHHIIBxHiII", 32, 16, 5, 1, 0, 0, 0, 0x7fffffff, 0, 0)
try:
    for _ in range(200):
        s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        kept.append(s)
        for _ in range(2000): s.send(request)
except OSError as e:
    hold(f"refused {e.errno}")
hold("done")
"""

TCP = """
listener = socket.create_server(("127.0.0.1", 0), backlog=64)
kept, sent, piece = [], 0, bytes(1 << 16)
for _ in range(120):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    s.settimeout(2)
    try:
        s.connect(listener.getsockname())
        kept += [s, listener.accept()[0]]
        s.setblocking(False)
        while sent < 1 << 30: sent += s.send(piece)
    except OSError:
        pass
hold("done")
"""

UDP = """
kept = []
for _ in range(300):
    s = socket.socket(type=socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.bind(("127.0.0.1", 0))
    kept.append(s)
    try:
        for _ in range(40): s.sendto(bytes(60000), s.getsockname())
    except OSError:
        pass
hold("done")
"""

# The largest list that is taken, for as many directories as there may be.
ACL = """
def acl(users):
    entry = lambda tag, rights, who=0xffffffff: struct.pack("=HHI", tag, rights, who)
    return struct.pack("=I", 2) + entry(1, 7) + b"".join(
        entry(2, 7, i) for i in range(users)) + entry(4, 7) + entry(16, 7) + entry(32, 7)
os.makedirs("/dev/shm/acl", exist_ok=True)
users = 8000
while users:
    try:
        os.setxattr("/dev/shm/acl", "system.posix_acl_default", acl(users))
        break
    except OSError:
        users //= 2
made = 0
try:
    for made in range(3000 if users > 1000 else 70000):
        os.mkdir(f"/dev/shm/acl/{made}")
except OSError:
    pass
hold(f"done {users} {made}")
"""

ACL_OF_MEMORY_FILES = ACL.split("os.makedirs")[0] + """
kept, users = [], 8000
for _ in range(8):
    if os.fork(): continue
    for _ in range(900):
        fd = os.memfd_create("m")
        for size in (8000, 1000, 500, 250, 120, 60, 30):
            try:
                os.setxattr(fd, "system.posix_acl_access", acl(size))
                break
            except OSError:
                pass
    time.sleep(600)
time.sleep(5)
hold("done")
"""

# The policies stay with the file when it is not mapped any more.
POLICIES = """
pages, fd = 30000, os.memfd_create("m")
os.ftruncate(fd, 1 << 36)
nodes = ctypes.c_ulong(1)
for part in range(40):
    size = 8192 * pages
    libc.mmap.restype = ctypes.c_long
    address = libc.mmap(None, ctypes.c_long(size), 3, 1, fd, ctypes.c_long(size * part))
    for i in range(pages):
        result, error = call(237, address + 8192 * i, 4096, 1, ctypes.byref(nodes), 64, 0)
        if result != 0: hold(f"refused {error}")
    call(11, address, size)
hold("done")
"""

ASYNCHRONOUS = """
for _ in range(512):
    context = ctypes.c_ulong(0)
    result, error = call(206, 128, ctypes.byref(context))
    if result != 0: hold(f"refused {error}")
hold("done")
"""

# 64 processes, each with as many instructions as a process may have.
FILTERS = """
length = 4090
code = struct.pack("=HBBI", 0, 0, 0, 0) * (length - 1)
code += struct.pack("=HBBI", 6, 0, 0, 0x7fff0000)
keep = ctypes.create_string_buffer(code)
program = struct.pack("=HxxxxxxQ", length, ctypes.addressof(keep))
libc.prctl(38, 1, 0, 0, 0)
error = 0
for _ in range(64):
    if os.fork(): continue
    for _ in range(7):
        result, error = call(317, 1, 0, program)
        if result != 0: break
    time.sleep(600)
time.sleep(3)
hold("done")
"""

SOCKET_FILTERS = FILTERS.split("libc.prctl")[0] + """
kept = []
for _ in range(1000):
    s = socket.socket(type=socket.SOCK_DGRAM)
    try:
        s.setsockopt(socket.SOL_SOCKET, 26, program)
    except OSError as e:
        hold(f"refused {e.errno}")
    kept.append(s)
hold("done")
"""

WAYS = {"netlink": NETLINK, "tcp": TCP, "udp": UDP, "access lists": ACL,
        "access lists of memory files": ACL_OF_MEMORY_FILES, "memory policies": POLICIES,
        "asynchronous I/O": ASYNCHRONOUS, "filters of calls": FILTERS,
        "filters of sockets": SOCKET_FILTERS}


def number_in(path, pattern):
    found = re.search(pattern, atoll.read(path))
    return int(found.group(1)) if found else 0


def compiled_bytes():
    """Of filters. The kernel shows them as areas of its address space, whole packs of them."""
    return sum(int(line.split()[1]) for line in atoll.read("/proc/vmallocinfo").splitlines()
               if "bpf_" in line)


def held_by_kernel():
    sockets = sum(number_in("/proc/net/sockstat", kind + r": .*\bmem (\d+)")
                  for kind in ("TCP", "UDP"))
    return number_in("/proc/meminfo", r"SUnreclaim: +(\d+)") * 1024 + sockets * 4096


def available():
    return number_in("/proc/meminfo", r"MemAvailable: +(\d+)") * 1024


class KernelMemory(atoll.SystemTest):
    def grow(self, code):
        """What it says, and the most that the host gave for it."""
        # What ended before is freed later, so growth is counted from the least that was seen.
        least, available_before = held_by_kernel(), available()
        compiled, aio = compiled_bytes(), number_in("/proc/sys/fs/aio-nr", r"(\d+)")
        limits = {"memory_bytes": LIMIT, "pids": 256}
        sandboxes = [self.atoll.create(limits=limits)["id"] for _ in range(SANDBOXES)]
        execs = [self.atoll.start(sandbox, ["python3", "-c", CALLS + code], timeout_ms=120000)["id"]
                 for sandbox in sandboxes]
        grown = fallen = 0

        def is_over():
            nonlocal grown, fallen, least
            now = held_by_kernel()
            least = min(least, now)
            grown = max(grown, now - least)
            fallen = max(fallen, available_before - available())
            return grown > STOP * SANDBOXES or all(
                b"\n" in self.atoll.output(sandbox, number) or
                self.atoll.show_exec(sandbox, number)["state"] != "running"
                for sandbox, number in zip(sandboxes, execs))

        atoll.wait_for("the end of its growth", is_over, 120)
        is_over()
        aio = number_in("/proc/sys/fs/aio-nr", r"(\d+)") - aio
        compiled = compiled_bytes() - compiled
        said = self.atoll.output(sandboxes[0], execs[0]).decode().strip()
        for sandbox in sandboxes:
            self.atoll.delete(sandbox)
        return said, grown, fallen, compiled, aio

    def test_no_way_takes_more_of_the_host_than_the_limit(self):
        neighbour = self.atoll.create()["id"]
        for name, code in WAYS.items():
            with self.subTest(name):
                begin = time.monotonic()
                said, grown, fallen, compiled, aio = self.grow(code)
                print(f"\n{name}: {said or 'nothing said'}; kernel memory +{grown // MIB} MiB, "
                      f"MemAvailable -{fallen // MIB} MiB, compiled +{compiled // MIB} MiB, "
                      f"aio +{aio}, "
                      f"{time.monotonic() - begin:.1f} s", flush=True)
                self.assertLess(grown, LIMIT * SANDBOXES + SPARE)
                self.assertLess(compiled, MOST_COMPILED)
                self.assertLess(aio, 128)
                if LONG:
                    self.assertLess(fallen, LIMIT * SANDBOXES + SPARE)
                self.assertEqual(self.atoll.execute(neighbour, ["/bin/true"])["verdict"], "ok")
        self.atoll.delete(neighbour)


if __name__ == "__main__":
    atoll.main()
