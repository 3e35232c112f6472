"""The same work by other programs, on the same image: bubblewrap and the OCI runtimes."""

import json
import shutil
import subprocess
from pathlib import Path

import measures
from machine import cgroup_kind
from report import Row

PYTHON = ["python3", "-c", "print(1)"]
TRUE = ["/bin/true"]
PATH = "PATH=/usr/local/bin:/usr/bin:/bin"
HIDE_V2 = ["unshare", "--mount", "sh", "-c", 'umount -l /sys/fs/cgroup/unified && exec "$@"', "sh"]
PEER_SECONDS = 300


def stopwatch(job, runs, commands, expected, wrapper=()):
    """Samples of the commands, which run beside each other, or the last line of why one failed."""
    watch = [str(job.programs / "atoll-stopwatch"), str(runs), str(job.plan.warm_ups), expected]
    started = [subprocess.Popen([*wrapper, *watch, *command], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True) for command in commands]
    samples, failure = {"first_ms": [], "done_ms": []}, ""
    for process in started:
        try:
            output, errors = process.communicate(timeout=PEER_SECONDS)
        except subprocess.TimeoutExpired as error:
            process.kill()
            output, errors = process.communicate()
            failure = failure or str(error)
        if process.returncode != 0:
            lines = [line for line in errors.splitlines() if line.strip()]
            failure = failure or (lines[-1].strip() if lines else f"exit code {process.returncode}")
            continue
        for key, values in json.loads(output).items():
            samples[key] += values
    return (None, failure) if failure else (samples, "")


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


def oci(runtime, job, command, expected, clients):
    """Samples, the first attempt's error if all fail, and what the attempt that worked gave up."""
    name = f"{runtime}-{Path(command[0]).name}-{clients}"
    bundles, state = [job.work / name / str(i) for i in range(clients)], job.work / name / "state"
    for i, bundle in enumerate(bundles):
        write_bundle(bundle, job.root, command, f"/{job.token}-{name}-{i}")
    first_error = ""
    for options, wrapper, note in attempts(runtime):
        start = [runtime, "--root", str(state), *options, "run", "--bundle"]
        commands = [[*start, str(bundle), f"{job.token}-{i}-%RUN%"]
                    for i, bundle in enumerate(bundles)]
        samples, error = stopwatch(job, runs_of(job, clients), commands, expected, wrapper)
        if samples is not None:
            return samples, "", note
        first_error = first_error or error
    return None, first_error, ""


def runs_of(job, clients):
    """Of each client; a few of many are as many samples."""
    return max(5, job.plan.runs // clients)


def measure_with(job, command, expected, names, clients):
    found = []
    if shutil.which("bwrap"):
        commands = [bubblewrap(job.root, command)] * clients
        samples, error = stopwatch(job, runs_of(job, clients), commands, expected)
    else:
        samples, error = None, "not installed"
    found += rows(names, "bwrap", samples, error, "no limits, read-only root")
    for runtime in ("crun", "runc", "runsc"):
        if shutil.which(runtime):
            samples, error, note = oci(runtime, job, command, expected, clients)
        else:
            samples, error, note = None, "not installed", ""
        found += rows(names, runtime, samples, error, note)
    return found


def measure(job):
    clients = job.plan.clients
    return [
        *measure_with(job, PYTHON, "1\n", [measures.FIRST_OUTPUT, measures.PYTHON], 1),
        *measure_with(job, PYTHON, "1\n", [measures.many(measures.PYTHON, clients)], clients),
        *measure_with(job, TRUE, "", [measures.TRUE], 1),
        *measure_with(job, TRUE, "", [measures.many(measures.TRUE, clients)], clients),
    ]
