"""`atoll doctor`: what it says of this host, of a host with less, and that it leaves nothing."""
import glob
import json
import os
import re
import subprocess
import tempfile
import unittest

import atoll
import traces

PROGRAM = os.path.join(atoll.BIN, "atoll")
COVER_PROC = "mount -t tmpfs x /proc/sys/fs && exec \"$@\""
HIDE_TIME = "echo in; read mapped; echo 0 > /proc/sys/user/max_time_namespaces && exec \"$@\""
HIDE_NAMESPACES = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\""


def doctor(*arguments, under=(), state=None):
    command = [*under, PROGRAM, "doctor", *arguments]
    if state:
        command += ["--state-dir", state]
    return subprocess.run(command, capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL)


def examine(**options):
    done = doctor("--json", **options)
    report = json.loads(done.stdout)
    jail = next(driver for driver in report["drivers"] if driver["name"] == "jail")
    return done.returncode, jail, {finding["name"]: finding for finding in report["findings"]}


def leftovers():
    """Also what the inventory of an Atoll does not know: the groups of trials."""
    return {**atoll.inventory(),
            "trial groups": glob.glob("/sys/fs/cgroup/**/atoll-doctor-*", recursive=True),
            "loop nodes": sorted(glob.glob("/dev/loop*"))}


