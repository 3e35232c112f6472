"""sudo inside a sandbox: another user, the same exec; and clients that mean no good."""
import atoll

# CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID, NET_BIND_SERVICE, SYS_CHROOT
NINE = "00000000000404fb"
NONE = "0000000000000000"

CLIENT = r"""
import array, fcntl, os, socket, struct, sys, time
def connect():
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.settimeout(20)
    client.connect("/run/atoll/sudo")
    return client
def words(*texts):
    return struct.pack("<I", len(texts)) + b"".join(
        struct.pack("<I", len(text)) + text for text in texts)
def sealed(payload, seals=0xe):
    file = os.memfd_create("x", os.MFD_ALLOW_SEALING)
    os.write(file, payload)
    fcntl.fcntl(file, 1033, seals)
    return file
def text(value):
    return struct.pack("<I", len(value)) + value
def start(*command, directory=b"/", user=b"root"):
    return (words(*command) + words(b"PATH=/usr/bin:/bin") + text(directory) + text(user) +
            struct.pack("<IQBII", 0, 0, 0, 0, 0) + text(b"") + struct.pack("<BHH", 0, 0, 0))
def ask(client, file, count=3, magic=b"SUDO"):
    fds = array.array("i", [0, 1, 2, 2, 2, 2][:count] + [file])
    client.sendmsg([magic], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
def answer(client):
    end = client.recv(100)
    return (end[0], end[1], end[2:52].split(b"\0")[0].decode(), struct.unpack("<i", end[52:56])[0])
"""

# What each answers: nothing of it may reach a command, or hold the agent up.
GARBAGE = CLIENT + r"""
good = start(b"touch", b"/tmp/reached")
cases = {
    "empty": lambda c: ask(c, sealed(b"")),
    "not sealed": lambda c: ask(c, sealed(good, 0)),
    "half sealed": lambda c: ask(c, sealed(good, 0x6)),
    "a pipe": lambda c: ask(c, os.pipe()[0]),
    "a file": lambda c: ask(c, os.open("/etc/passwd", os.O_RDONLY)),
    "too few descriptors": lambda c: ask(c, sealed(good), 2),
    "too many descriptors": lambda c: ask(c, sealed(good), 6),
    "no descriptors": lambda c: c.send(b"SUDO"),
    "another magic": lambda c: ask(c, sealed(good), 3, b"ODUS"),
    "a long message": lambda c: ask(c, sealed(good), 3, b"SUDO" * 1000),
    "too long": lambda c: ask(c, sealed(start(b"touch", *[b"x" * 100000] * 30))),
    "no command": lambda c: ask(c, sealed(words() + good)),
    "cut off": lambda c: ask(c, sealed(good[:-1])),
    "more than all": lambda c: ask(c, sealed(good + b"x")),
    "a relative directory": lambda c: ask(c, sealed(start(b"touch", b"/tmp/x", directory=b"tmp"))),
    "no user": lambda c: ask(c, sealed(start(b"touch", b"/tmp/reached", user=b""))),
    "a user with a NUL": lambda c: ask(c, sealed(start(b"touch", b"/tmp/reached", user=b"root\0"))),
}
for name, send in cases.items():
    client = connect()
    send(client)
    kind, _, operation, number = answer(client)
    if kind != 3: print(name, kind, operation, number)
client = connect()
ask(client, sealed(start(b"sleep", b"1000")))
client.send(b"\0\0\0")
print(client.recv(100), os.path.exists("/tmp/reached"))
client = connect()
ask(client, sealed(start(b"true")))
print(answer(client))
"""

CROWD = CLIENT + r"""
import threading
kept = []
def crowd():
    for i in range(1000):
        client = connect()
        if i % 3 == 0: client.close()
        elif i % 3 == 1: ask(client, sealed(start(b"true"))); client.close()
        else: kept.append(client)
thread = threading.Thread(target=crowd, daemon=True)
thread.start()
print("begun", flush=True)
time.sleep(3)
os._exit(0)
"""

# Descriptors whose close waits: the last of a connection with unsent bytes and SO_LINGER. The agent
# must be the last to have them, so they are sent and closed while it accepts nobody because of idle
# clients.
LINGER = CLIENT + r"""
server = socket.create_server(("127.0.0.1", 0), backlog=64)
if os.fork() == 0:
    for stream in (0, 1, 2): os.close(stream)
    time.sleep(100)  # never reads
    os._exit(0)
def lingering():
    sender = socket.create_connection(server.getsockname())
    sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 600))
    sender.setblocking(False)
    try:
        while True: sender.send(b"x" * 65536)
    except BlockingIOError:
        return sender.detach()
def pass_on(client, message, count):
    fds = [lingering() for _ in range(count)]
    client.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))])
    for fd in fds: os.close(fd)
idle = [connect() for _ in range(16)]
time.sleep(0.5)
clients = [connect() for _ in range(4)]
pass_on(clients[0], b"SUDO", 4)  # received and closed
pass_on(clients[1], b"SUDO", 9)  # more than are received
pass_on(clients[2], b"xxxx", 1)
pass_on(clients[2], b"xxxx", 1)  # never received
ask(clients[3], sealed(start(b"sleep", b"100")))
pass_on(clients[3], b"\x0f", 1)  # with a signal
print(answer(clients[0]), answer(clients[3]))
"""


