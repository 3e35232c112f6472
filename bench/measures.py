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


def many(name, clients):
    return f"{name}, {clients} clients"


def burst(count):
    return f"{count} runs at once"


def first_burst(count):
    return f"{burst(count)}, the first time"


def order(row):
    names = [PYTHON, FIRST_OUTPUT, COPY, CONTEXT, CREATE, FIRST_EXEC, TRUE]
    place = next((i for i, name in enumerate(names) if row.measure.startswith(name)), len(names))
    subjects = ["atoll", "cold", "floor", "bwrap", "crun", "runc", "runsc"]
    return place, row.measure, subjects.index(row.who)
