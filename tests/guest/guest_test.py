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
# Emulation is 10 to 20 times slower than the machine itself, and others may use it too.
DEADLINE_SECONDS = 2400
COMMAND_SECONDS = 900
SLOWNESS = 10
SYSTEM_TESTS = os.path.join(disk.ROOT, "tests", "system")
IMAGE = os.path.join(disk.ROOT, "build", "images", "python")
SELFTEST = os.path.join(disk.ROOT, "build", "release", "share", "atoll", "selftest")
UNIT_TESTS = ["linux_test", "agent_test", "warden_test"]
PROGRAMS = ["atoll", "atolld", "atoll-warden", "atoll-agent", "atoll-notary", "atoll-sudo",
            "atoll-builder", "atoll-egress", "warden-test-probe", "agent-test-caller"]
COMMANDS = [f"{disk.RELEASE}/{name}" for name in UNIT_TESTS]
for system_test in ("run", "sudo", "processes", "crash", "leak", "receipt", "disk_rate"):
    COMMANDS.append(f"python3 {SYSTEM_TESTS}/{system_test}_test.py")
COMMANDS.append(f"python3 {SYSTEM_TESTS}/selftest_test.py Selftest.test_every_wall_holds")


def check_host():
    if os.geteuid() != 0:
        raise disk.Missing("needs root: the files in the guest must be root's")
    if shutil.which("dpkg") is None:
        raise disk.Missing("the guest is made of a Debian host's packages, and this is none")
    if shutil.which(QEMU) is None:
        raise disk.Missing(f"there is no {QEMU}; `tools/setup test-long` installs it")
    if not os.path.exists(os.path.join(IMAGE, "image.erofs")):
        raise disk.Missing(f"there is no image in {IMAGE}; `make images` builds it")


def emulate(made, *options, append=""):
    return [QEMU, "-machine", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
            "-m", "2G", "-nic", "none", "-display", "none", "-no-reboot",
            "-kernel", made.kernel, "-initrd", made.early,
            "-drive", f"file={made.image},format=raw,if=virtio,snapshot=on,cache=unsafe",
            "-append", f"console=ttyS0 loglevel=3 panic=-1 {append}", *options]


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
        self.single = {}  # by name of one GoogleTest
        self.done = False

    def take(self, line):
        end = re.match(r"guest: end (\d+) (\d+) (\d+)$", line)
        single = re.match(r"\[ +(OK|FAILED|SKIPPED) +\] ([\w/]+\.[\w/]+)(,| \(|$)", line)
        if end:
            self.ended[int(end[1])] = int(end[2])
        elif line == "guest: done":
            self.done = True
        elif single:
            self.single[single[2]] = single[1]

    def names(self, outcome):
        return [name for name, found in self.single.items() if found == outcome]

    def problems(self, commands):
        found = [f"failed: {name}" for name in self.names("FAILED")]
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
    environment = {"ATOLL_BIN": disk.RELEASE, "ATOLL_TEST_SLOW": SLOWNESS, "GTEST_COLOR": "no",
                   "PYTHONDONTWRITEBYTECODE": 1, "COMMAND_SECONDS": COMMAND_SECONDS}
    made.make([*programs, SYSTEM_TESTS, IMAGE, SELFTEST], environment, commands)
    return made


def run_commands(commands):
    results = watch(make_disk(commands))
    for name in results.names("SKIPPED"):
        print(f"guest_test: skipped: {name}")
    problems = results.problems(commands)
    for problem in problems:
        print(f"guest_test: {problem}")
    passed = len(results.names("OK"))
    print(f"guest_test: {len(commands)} commands, {passed} unit tests passed, "
          f"{len(problems)} problems")
    return 1 if problems else 0


def run_shell():
    command = emulate(make_disk(COMMANDS), "-serial", "mon:stdio", append="atoll.shell")
    return subprocess.run(command, check=False).returncode


def main():
    try:
        check_host()
        if sys.argv[1:] == ["--shell"]:
            return run_shell()
        return run_commands(sys.argv[1:] or COMMANDS)
    except disk.Missing as reason:
        print(f"SKIPPED: {reason}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
