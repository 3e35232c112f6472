"""Egress under load, against a fake internet: many open connections at once, and its memory with
them, which is printed, and judged with ATOLL_TEST_LONG=1. egress_figures_test.py has the others."""
import atexit
import os
import re
import subprocess
import sys

import atoll
import egress_case
import fake_internet

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
SERVERS = {"quiet.example": "20.0.0.82", "loud.example": "20.0.0.83"}
# A process for each server: one that serves both would make the one wait for the other by itself,
# as threads of one Python do.
SERVER = r"""
import socket, sys, threading
PIECE = b"x" * (1 << 20)
def serve(connection):
    stream = connection.makefile("rb")
    while line := stream.readline():
        while stream.readline() not in (b"\r\n", b""): pass
        count = 64 if b"/large" in line else 0
        size = count << 20 or 2
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size
        connection.sendall(head if count else head + b"ok")
        for i in range(count): connection.sendall(PIECE)
def guarded(connection):
    try: serve(connection)
    except OSError: pass
    connection.close()
listener = socket.create_server((sys.argv[1], 80), backlog=512)
print("ready", flush=True)
while True:
    threading.Thread(target=guarded, args=(listener.accept()[0],), daemon=True).start()
"""


class LoadedInternet(fake_internet.FakeInternet):
    def enter(self):
        super().enter()
        for name, address in SERVERS.items():
            fake_internet.NAMES[name] = [address]
            fake_internet.run("ip", "address", "add", f"{address}/32", "dev", "lo")
            server = subprocess.Popen([sys.executable, "-c", SERVER, address],
                                      stdout=subprocess.PIPE)
            server.stdout.readline()
            atexit.register(self.end, server)

    @staticmethod
    def end(server):
        server.kill()
        server.wait()
        server.stdout.close()


INTERNET = LoadedInternet()
HOLD = r"""
import resource, socket, sys, time
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
held = []
for i in range(int(sys.argv[1])):
    s = socket.create_connection(("allowed.example", 2222), timeout=30)
    assert s.recv(3) == b"SSH"; held.append(s)
print("held", len(held), flush=True); time.sleep(600)
"""


class Load(egress_case.EgressCase):
    @property
    def egress(self):
        return atoll.lock_holder(os.path.join(self.atoll.run_directory, "egress", "egress.lock"))

    def memory_mib(self):
        status = atoll.read(f"/proc/{self.egress}/status")
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def create(self):
        return self.atoll.create(limits={"open_files": 4096}, network={"rules": [
            {"allow": "allowed.example", "ports": [2222], "protocol": "tcp"}],
            "allow": list(SERVERS)})["id"]

    def test_many_open_connections_take_little_memory(self):
        count = 2000 if LONG else 500
        sandbox = self.create()
        held = self.atoll.start(sandbox, ["python3", "-c", HOLD, str(count)])
        atoll.wait_for("the connections", lambda: b"held" in self.atoll.output(
            sandbox, held["id"]), 120)
        memory = self.memory_mib()
        print(f"{count} open connections: egress has {memory:.1f} MiB", flush=True)
        if LONG:
            self.assertLessEqual(memory, 40)


if __name__ == "__main__":
    if os.geteuid() == 0:
        INTERNET.enter()
    atoll.main(alone=True)
