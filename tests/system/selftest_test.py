"""The hostile programs break nothing in a live Atoll, but do where their wall is missing."""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import atoll

VICTIMS = os.path.join(atoll.BIN, "atoll-victims")
BROKE = 1
HOST_CHANGED = 3  # the exit code of a selftest
MOST_HOST_CHANGES = 3
LEAST_TRIED = 80
# Behind the other walls, where a whole run takes minutes.
FEW = ("capability_audit", "mount_tmpfs", "io_uring", "fork_bomb", "thread_bomb", "memory_bomb",
       "proc_1_mem", "kill_all", "foreign_processes", "group_paths", "other_users",
       "neighbour_socket", "raw_socket")
LONG = bool(os.environ.get("ATOLL_TEST_LONG"))
SECONDS = 800

# Which victims must break through when this wall is the one that is missing. All run as root with
# every capability, in a directory that is only a chroot, in namespaces of their own so that the
# host keeps what they change. tests/victims/README.md shows the same table.
MISSING = {
    "system call filter": [
        "add_key", "keyctl", "request_key", "bpf", "perf_event_open", "userfaultfd", "io_uring",
        "unshare_others", "setns", "int80", "kcmp", "process_vm_readv", "process_vm_writev",
        "process_madvise", "ptrace_attach", "ptrace_traceme", "pidfd_getfd", "personality",
        "modify_ldt", "af_packet", "netlink_families", "raw_socket", "socket_families",
        "seccomp_off", "memory_program", "terminal_input", "syslog", "name_to_handle",
        "statmount", "netlink_memory", "asynchronous_io", "own_filters", "access_lists"],
    "empty capability sets": [
        "capability_audit", "mount_tmpfs", "mount_bind", "proc_cover", "fsopen", "open_tree",
        "mount_setattr", "cgroup_mount", "mknod_block", "mknod_char", "landlock", "sethostname",
        "setdomainname", "settimeofday", "clock_settime", "adjtimex", "real_time", "nice",
        "netlink_route"],
    "masked /proc": ["kallsyms", "core_pattern", "sysctl_network", "proc_keys", "proc_locks",
                     "host_signs"],
    "pivot_root": ["chroot_escape"],
    "agent as process 1": ["foreign_processes", "proc_1_mem", "proc_1_environ", "map_files"],
    "uid range": ["other_users"],
    "limits": ["raise_limits", "core_dump"],
    "own host name": ["host_name"],
}
# The kernel gives nobody in a chroot a user namespace, so these run in the host's own root.
NO_USER_NAMESPACES = ["clone3_user", "clone_user", "unshare_user", "high_bits", "seccomp_takeover"]
NEIGHBOURS = ["neighbour_socket", "neighbour_memory", "neighbour_queue", "neighbour_files",
              "neighbour_locks"]


