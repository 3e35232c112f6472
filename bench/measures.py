"""The names of the rows, in the order of the table."""

FIRST_OUTPUT = "python3 -c 'print(1)' to its first output"
PYTHON = "python3 -c 'print(1)', start to end"
COPY = "create and run Python, only the zygote is ready"
CONTEXT = "print(1) in a live context"
CREATE = "create, nothing ready"
FIRST_EXEC = "first exec of Python"
TRUE = "/bin/true (atoll: in a live sandbox)"
SUSTAINED = "sustained create + run + remove"
IDLE = "memory of an idle Python sandbox"
IDLE_DATA = "memory of an idle Python sandbox with NumPy and pandas"
REST = "atolld at rest"
# Per wall, see walls.py.
WALL_START = "wall: create, nothing ready"
WALL_POOL = "wall: create and print(1), from the pool"
WALL_POOL_FIRST = "wall: the same to the first output"
WALL_RESTORED = "wall: create and print(1), restored beside the pool"
WALL_RESTORED_FIRST = "wall: the same to the first output, restored"
WALL_IDLE = "wall: memory of an idle one, from the pool"
WALL_EXEC = "wall: /bin/true in a live sandbox"
WALL_PORT = "wall: a request to a server inside"
WALL_INSIDE = {"syscall": "wall: a system call", "fork": "wall: fork, exit and wait",
               "loopback": "wall: one byte there and back inside",
               "disk": "wall: a MiB of 16 written, with fsync",
               "files": "wall: a file made, written and removed"}


def many(name, clients):
    return f"{name}, {clients} clients"


def burst(count):
    return f"{count} runs at once"


def first_burst(count):
    return f"{burst(count)}, the first time"


def order(row):
    names = [PYTHON, FIRST_OUTPUT, COPY, CONTEXT, CREATE, FIRST_EXEC, TRUE]
    place = next((i for i, name in enumerate(names) if row.measure.startswith(name)), len(names))
    subjects = ["atoll", "cold", "jail", "gvisor", "microvm", "floor", "bwrap", "crun", "runc",
                "runsc"]
    return place, row.measure, subjects.index(row.who)
