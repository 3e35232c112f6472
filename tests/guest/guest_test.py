#!/usr/bin/python3
"""Runs the tests of the jail on another kind of host: Linux 6.1 with version 2 control groups only,
emulated by QEMU without hardware help.

usage: guest_test.py                the tests of COMMANDS
       guest_test.py COMMAND...     these shell commands in the guest instead
       guest_test.py --shell        a shell in the guest
       guest_test.py --kvm [COMMAND...]   the same where KVM works: the emulated processor has SVM

Ends with 0 when everything passed, 77 when there is nothing to run it with.

It has one processor: with two, emulated by a thread each, the machine stopped as a whole now and
then, both turning in a circle inside the kernel. Should it stop again, where it turns is printed,
and what had not ended is run in a new guest, at most twice.
"""
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import time

import disk

QEMU = "qemu-system-x86_64"
# Emulation is 10 to 20 times slower than the machine itself, and others may use it too.
DEADLINE_SECONDS = 5400
COMMAND_SECONDS = 1800
SILENCE_SECONDS = 180  # it says every 15 that it lives
GUESTS = 3
SLOWNESS = 10
MONITOR = os.path.join(disk.BUILD, "monitor")
SYSTEM_TESTS = os.path.join(disk.ROOT, "tests", "system")
IMAGE = os.path.join(disk.ROOT, "build", "images", "python")
MACHINES = os.path.join(disk.ROOT, "build", "images", "microvm")
SELFTEST = os.path.join(disk.ROOT, "build", "release", "share", "atoll", "selftest")
UNIT_TESTS = ["linux_test", "agent_test", "warden_test"]
PROGRAMS = ["atoll", "atolld", "atoll-warden", "atoll-agent", "atoll-notary", "atoll-sudo",
            "atoll-builder", "atoll-egress"]
TEST_PROGRAMS = ["warden-test-probe", "agent-test-caller"]
COMMANDS = [f"{disk.RELEASE}/{name}" for name in UNIT_TESTS]
for system_test in ("run", "sudo", "processes", "crash", "leak", "receipt", "disk_rate"):
    COMMANDS.append(f"python3 {SYSTEM_TESTS}/{system_test}_test.py")
COMMANDS.append(f"python3 {SYSTEM_TESTS}/selftest_test.py Selftest.test_every_wall_holds")
# A guest of the guest is slower by the same again.
KVM_SLOWNESS = 15
KVM_COMMANDS = ["modprobe kvm_amd", f"python3 {SYSTEM_TESTS}/hardware_test.py"]


class Kind:
    """What is emulated: processor and memory, and what is on the disk of the guest."""

    def __init__(self, hardware, files, images, environment):
        self.hardware, self.environment = hardware, environment
        self.files, self.images = files, images


PLAIN = Kind(["-accel", "tcg,thread=single", "-cpu", "max,-erms,-fsrm", "-m", "2G"],
             [os.path.join(disk.RELEASE, name) for name in UNIT_TESTS + PROGRAMS + TEST_PROGRAMS]
             + [SELFTEST], [IMAGE], {"ATOLL_TEST_SLOW": SLOWNESS})
# Three machines are admitted at a time: one that is laid down, one of the pool, one poised.
KVM = Kind(["-accel", "tcg", "-cpu", "max,-erms,-fsrm,+svm", "-m", "6G"],
           [os.path.join(disk.RELEASE, name) for name in PROGRAMS], [IMAGE, MACHINES],
           {"ATOLL_TEST_SLOW": KVM_SLOWNESS, "ATOLL_TEST_KVM": 1})


def check_host(kind):
    if os.geteuid() != 0:
        raise disk.Missing("needs root: the files in the guest must be root's")
    if shutil.which("dpkg") is None:
        raise disk.Missing("the guest is made of a Debian host's packages, and this is none")
    if shutil.which(QEMU) is None:
        raise disk.Missing(f"there is no {QEMU}; `tools/setup test-long` installs it")
    for image in kind.images:
        if not os.path.exists(os.path.join(image, "image.erofs")):
            raise disk.Missing(f"there is no image in {image}; `make images` builds it")