class WeakJail:
    """A root directory with the victims, entered by chroot and by nothing else."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="atoll-weak-")
        self.canary = os.path.join(self.root, "canary")
        self.inside = os.path.join(self.root, "inside")
        os.chmod(self.root, 0o755)
        for name in ("victims", "tmp", "dev/shm", "dev/pts", "proc", "sys", "mnt", "run", "etc"):
            os.makedirs(os.path.join(self.inside, name))
        shutil.copy(VICTIMS, os.path.join(self.inside, "victims"))
        with open(self.canary, "w", encoding="ascii") as file:
            file.write("canary\n")
        os.mknod(os.path.join(self.inside, "dev/ptmx"), 0o20666, os.makedev(5, 2))

    def run(self, name):
        mount = "mount -t devpts -o newinstance,ptmxmode=0666 none \"$0/dev/pts\" && " \
            "rm -f \"$0/dev/ptmx\" && ln -s pts/ptmx \"$0/dev/ptmx\" && mount -t proc none " \
            "\"$0/proc\" && exec chroot \"$0\" /victims/atoll-victims \"$1\""
        environment = {"ATOLL_VICTIM_MAY_HARM": "yes", "ATOLL_CANARY_FILE": self.canary,
                       "ATOLL_HOST_NAME": os.uname().nodename, "PATH": os.environ["PATH"]}
        command = ["unshare", "--mount", "--uts", "--ipc", "--net", "--pid", "--fork",
                   "--kill-child", "sh", "-c", mount, self.inside, name]
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, timeout=60,
                              capture_output=True, check=False)

    def remove(self):
        shutil.rmtree(self.root)


class Mutations(unittest.TestCase):
    def setUp(self):
        self.before = atoll.settled()

    def tearDown(self):
        atoll.wait_until_as(self.before)

    def test_a_victim_breaks_through_where_its_wall_is_missing(self):
        jail = WeakJail()
        self.addCleanup(jail.remove)
        for wall, names in MISSING.items():
            for name in names:
                with self.subTest(wall=wall, victim=name):
                    done = jail.run(name)
                    self.assertEqual(done.returncode, BROKE, done.stdout + done.stderr)
                    self.assertIn(b"BROKE: ", done.stdout)

    def test_a_user_namespace_is_there_for_the_asking_without_a_filter(self):
        for name in NO_USER_NAMESPACES:
            done = subprocess.run([VICTIMS, name], stdin=subprocess.DEVNULL, capture_output=True,
                                  env={}, timeout=60, check=False)
            self.assertEqual(done.returncode, BROKE, done.stdout)

    def test_neighbours_in_the_same_namespaces_see_each_other(self):
        left = ["/dev/shm/atoll-neighbour", "/tmp/atoll-neighbour"]
        for path in left:
            self.addCleanup(lambda name=path: os.path.exists(name) and os.unlink(name))
        script = "exec 3< <(\"$0\" neighbour 60); read ready <&3; " \
            "for name in \"$@\"; do \"$0\" \"$name\"; echo \"$name $?\"; done"
        done = subprocess.run(["unshare", "--ipc", "--net", "--pid", "--fork", "--kill-child",
                               "bash", "-c", script, VICTIMS, *NEIGHBOURS], timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, check=False)
        for name in NEIGHBOURS:
            self.assertIn(f"{name} {BROKE}\n".encode(), done.stdout)

    def test_harm_needs_a_word(self):
        """What could hurt a host is not done for somebody who only tries the program."""
        for name in ("fork_bomb", "kill_all", "umount", "disk_fill", "inotify", "covered_target"):
            done = subprocess.run([VICTIMS, name], stdin=subprocess.DEVNULL, capture_output=True,
                                  env={}, timeout=60, check=False)
            self.assertEqual(done.returncode, 77, name)


class Selftest(atoll.SystemTest):
    def selftest(self, *arguments, **options):
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", self.atoll.directory,
                   "selftest", *arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, **options)

    def assert_nothing_left(self):
        self.atoll.close()  # a selftest can take longer than an idle connection is kept
        self.assertEqual(self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"], [])
        self.assertEqual(glob.glob("/tmp/atoll-canary-*"), [])

    def test_every_wall_holds(self):
        self.check_all()

    def test_walls_around_a_kernel_hold_too(self):
        for wall, image in atoll.MONITORS.items():
            if not os.path.exists(os.path.join(image, "image.erofs")):
                print(f"{wall} is not tried: make images IMAGES={wall}", flush=True)
                continue
            self.atoll.cli("template", "add", image)
            only = [] if LONG else [word for name in FEW for word in ("--only", name)]
            with self.subTest(wall):
                begin = time.monotonic()
                rows = self.check_all("--isolation", wall, *only,
                                      least=LEAST_TRIED if LONG else len(FEW))
                print(f"{wall}: {len(rows)} in {time.monotonic() - begin:.0f} s", flush=True)
                for row in rows:
                    if row["outcome"] == "skipped":
                        self.assertNotEqual(row["detail"], "", "a skip says why")

    def check_all(self, *arguments, least=LEAST_TRIED):
        process = self.selftest("--json", *arguments)
        out, errors = process.communicate(timeout=SECONDS)
        result = json.loads(out)
        bad = [row for row in result["victims"]
               if row["outcome"] not in ("held", "skipped", "host changed")]
        for row in result["victims"]:
            if row["outcome"] in ("skipped", "host changed"):
                print(f"{row['outcome']} {row['name']} ({row['user']}): {row['detail']}")
        self.assertEqual(bad, [], errors)
        # A host with other users changes; where that is the rule, nothing was tested.
        self.assertLessEqual(result["host_changed"], MOST_HOST_CHANGES)
        code = HOST_CHANGED if result["host_changed"] else 0
        self.assertEqual((result["broke"], result["unjudged"], process.returncode), (0, 0, code))
        self.assertGreaterEqual(result["tried"], least)
        self.assertEqual(result["held"] + result["host_changed"], result["tried"])
        self.assert_nothing_left()
        return result["victims"]

    def test_one_victim_alone(self):
        process = self.selftest("--only", "capability_audit", "--only", "mount_tmpfs")
        out, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, out + errors)
        self.assertEqual(out.decode().splitlines()[-1], "4 tried, 4 held, 0 skipped")
        self.assertEqual(len([line for line in out.splitlines() if b"ESC-12" in line]), 2)
        self.assert_nothing_left()

    def test_a_name_that_is_not_there_is_refused(self):
        process = self.selftest("--only", "no_such_victim")
        _, errors = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, 0)
        self.assertIn(b"no_such_victim", errors)

    def test_an_interrupt_removes_everything(self):
        process = self.selftest()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assert_nothing_left()

    def test_without_a_server_it_says_so(self):
        command = [os.path.join(atoll.BIN, "atoll"), "--state-dir", "/nonexistent", "selftest"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertNotEqual(done.stderr, b"")

    def test_the_list_needs_no_server(self):
        command = [os.path.join(atoll.BIN, "atoll"), "selftest", "--list", "--json"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
                              check=False)
        names = [victim["name"] for victim in json.loads(done.stdout)["victims"]]
        self.assertGreaterEqual(len(names), 90)
        self.assertIn("io_uring", names)


if __name__ == "__main__":
    atoll.main(alone=True)