class Doctor(unittest.TestCase):
    def setUp(self):
        atoll.settled()  # what the test before took away must not be missed
        self.before = leftovers()

    def tearDown(self):
        atoll.wait_until_as(self.before, leftovers)

    def test_this_host_can_carry_a_jail(self):
        code, jail, findings = examine()
        self.assertEqual((code, jail["usable"], jail["reason"]), (0, True, ""))
        for name in ("kernel", "namespace.user", "namespace.net", "cgroup.memory", "cgroup.kill",
                     "mount.overlay", "mount.idmapped", "seccomp", "privileges", "uid_range"):
            self.assertEqual(findings[name]["state"], "ok", findings[name])
            self.assertEqual(findings[name]["class"], "required", findings[name])
        self.assertEqual(findings["namespace.time"]["class"], "extra")
        for finding in findings.values():
            self.assertEqual(set(finding), {"name", "class", "state", "found", "remedy"})
            self.assertIn(finding["class"], ("required", "extra", "advice"))
            self.assertIn(finding["state"], ("ok", "missing", "unknown"))
            self.assertEqual(finding["state"] == "ok", finding["remedy"] == "", finding)

    def test_a_time_namespace_that_the_kernel_has_but_refuses_is_missed(self):
        if not os.path.exists("/proc/self/ns/time"):
            self.skipTest("this kernel has no time namespaces")
        command = ["unshare", "--user", "--keep-caps", "sh", "-c", HIDE_TIME, "sh", PROGRAM,
                   "doctor", "--json"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as process:
            self.assertEqual(process.stdout.readline(), "in\n")
            for name in ("uid_map", "gid_map"):
                with open(f"/proc/{process.pid}/{name}", "w", encoding="ascii") as file:
                    file.write("0 0 4294967295")
            report = json.loads(process.communicate("mapped\n", timeout=60)[0])
        findings = {finding["name"]: finding for finding in report["findings"]}
        self.assertEqual(findings["namespace.uts"]["state"], "ok", findings["namespace.uts"])
        time = findings["namespace.time"]
        self.assertEqual((time["state"], time["class"]), ("missing", "required"), time)

    def test_the_other_drivers_say_why_they_are_not_usable(self):
        report = json.loads(doctor("--json").stdout)
        drivers = {driver["name"]: driver for driver in report["drivers"]}
        self.assertEqual(list(drivers), ["jail", "gvisor", "microvm"])
        for wall in ("gvisor", "microvm"):
            self.assertEqual(drivers[wall]["reason"], "the image that runs it is not built")
            finding = next(one for one in report["findings"] if one["name"] == wall)
            self.assertEqual((finding["state"], finding["remedy"]),
                             ("missing", f"atoll template build {wall}"))

    def test_only_programs_that_something_runs_are_asked_for(self):
        asked = [name.removeprefix("program.") for name in examine()[2]
                 if name.startswith("program.")]
        sources = subprocess.run(["grep", "-rlE", "|".join(f"\\b{name}\\b" for name in asked),
                                  os.path.join(atoll.ROOT, "src")], capture_output=True, text=True)
        for name in asked:
            users = [path for path in sources.stdout.split() if "/doctor/" not in path
                     and re.search(rf"\b{re.escape(name)}\b", atoll.read(path))]
            self.assertTrue(users, f"nothing runs {name}")

    def test_the_text_is_short_and_names_the_jail_first(self):
        done = doctor()
        self.assertEqual(done.returncode, 0, done.stdout)
        lines = done.stdout.splitlines()
        self.assertRegex(lines[0], r"^jail +usable$")
        self.assertLessEqual(len(lines), 45)

    def test_without_sys_admin_the_jail_is_not_usable(self):
        code, jail, findings = examine(under=("setpriv", "--bounding-set", "-sys_admin"))
        self.assertEqual((code, jail["usable"]), (1, False))
        self.assertIn("privileges", jail["reason"])
        self.assertEqual(findings["privileges"]["state"], "missing")
        self.assertIn("CAP_SYS_ADMIN", findings["privileges"]["found"])
        self.assertEqual(findings["mount.idmapped"]["state"], "missing")

    def test_without_user_namespaces_the_jail_is_not_usable(self):
        under = ("unshare", "--user", "--map-root-user", "sh", "-c", HIDE_NAMESPACES, "sh")
        code, jail, findings = examine(under=under)
        self.assertEqual((code, jail["usable"]), (1, False))
        self.assertIn("namespace.user", jail["reason"])
        self.assertEqual(findings["namespace.user"]["state"], "missing")
        self.assertEqual(findings["namespace.user"]["remedy"],
                         "sysctl -w user.max_user_namespaces=65536")
        # What stands on it was not tried, and is not called missing.
        self.assertEqual(findings["namespace.net"]["state"], "unknown")
        self.assertEqual(findings["mount.overlay"]["state"], "unknown")

    def test_where_proc_is_covered_the_jail_is_not_usable(self):
        under = ("unshare", "--mount", "sh", "-c", COVER_PROC, "sh")
        code, jail, findings = examine(under=under)
        self.assertEqual((code, jail["reason"]), (1, "missing: mount.proc"))
        self.assertEqual(findings["mount.proc"]["state"], "missing")

    def test_another_user_is_told_what_only_root_can_try(self):
        under = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
        code, jail, findings = examine(under=under)
        self.assertEqual((code, jail["usable"]), (1, None))
        for name in ("privileges", "cgroup.kill", "mount.idmapped"):
            self.assertEqual(findings[name]["state"], "unknown", findings[name])
            self.assertIn("root", findings[name]["remedy"])
        self.assertNotIn("missing", jail["reason"])

    def test_a_state_directory_is_not_made(self):
        with tempfile.TemporaryDirectory() as directory:
            state = os.path.join(directory, "not", "yet")
            code, _, findings = examine(state=state)
            self.assertEqual(code, 0)
            self.assertEqual(findings["server"]["state"], "missing")
            self.assertEqual(os.listdir(directory), [])

    def test_the_uid_range_is_the_one_of_the_warden(self):
        header = atoll.read(os.path.join(atoll.ROOT, "src", "warden", "uid_ranges.h"))

        def constant(name):
            text = re.search(rf"{name} = (0x[0-9a-f]+|[0-9']+);", header)[1]
            return int(text.replace("'", ""), 0)
        first = constant("kFirstUid")
        last = first + constant("kUidsPerRange") * constant("kUidRanges") - 1
        self.assertIn(f"{first}-{last} ", examine()[2]["uid_range"]["found"])


class DoctorBesideAServer(atoll.SystemTest):
    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        if not glob.glob(f"{traces.REGISTRY}/*"):
            assert not os.path.exists(traces.REGISTRY), "left behind (never retried)"

    def test_a_running_server_is_asked(self):
        _, jail, findings = examine(state=self.atoll.directory)
        self.assertTrue(jail["usable"])
        self.assertEqual(findings["server"]["state"], "ok")
        self.assertIn(self.atoll.address, findings["server"]["found"])


if __name__ == "__main__":
    atoll.main(alone=True)
