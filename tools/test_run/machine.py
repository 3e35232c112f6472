"""How busy the machine was: a sample every few seconds while the tests run."""

import os
import threading

SAMPLE_SECONDS = 5.0
STEAL = 8  # among the numbers of /proc/stat's first line


def jiffies():
    with open("/proc/stat", encoding="ascii") as file:
        return [int(number) for number in file.readline().split()[1:]]


def cpu_seconds():
    """All that the processors have worked since the machine started, not idle or waiting."""
    now = jiffies()
    return (sum(now[:3]) + sum(now[5:7])) / os.sysconf("SC_CLK_TCK")


class Watch:
    """Load average and the share of time that a hypervisor took away, in between."""

    def __init__(self):
        self.begin, self.loads = jiffies(), [os.getloadavg()[0]]
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.sample, daemon=True)
        self.thread.start()

    def sample(self):
        while not self.stopped.wait(SAMPLE_SECONDS):
            self.loads.append(os.getloadavg()[0])

    def stop(self):
        self.stopped.set()
        self.thread.join()
        spent = [after - before for before, after in zip(self.begin, jiffies())]
        return {"load_mean": round(sum(self.loads) / len(self.loads), 2),
                "load_max": round(max(self.loads), 2),
                "steal_percent": round(100 * spent[STEAL - 1] / max(1, sum(spent[:8])), 2)}
