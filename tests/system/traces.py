"""Traces on the host: those of one Atoll, which no other one on the machine changes, and those that
any Atoll has left anywhere."""
import glob
import os

REGISTRY = "/run/atoll-uid-ranges"


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def read_bytes(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def status_of(pid):
    """Fields of a process by name; none when it has ended."""
    lines = read(f"/proc/{pid}/status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def is_zombie(pid):
    return status_of(pid).get("State", "").startswith("Z")


def namespace_of(pid, kind):
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}")
    except OSError:
        return None


def run_tag(run_directory):
    """The name of its control group (warden/host.cc)."""
    value = 0xcbf29ce484222325
    for byte in run_directory.encode():
        value = (value ^ byte) * 0x100000001b3 % (1 << 64)
    return f"{value:016x}"[:8]


def hierarchies():
    """Where control groups are mounted, of both versions."""
    mounts = [line.split() for line in read("/proc/self/mountinfo").splitlines()]
    return sorted({fields[4] for fields in mounts
                   if fields[fields.index("-") + 1] in ("cgroup", "cgroup2")})


def groups_below(top):
    return [folder for folder, _, _ in os.walk(top)]


def is_in_group(pid, tag):
    paths = [line.split(":", 2)[2] for line in read(f"/proc/{pid}/cgroup").splitlines()]
    return any(f"/atoll/{tag}/" in path + "/" for path in paths)


def loop_devices():
    """Name of each and the file behind it."""
    for path in glob.glob("/sys/block/loop*/loop/backing_file"):
        file = read(path).strip()
        if file:
            yield path.split("/")[3], file


def uid_ranges():
    """Number of each and its owner: run directory and sandbox."""
    for path in glob.glob(f"{REGISTRY}/*"):
        yield os.path.basename(path), read(path).replace("\n", " ").strip()


class Census:
    """The processes of one Atoll: in its groups, or with its directory in their command line or
    environment; and the zombies that they, or these tests, have not waited for."""

    def __init__(self, directory):
        self.living, self.zombies = [], []
        tag = run_tag(os.path.join(directory, "run"))
        states = {pid: status_of(pid) for pid in processes()}
        for pid, status in states.items():
            if pid == os.getpid() or not status:
                continue
            if is_in_group(pid, tag) or is_about(pid, directory):
                is_dead = status["State"].startswith("Z")
                (self.zombies if is_dead else self.living).append(pid)
        parents = {*self.living, os.getpid()}
        self.zombies += [pid for pid, status in states.items()
                         if status.get("State", "").startswith("Z")
                         and pid not in self.zombies and int(status["PPid"]) in parents]
        # Process 1 waits for its children in its own time.
        self.zombies = [pid for pid in self.zombies if states[pid]["PPid"] != "1"]


def is_about(pid, directory):
    name = directory.encode()
    return any(name in read_bytes(f"/proc/{pid}/{file}") for file in ("cmdline", "environ"))


def describe(pid):
    words = read(f"/proc/{pid}/cmdline").replace("\0", " ").strip()
    return f"{pid} {read(f'/proc/{pid}/comm').strip()}: {words[:100]}"


def mounts_below(directory):
    """Of every mount namespace that a process is in: whoever it belongs to."""
    members = {}
    for pid in ["self", *processes()]:
        members.setdefault(namespace_of(pid, "mnt"), []).append(pid)
    found = set()
    for namespace, pids in members.items():
        # The first that has not ended meanwhile.
        text = next(filter(None, (read(f"/proc/{pid}/mountinfo") for pid in pids)), "")
        for fields in (line.split() for line in text.splitlines() if directory in line):
            found.add(f"{namespace} {fields[4]} of {fields[3]}")
    return sorted(found)


def of_atoll(directory):
    """What is there of the Atoll with this state directory, by kind; nothing of a kind when all of
    that kind has gone."""
    run = os.path.join(directory, "run")
    census = Census(directory)
    own = namespace_of("self", "net")
    networks = {namespace_of(pid, "net") for pid in census.living} - {None, own}
    return {
        "processes": [describe(pid) for pid in census.living],
        "zombies": [describe(pid) for pid in census.zombies],
        "mounts": mounts_below(directory),
        "cgroups": [group for top in hierarchies()
                    for group in groups_below(os.path.join(top, "atoll", run_tag(run)))],
        "network namespaces": sorted(networks),
        "loop devices": [f"{name} of {file}" for name, file in loop_devices() if directory in file],
        "uid ranges": [f"{number} of {owner}" for number, owner in uid_ranges()
                       if owner.startswith(run + " ")],
    }


def is_leaked_zombie(pid):
    status = status_of(pid)
    return status.get("State", "").startswith("Z") and status["PPid"] != "1"


def began(pid):
    """When, by the kernel's clock: the number of a process may come again."""
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


def of_host():
    """What a leak of any Atoll would add to this machine, by kind."""
    pids = processes()
    ours = [pid for pid in pids if "atoll" in read(f"/proc/{pid}/comm") and not is_zombie(pid)]
    return {
        "processes": [f"{describe(pid)} ({began(pid)})" for pid in ours],
        "zombies": [f"{describe(pid)} ({began(pid)})" for pid in pids if is_leaked_zombie(pid)],
        "mounts": read("/proc/self/mountinfo").splitlines(),
        "cgroups": [group for top in hierarchies()
                    for folder in glob.glob(os.path.join(top, "atoll*"))
                    for group in groups_below(folder)],
        "network namespaces": sorted({namespace_of(pid, "net") for pid in pids} - {None}),
        "loop devices": [f"{name} of {file}" for name, file in loop_devices()],
        "uid ranges": [f"{number} of {owner}" for number, owner in uid_ranges()],
    }
