"""Turns of the tests on one host, also of several checkouts. Files of tests run side by side; a
file that looks at the whole host, or loads all of it, runs alone."""
import fcntl
import os


def take_turn(alone, folder="/run"):
    """The lock, to be kept until the process ends. The queue makes a file that wants to be alone
    come before those that ask after it: without it, it would wait as long as others come."""
    with open(os.path.join(folder, "atoll-tests.queue"), "w") as queue:
        fcntl.flock(queue, fcntl.LOCK_EX)
        turn = open(os.path.join(folder, "atoll-tests.lock"), "w")
        fcntl.flock(turn, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    return turn
