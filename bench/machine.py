"""Facts about the machine, printed beside every figure."""

import os
import platform
import re
from pathlib import Path


def cgroup_kind():
    if Path("/sys/fs/cgroup/cgroup.controllers").exists():
        return "v2"
    if Path("/sys/fs/cgroup/unified/cgroup.procs").exists():
        return "mixed (v1 controllers, v2 tree without)"
    return "v1" if Path("/sys/fs/cgroup/memory").exists() else "none"


def facts():
    cpu = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = re.search(r"^MemTotal:\s*(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(memory[1]) * 1024,
        "kernel": platform.release(),
        "cgroups": cgroup_kind(),
        "load_before": os.getloadavg()[0],
    }
