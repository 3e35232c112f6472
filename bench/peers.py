"""The same work by other programs, on the same image: bubblewrap and the OCI runtimes."""

import json
import shutil
import subprocess
from pathlib import Path

from machine import cgroup_kind
from report import Row

PYTHON = ["python3", "-c", "print(1)"]
TRUE = ["/bin/true"]
PATH = "PATH=/usr/local/bin:/usr/bin:/bin"
HIDE_V2 = ["unshare", "--mount", "sh", "-c", 'umount -l /sys/fs/cgroup/unified && exec "$@"', "sh"]
PEER_SECONDS = 300


def stopwatch(programs, plan, command, expected, wrapper=()):
    """Samples of the command, or the last line of why it failed."""
    watch = [str(programs / "atoll-stopwatch"), str(plan.runs), str(plan.warm_ups), expected]
    try:
        result = subprocess.run([*wrapper, *watch, *command], capture_output=True, text=True,
                                timeout=PEER_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return None, str(error)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if line.strip()]
        return None, lines[-1].strip() if lines else f"exit code {result.returncode}"
    return json.loads(result.stdout), ""


def rows(measures, who, samples, error, note=""):
    """One row to the first output if that is measured, one to the end."""
    if samples is None:
        return [Row(measures[-1], who, error=error)]
    keys = ("first_ms", "done_ms")[-len(measures):]
    return [Row(name, who, samples[key], note=note) for name, key in zip(measures, keys)]


def bubblewrap(root, command):
    namespaces = [f"--unshare-{name}" for name in ("user", "ipc", "pid", "net", "uts", "cgroup")]
    return ["bwrap", *namespaces, "--die-with-parent", "--new-session", "--cap-drop", "ALL",
            "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
            "--uid", "1000", "--gid", "1000", "--", *command]


def write_bundle(directory, root, command, group):
    """An OCI bundle with the walls and limits of a jail."""
    ids = [{"containerID": 0, "hostID": 100000, "size": 65536}]
    mount_options = ["nosuid", "nodev", "mode=1777", "size=65536k"]
    sets = ("bounding", "effective", "inheritable", "permitted", "ambient")
    config = {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": 1000, "gid": 1000},
            "args": command,
            "env": [PATH],
            "cwd": "/",
            "noNewPrivileges": True,
            "capabilities": {name: [] for name in sets},
        },
        "root": {"path": str(root), "readonly": True},
        "hostname": "bench",
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "tmpfs", "source": "tmpfs",
             "options": ["nosuid", "mode=755", "size=65536k"]},
            {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": mount_options},
        ],
        "linux": {
            "uidMappings": ids,
            "gidMappings": ids,
            "cgroupsPath": group,
            "resources": {
                "memory": {"limit": 512 << 20},
                "cpu": {"quota": 100000, "period": 100000},
                "pids": {"limit": 256},
            },
            "namespaces": [{"type": name} for name in
                           ("pid", "network", "ipc", "uts", "mount", "cgroup", "user")],
        },
    }
    directory.mkdir(parents=True)
    Path(directory, "config.json").write_text(json.dumps(config))


def attempts(runtime):
    """Ways to start a runtime, the full one first: global options, wrapper, what it gives up."""
    if runtime == "runsc":
        return [([], [], ""), (["--ignore-cgroups", "--network=none"], [], "without cgroups")]
    ways = [([], [], "")]
    if cgroup_kind().startswith("mixed"):
        ways.append(([], HIDE_V2, "v2 tree hidden from it"))
    if runtime == "crun":
        ways.append((["--cgroup-manager=disabled"], [], "without cgroups"))
        ways.append((["--cgroup-manager=disabled"], HIDE_V2, "without cgroups"))
    return ways


def oci(runtime, job, command, expected):
    """Samples, the first attempt's error if all fail, and what the attempt that worked gave up."""
    name = f"{runtime}-{Path(command[0]).name}"
    bundle, state = job.work / name / "bundle", job.work / name / "state"
    write_bundle(bundle, job.root, command, f"/{job.token}-{name}")
    first_error = ""
    for options, wrapper, note in attempts(runtime):
        start = [runtime, "--root", str(state), *options, "run", "--bundle", str(bundle)]
        samples, error = stopwatch(job.programs, job.plan, [*start, f"{job.token}-%RUN%"],
                                   expected, wrapper)
        if samples is not None:
            return samples, "", note
        first_error = first_error or error
    return None, first_error, ""


def measure(job, measures_python, measure_true):
    found = []
    work = ((PYTHON, "1\n", measures_python), (TRUE, "", [measure_true]))
    for command, expected, measures in work:
        if shutil.which("bwrap"):
            start = bubblewrap(job.root, command)
            samples, error = stopwatch(job.programs, job.plan, start, expected)
        else:
            samples, error = None, "not installed"
        found += rows(measures, "bwrap", samples, error, "no limits, read-only root")
        for runtime in ("crun", "runc", "runsc"):
            if shutil.which(runtime):
                samples, error, note = oci(runtime, job, command, expected)
            else:
                samples, error, note = None, "not installed", ""
            found += rows(measures, runtime, samples, error, note)
    return found
