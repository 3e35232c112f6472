"""The time in which a sandbox is paused counts for none of its limits."""
import time

GO_ON = "/tmp/go-on"
WAIT = f"until [ -e {GO_ON} ]; do sleep 0.05; done; echo done"
# Uses the processor all the time, and no other program.
SPIN = f"until [ -e {GO_ON} ]; do :; done; echo done"
ROUNDS = 5


class Pausing:
    """A sandbox that is paused for longer than its programs may take. What they took without the
    pause is at most `awake_ms`."""

    def __init__(self, service, sandbox, timeout_ms):
        self.service, self.sandbox, self.timeout_ms = service, sandbox, timeout_ms
        self.path = f"/v1/sandboxes/{sandbox}"
        service.execute(sandbox, ["rm", "-f", GO_ON])
        self.begun = time.monotonic()
        self.awake_ms = 0.0

    def pause(self, meanwhile):
        assert self.service.request("POST", self.path + "/pause").status == 200
        paused = time.monotonic()
        meanwhile()
        time.sleep(max(0.0, paused + self.timeout_ms / 1000 + 0.5 - time.monotonic()))
        self.begun += time.monotonic() - paused
        assert self.service.request("POST", self.path + "/resume").status == 200
        self.service.execute(self.sandbox, ["touch", GO_ON])

    def end(self):
        self.awake_ms = 1000 * (time.monotonic() - self.begun)

    def is_fair(self, verdict):
        """Whether the pause counted for nothing; else the host was so slow that the time was over
        without it."""
        if verdict == "ok":
            return True
        assert verdict in ("wall_time", "cpu_time"), verdict
        assert self.awake_ms >= self.timeout_ms, \
            f"{verdict} after at most {self.awake_ms:.0f} of {self.timeout_ms} ms"
        return False


def check_exec(service, sandbox, script, timeout_ms):
    """A program outlives a pause; where the host was too slow to tell, with twice the time."""
    for _ in range(ROUNDS):
        limits = {"cpu_time_ms": timeout_ms} if script == SPIN else {}
        pausing = Pausing(service, sandbox, timeout_ms)
        started = service.start(sandbox, ["sh", "-c", script], timeout_ms=timeout_ms, limits=limits)
        pausing.pause(lambda: None)
        done = service.wait_ended(sandbox, started["id"])
        pausing.end()
        if pausing.is_fair(done["verdict"]):
            assert done["stdout"] == "done\n", done
            return
        timeout_ms *= 2
    raise AssertionError(f"the host is too slow for {timeout_ms} ms")
