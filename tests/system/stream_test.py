#!/usr/bin/env python3
"""What streams cost: a gibibyte of output, and thousands of clients that follow a silent exec.

With ATOLL_TEST_LONG=1 at full size, otherwise small; figures are printed, only memory is asserted.
"""
import os
import resource
import socket
import time

import atoll

LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
IDLE_SECONDS = 5 if LONG else 1
STREAM_BYTES = (1024 if LONG else 32) * 1024 * 1024
FOLLOWERS = 5000 if LONG else 1000
MAX_DAEMON_BYTES = 100 * 1024 * 1024
MAX_FOLLOWER_BYTES = 10 * 1024


def memory(pid, name="VmRSS"):
    line = [line for line in atoll.read(f"/proc/{pid}/status").splitlines() if name in line][0]
    return int(line.split()[1]) * 1024


def cpu_seconds(pid):
    fields = atoll.read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class StreamTest(atoll.SystemTest):
    def setUp(self):
        self.sandbox = self.atoll.create(limits={"output_bytes": STREAM_BYTES})["id"]
        self.execs = f"/v1/sandboxes/{self.sandbox}/execs"

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def open(self, path, accept):
        host, port = self.atoll.address.rsplit(":", 1)
        client = socket.create_connection((host, int(port)), timeout=120)
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\n"
                       f"Authorization: Bearer {self.atoll.key}\r\n\r\n".encode())
        return client

    def test_much_output_with_little_memory(self):
        begin = time.monotonic()
        started = self.atoll.start(self.sandbox, ["head", "-c", str(STREAM_BYTES), "/dev/zero"])
        client = self.open(f"{self.execs}/{started['id']}/output?follow=true", "*/*")
        room = bytearray(1 << 20)
        received = 0
        while True:
            count = client.recv_into(room)
            received += count
            if count == 0 or bytes(room[max(0, count - 5):count]) == b"0\r\n\r\n":
                break
        seconds = time.monotonic() - begin
        client.close()
        # More than the bytes alone: the marks of the chunks.
        self.assertGreater(received, STREAM_BYTES)
        self.assertEqual(self.atoll.wait_ended(self.sandbox, started["id"])["stdout_bytes"],
                         STREAM_BYTES)
        peak = memory(self.atoll.daemon_pid, "VmHWM")
        print(f"\n  {STREAM_BYTES >> 20} MiB in {seconds:.2f} s: "
              f"{STREAM_BYTES / seconds / 1e6:.0f} MB/s, atolld at most {peak >> 20} MiB",
              flush=True)
        self.assertLess(peak, MAX_DAEMON_BYTES)

    def test_followers_of_a_silent_exec_cost_next_to_nothing(self):
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 20000), hard))
        started = self.atoll.start(self.sandbox, ["sleep", "600"], timeout_ms=600000)
        path = f"{self.execs}/{started['id']}/output"
        pid = self.atoll.daemon_pid
        clients = [self.open(path, "text/event-stream") for _ in range(50)]
        before = memory(pid)
        for _ in range(FOLLOWERS):
            clients.append(self.open(path, "text/event-stream"))
            if len(clients) % 100 == 0:
                for client in clients[-100:]:
                    client.recv(1, socket.MSG_PEEK)
        each = (memory(pid) - before) / FOLLOWERS
        used = cpu_seconds(pid)
        time.sleep(IDLE_SECONDS)
        used = (cpu_seconds(pid) - used) / IDLE_SECONDS
        print(f"\n  {FOLLOWERS} followers: {each / 1024:.1f} KiB each, "
              f"{100 * used:.1f} % of a core", flush=True)
        for client in clients:
            client.close()
        self.assertLess(each, MAX_FOLLOWER_BYTES)

        def gone():
            return self.atoll.fds()["atolld"] < 100
        atoll.wait_for("atolld to notice that all have gone", gone)


if __name__ == "__main__":
    atoll.main()