def emulate(kind, made, *options, append=""):
    return [QEMU, "-machine", "q35", *kind.hardware, "-smp", "1",
            "-nic", "none", "-display", "none", "-no-reboot",
            "-kernel", made.kernel, "-initrd", made.early,
            "-monitor", f"unix:{MONITOR},server=on,wait=off",
            "-drive", f"file={made.image},format=raw,if=virtio,snapshot=on,cache=unsafe",
            "-append", f"console=ttyS0 nokaslr loglevel=3 panic=-1 {append}", *options]


class Silent(Exception):
    """The emulated machine has stopped."""


def where_it_turns():
    """The address that the processor is at; /proc/kallsyms of a guest (--shell) knows it."""
    with socket.socket(socket.AF_UNIX) as monitor:
        monitor.settimeout(10)
        monitor.connect(MONITOR)
        monitor.sendall(b"info registers -a\n")
        text = ""
        while text.count("RIP=") < 1:
            text += monitor.recv(65536).decode(errors="replace")
    return re.findall(r"RIP=([0-9a-f]+)", text)


def lines_until_end(process, deadline):
    """Lines of the console until the guest is gone or out of time."""
    buffer = b""
    while True:
        left = min(deadline - time.monotonic(), SILENCE_SECONDS)
        if left <= 0:
            yield f"guest_test: ended after {DEADLINE_SECONDS} s without a result"
            return
        if not select.select([process.stdout], [], [], left)[0]:
            if left == SILENCE_SECONDS:
                raise Silent
            continue
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

    def take(self, line, numbers):
        """`numbers` are those that the commands of this guest have in the whole list."""
        end = re.match(r"guest: end (\d+) (\d+) (\d+)$", line)
        single = re.match(r"\[ +(OK|FAILED|SKIPPED) +\] ([\w/]+\.[\w/]+)(,| \(|$)", line)
        if end:
            self.ended[numbers[int(end[1]) - 1]] = int(end[2])
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


def watch(kind, made, results, numbers, deadline):
    """False: the guest has stopped as a whole."""
    process = subprocess.Popen(emulate(kind, made, "-serial", "stdio"), stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE)
    try:
        for line in lines_until_end(process, deadline):
            if line != "guest: alive":
                print(line, flush=True)
            results.take(line, numbers)
        return True
    except Silent:
        print(f"guest_test: silent for {SILENCE_SECONDS} s, at {where_it_turns()}", flush=True)
        return False
    finally:
        process.kill()
        process.wait()


def make_disk(kind, commands):
    made = disk.Disk()
    environment = {"ATOLL_BIN": disk.RELEASE, "GTEST_COLOR": "no", "PYTHONDONTWRITEBYTECODE": 1,
                   "COMMAND_SECONDS": COMMAND_SECONDS, **kind.environment}
    made.make([*kind.files, *kind.images, SYSTEM_TESTS], environment, commands)
    return made


def run_commands(kind, commands):
    results = Results()
    deadline = time.monotonic() + DEADLINE_SECONDS
    for _ in range(GUESTS):
        numbers = [number for number in range(1, len(commands) + 1) if number not in results.ended]
        made = make_disk(kind, [commands[number - 1] for number in numbers])
        if watch(kind, made, results, numbers, deadline):
            break
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
    made = make_disk(PLAIN, COMMANDS)
    command = emulate(PLAIN, made, "-serial", "mon:stdio", append="atoll.shell")
    return subprocess.run(command, check=False).returncode


def main():
    try:
        with_kvm = sys.argv[1:2] == ["--kvm"]
        kind = KVM if with_kvm else PLAIN
        check_host(kind)
        if sys.argv[1:] == ["--shell"]:
            return run_shell()
        if with_kvm:
            return run_commands(KVM, sys.argv[2:] or KVM_COMMANDS)
        return run_commands(PLAIN, sys.argv[1:] or COMMANDS)
    except disk.Missing as reason:
        print(f"SKIPPED: {reason}")
        return 77


if __name__ == "__main__":
    sys.exit(main())