class Sudo(atoll.SystemTest):
    def setUp(self):
        self.sandbox = self.atoll.create()["id"]

    def tearDown(self):
        self.atoll.delete(self.sandbox)

    def shell(self, script, **fields):
        return self.atoll.execute(self.sandbox, ["sh", "-c", script], **fields)

    def output(self, script, **fields):
        done = self.shell(script, **fields)
        return done["stdout"] + done["stderr"]

    def test_is_root_with_nine_capabilities(self):
        self.assertEqual(self.output("id -u; sudo id -u; sudo id -gn"), "1000\n0\nroot\n")
        status = self.output("sudo cat /proc/self/status")
        for name, value in (("Inh", NONE), ("Prm", NINE), ("Eff", NINE), ("Bnd", NINE),
                            ("Amb", NONE)):
            self.assertIn(f"Cap{name}:\t{value}\n", status)
        self.assertIn("NoNewPrivs:\t1\n", status)
        self.assertIn("Seccomp:\t2\n", status)

    def test_differs_from_an_exec_of_that_user_in_nothing(self):
        look = "grep -vE '^(Pid|PPid|Tgid|Ngid|NS|Vm|Rss|Hugetlb|.*ctxt|Sig)' /proc/self/status"
        root = self.output(look, user="root")
        user = self.output(look)
        self.assertNotEqual(root, user)
        self.assertEqual(self.output(f"sudo sh -c \"{look}\""), root)
        self.assertEqual(self.output(f"sudo -u user sh -c \"{look}\"", user="root", cwd="/"), user)

    def test_becomes_user_and_nests(self):
        self.assertEqual(self.output("sudo -u user id -un; sudo sudo -u user sudo id -un"),
                         "user\nroot\n")
        self.assertEqual(self.output("sudo -u user id -un", user="root", cwd="/tmp"), "user\n")

    def test_ends_as_its_command(self):
        self.assertEqual(self.shell("sudo sh -c 'exit 9'")["exit_code"], 9)
        done = self.shell("exec sudo sh -c 'kill -SEGV $$'")
        self.assertEqual((done["verdict"], done["signal"]), ("signal", 11))
        done = self.shell("sudo not-there")
        self.assertEqual(done["exit_code"], 127)
        self.assertEqual(done["stderr"], "sudo: not-there: command not found\n")

    def test_keeps_directory_environment_and_pipes(self):
        self.assertEqual(self.output("echo x | sudo cat"), "x\n")
        self.assertEqual(self.output("cd /usr/lib; sudo pwd"), "/usr/lib\n")
        self.assertEqual(self.output("A=1 sudo B=2 sh -c 'echo $A $B $USER $SUDO_USER'"),
                         "1 2 root user\n")

    def test_does_what_root_is_wanted_for(self):
        self.assertEqual(self.output("sudo sh -c 'mkdir /data && chown user /data' &&"
                                     " echo mine >/data/file && cat /data/file"), "mine\n")
        self.assertEqual(self.output("sudo sh -c 'echo x >/usr/bin/x; chmod 4755 /usr/bin/x';"
                                     " cat /usr/bin/x"), "x\n")
        self.assertEqual(self.shell("sudo dpkg --version")["exit_code"], 0)

    def test_login_shells_find_it(self):
        self.assertEqual(self.output("bash -lc 'command -v sudo; sudo id -un'"),
                         "/usr/local/bin/sudo\nroot\n")
        self.assertEqual(self.output("sudo -i sudo id -un"), "root\n")
        self.assertEqual(self.output("sudo rm /usr/local/bin/sudo; ls /usr/local/bin | grep -c sud;"
                                     " sudo sh -c 'echo echo own >/usr/local/bin/sudo';"
                                     " sh /usr/local/bin/sudo"), "0\nown\n")

    def test_its_file_cannot_be_changed(self):
        done = self.shell("sudo sh -c 'echo x >/run/atoll/bin/sudo; rm -f /run/atoll/bin/sudo;"
                          " mv /run/atoll/bin/sudo /run/x; chmod u+s /run/atoll/bin/sudo'")
        self.assertEqual(done["stderr"].count("Read-only file system"), 4, done["stderr"])
        self.assertEqual(self.output("command -v sudo; stat -c %a /run/atoll/bin/sudo"),
                         "/run/atoll/bin/sudo\n555\n")
        mounts = self.output("grep ' /run/atoll/bin ' /proc/mounts").split()[3].split(",")
        self.assertLessEqual({"ro", "nosuid", "nodev"}, set(mounts))

    def test_the_time_of_the_exec_is_the_commands(self):
        done = self.shell("exec sudo sh -c 'setsid sleep 1234 & sleep 1234'", timeout_ms=1000)
        self.assertEqual(done["verdict"], "wall_time")
        find = "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'p 123[4]'"
        atoll.wait_for("both to end", lambda: self.output(find) == "0\n")

    def test_garbage_reaches_nothing(self):
        done = self.atoll.python(self.sandbox, GARBAGE)
        self.assertEqual(done["stdout"] + done["stderr"], "b'' False\n(0, 0, '', 0)\n")

    def test_a_crowd_disturbs_nobody_for_long(self):
        crowd = self.atoll.start(self.sandbox, ["python3", "-c", CROWD])["id"]
        for _ in range(20):
            self.assertEqual(self.output("echo here"), "here\n")
        self.atoll.wait_ended(self.sandbox, crowd)
        self.assertEqual(self.output("sudo id -u"), "0\n")

    def test_descriptors_that_linger_do_not_hold_the_agent(self):
        done = self.atoll.python(self.sandbox, LINGER, timeout_ms=60000)
        self.assertEqual(done["stdout"] + done["stderr"],
                         "(3, 0, 'malformed request', 71) (1, 15, '', 0)\n")
        self.assertEqual(self.output("echo here", timeout_ms=20000), "here\n")
        self.assertEqual(self.output("sudo id -u", timeout_ms=20000), "0\n")


if __name__ == "__main__":
    atoll.main()
