"""What the tests look for after an Atoll, left behind on purpose: each is found as what it is, and
is not taken for that of an Atoll beside it."""
import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import atoll
import host_look
import traces

SLEEP = "import os, time; print(flush=True); time.sleep(600)"
KEEP_ZOMBIE = ("import os\nif os.fork() == 0: os._exit(0)\n"
               "os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)\n" + SLEEP)


def run(*command):
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@contextlib.contextmanager
def running(*arguments, code=SLEEP, under=(), **options):
    """A program that has said that it is there."""
    command = [*under, sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          **options) as process:
        try:
            process.stdout.readline()
            yield process.pid
        finally:
            process.kill()


class Traces(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="atoll-system-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.environment = {**os.environ, "STATE": self.directory}
        self.atoll = atoll.Atoll(self.directory)

    def check_found(self, **texts):
        """Of these kinds and no other, each with this text."""
        found = self.atoll.traces()
        kinds = [kind.replace("_", " ") for kind in texts]
        self.assertEqual(sorted(found), sorted(kinds), found)
        for kind, text in zip(kinds, texts.values()):
            self.assertIn(text, str(found[kind]))
        beside = traces.of_atoll(self.directory + "-beside")
        self.assertEqual([kind for kind, entries in beside.items() if entries], [])
        left = r"left behind \(never retried\): .*" + kinds[0]
        with self.assertRaisesRegex(AssertionError, left):
            self.atoll.check_gone(seconds=0.1)

    def make_group(self, name):
        """In the first hierarchy that takes groups."""
        for top in traces.hierarchies():
            folder = os.path.join(top, "atoll", traces.run_tag(self.atoll.run_directory))
            try:
                os.makedirs(os.path.join(folder, name))
            except OSError:
                continue
            self.addCleanup(self.remove_common_group, os.path.dirname(folder))
            for path in (folder, os.path.join(folder, name)):
                self.addCleanup(self.remove_group, path)
            return os.path.join(folder, name)
        raise AssertionError("there is no hierarchy for control groups")

    @staticmethod
    def remove_common_group(path):
        """As a service does that goes: not while another one has a group in it."""
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENOTEMPTY, errno.ENOENT):
                raise

    @staticmethod
    def remove_group(path):
        def removed():
            try:
                os.rmdir(path)
                return True
            except OSError:  # who was killed is taken out of it in the kernel's own time
                return False
        atoll.wait_for("the group to be empty", removed)

    def test_nothing(self):
        self.assertEqual(self.atoll.traces(), {})
        self.atoll.check_gone(seconds=0.1)

    def test_a_process_that_was_told_of_it(self):
        with running(self.directory) as pid:
            self.check_found(processes=str(pid))
        with running(env=self.environment) as pid:
            self.check_found(processes=str(pid))
        self.assertEqual(self.atoll.traces(), {})

    def test_a_process_in_its_group_and_the_group(self):
        group = self.make_group("s1")
        with running() as pid:
            with open(os.path.join(group, "cgroup.procs"), "w") as file:
                file.write(str(pid))
            self.check_found(processes=str(pid), cgroups=group)
        self.check_found(cgroups=group)

    def test_a_zombie_of_one_of_its_processes(self):
        with running(self.directory, code=KEEP_ZOMBIE) as pid:
            self.check_found(processes=str(pid), zombies="python3")

    def test_a_zombie_of_the_test(self):
        with subprocess.Popen(["true"]) as ended:
            os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
            self.assertIn(str(ended.pid), str(self.atoll.traces()["zombies"]))
        self.assertEqual(self.atoll.traces(), {})

    def test_a_mount_here_and_one_elsewhere(self):
        folder = os.path.join(self.directory, "mounted")
        os.mkdir(folder)
        under = ["unshare", "--mount", "sh", "-c",
                 'mount -t tmpfs tmpfs mounted; exec env -u PWD "$@"', "sh"]
        with running(under=under, cwd=self.directory):
            self.check_found(mounts=folder)
        self.assertEqual(self.atoll.traces(), {})
        run("mount", "-t", "tmpfs", "tmpfs", folder)
        try:
            self.check_found(mounts=folder)
        finally:
            run("umount", folder)

    def test_a_network_namespace(self):
        with running(under=["unshare", "--net"], env=self.environment) as pid:
            self.check_found(processes=str(pid), network_namespaces="net:[")

    def test_a_loop_device(self):
        image = os.path.join(self.directory, "image")
        with open(image, "wb") as file:
            file.truncate(1 << 20)
        device = run("losetup", "--find", "--show", image)
        try:
            self.check_found(loop_devices=f"{os.path.basename(device)} of {image}")
        finally:
            run("losetup", "--detach", device)

    def test_a_uid_range(self):
        entry = os.path.join(traces.REGISTRY, "99999999")

        def place():
            os.makedirs(traces.REGISTRY, mode=0o700, exist_ok=True)
            try:
                with open(entry + ".new", "w") as file:
                    file.write(f"{self.atoll.run_directory}\nleft\n")
                os.rename(file.name, entry)  # other Atolls read what has a number for its name
                return True
            except FileNotFoundError:  # another Atoll has removed the registry meanwhile
                return False
        atoll.wait_for("the entry", place)
        try:
            self.check_found(uid_ranges=f"99999999 of {self.atoll.run_directory}")
        finally:
            os.unlink(entry)


class HostLook(unittest.TestCase):
    """On a host on which other tests run meanwhile."""
    NAMED = "open('/proc/self/comm', 'w').write('atoll-left')\n" + SLEEP

    def test_what_stays_has_been_left(self):
        before = traces.of_host()
        with running(code=self.NAMED) as pid:
            left = host_look.find_left(before, patience=0.5)
            self.assertIn(f"{pid} atoll-left", str(left["processes"]))
        left = host_look.find_left(before, patience=0.5)
        self.assertNotIn("atoll-left", str(left))

    def test_what_comes_and_goes_has_not(self):
        looks = iter([{"loop devices": ["loop1", "loop2"]}, {"loop devices": ["loop2", "loop3"]}])
        last = {"loop devices": ["loop0", "loop2", "loop4"]}
        left = host_look.find_left({"loop devices": ["loop0"]}, lambda: next(looks, last), 0.5)
        self.assertEqual(left, {"loop devices": ["loop2"]})
        self.assertEqual(host_look.find_left(last, lambda: last), {})


if __name__ == "__main__":
    atoll.main()
