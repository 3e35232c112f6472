#!/usr/bin/python3
"""Runs the tests of the jail on another kind of host: Linux 6.1 with version 2 control groups only,
emulated by QEMU without hardware help.

usage: guest_test.py                the tests of COMMANDS
       guest_test.py COMMAND...     these shell commands in the guest instead
       guest_test.py --shell        a shell in the guest

Ends with 0 when everything passed, 77 when there is nothing to run it with.
"""
import os
import re
import select
import shutil
import subprocess
import sys
import time

import disk

QEMU = "qemu-system-x86_64"
# Emulation is 10 to 20 times slower than the machine itself.
DEADLINE_SECONDS = int(os.environ.get("ATOLL_GUEST_SECONDS", "1500"))
COMMAND_SECONDS = 600
SLOWNESS = 20
SYSTEM_TESTS = os.path.join(disk.ROOT, "tests", "system")
IMAGE = os.path.join(disk.ROOT, "build", "images", "python")
UNIT_TESTS = ["linux_test", "agent_test", "warden_test"]
PROGRAMS = ["atoll", "atolld", "atoll-warden", "atoll-agent", "warden-test-probe"]
COMMANDS = [f"{disk.RELEASE}/{name}" for name in UNIT_TESTS]


def missing():
    if os.geteuid() != 0:
        return "needs root: the files in the guest must be root's"
    if shutil.which(QEMU) is None or shutil.which("dpkg") is None:
        return f"there is no {QEMU}; on Debian `tools/setup test-long` installs it"
    return None


def emulate(made, *options, append=""):
    return [QEMU, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
            "-m", "2G", "-nic", "none", "-display", "none", "-no-reboot",
            "-kernel", made.kernel, "-initrd", made.early,
            "-drive", f"file={made.image},format=raw,if=virtio,snapshot=on,cache=unsafe",
            "-append", f"console=ttyS0 quiet panic=-1 {append}", *options]


def lines_until_end(process, deadline):
    """Lines of the console until the guest is gone or out of time."""
    buffer = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
            yield f"guest_test: ended after {DEADLINE_SECONDS} s without a result"
            return
        data = os.read(process.stdout.fileno(), 65536)
        if not data:
            return
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace").rstrip("\r")


class Results:
    """What the console said: every command must begin and end well, and the guest must say so."""

    def __init__(self):
        self.ended = {}
        self.failed, self.skipped = [], []
        self.done = False

    def take(self, line):
        end = re.match(r"guest: end (\d+) (\d+) (\d+)$", line)
        single = re.match(r"\[  (FAILED|SKIPPED) +\] ([\w/]+\.[\w/]+)(,| \(|$)", line)
        if end:
            self.ended[int(end[1])] = int(end[2])
        elif line == "guest: done":
            self.done = True
        elif single:
            found = self.failed if single[1] == "FAILED" else self.skipped
            if single[2] not in found:
                found.append(single[2])

    def problems(self, commands):
        found = [f"failed: {name}" for name in self.failed]
        for number, command in enumerate(commands, 1):
            status = self.ended.get(number)
            if status is None:
                found.append(f"did not end: {command}")
            elif status != 0:
                what = "timed out" if status in (124, 137) else f"status {status}"
                found.append(f"{what}: {command}")
        if not self.done:
            found.append("the guest did not come to its end")
        return found


def watch(made):
    results = Results()
    process = subprocess.Popen(emulate(made, "-serial", "stdio"), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE)
    try:
        for line in lines_until_end(process, time.monotonic() + DEADLINE_SECONDS):
            print(line, flush=True)
            results.take(line)
    finally:
        process.kill()
        process.wait()
    return results


def make_disk(commands):
    made = disk.Disk()
    programs = [os.path.join(disk.RELEASE, name) for name in UNIT_TESTS + PROGRAMS]
    environment = {"ATOLL_TEST_SLOW": SLOWNESS, "ATOLL_BIN": disk.RELEASE, "GTEST_COLOR": "no",
                   "PYTHONDONTWRITEBYTECODE": 1, "COMMAND_SECONDS": COMMAND_SECONDS}
    made.make([*programs, SYSTEM_TESTS, IMAGE], environment, commands)
    return made


def main():
    reason = missing()
    if reason:
        print(f"SKIPPED: {reason}")
        return 77
    if sys.argv[1:] == ["--shell"]:
        return subprocess.run(emulate(make_disk(COMMANDS), "-serial", "mon:stdio",
                                      append="atoll.shell"), check=False).returncode
    commands = sys.argv[1:] or COMMANDS
    results = watch(make_disk(commands))
    for name in results.skipped:
        print(f"guest_test: skipped: {name}")
    problems = results.problems(commands)
    for problem in problems:
        print(f"guest_test: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
