"""Templates from every source: built in jails, used, versioned, shared and collected."""
import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile

import atoll
import registry
import small_root
from small_root import entry, pack, tar


class Templates(atoll.SystemTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = small_root.root_tar(entry("etc/marker", b"from the tar\n"))

    def put(self, name, data, key=None, expect=(200, 202), query=""):
        answer = self.atoll.request("PUT", f"/v1/templates/{name}/pack{query}", data, key=key,
                                    headers={"Content-Type": "application/x-tar"})
        self.assertIn(answer.status, expect, answer.body)
        return answer.json

    def wait_built(self, name, key=None, state="built", seconds=120):
        def ended():
            build = self.atoll.request("GET", f"/v1/templates/{name}/build", key=key).json
            return build["state"] in ("built", "failed") and build
        build = atoll.wait_for(f"the build of {name}", ended, seconds)
        self.assertEqual(build["state"], state, build)
        return build

    def build(self, name, data, **options):
        self.put(name, data, key=options.get("key"))
        return self.wait_built(name, **options)

    def log(self, name):
        answer = self.atoll.request("GET", f"/v1/templates/{name}/build",
                                    headers={"Accept": "text/event-stream"})
        self.assertEqual(answer.status, 200)
        return answer.body.decode()

    def run_in(self, template, script, key=None):
        body = {"template": template, "cmd": ["/bin/sh", "-c", script]}
        answer = self.atoll.request("POST", "/v1/run", body, key=key)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json

    def remove(self, name, key=None):
        answer = self.atoll.request("DELETE", f"/v1/templates/{name}", key=key)
        self.assertEqual(answer.status, 204, answer.body)

    def images(self):
        return sorted(os.listdir(os.path.join(self.atoll.directory, "images")))

    def assert_no_leftovers(self):
        builds = os.path.join(self.atoll.directory, "builder", "builds")
        atoll.wait_for("the builder to clean up", lambda: not os.listdir(builds))
        self.assertEqual([name for name in self.images() if not name.endswith(".erofs")], [])

    def test_root_tar_of_every_compression(self):
        kinds = {"": self.root}
        for kind in ("gz", "xz", "zst"):
            if kind == "zst" and not shutil.which("zstd"):
                print("SKIPPED: root.tar.zst, because there is no program zstd to make it")
                continue
            kinds[f".{kind}"] = small_root.compress(self.root, kind)
        images = set()
        for kind, data in kinds.items():
            source = f'rootfs_tar = "root.tar{kind}"'
            built = self.build("small", pack("small", source, {f"root.tar{kind}": data}))
            images.add(built["reference"])
            done = self.run_in("small", "cat /etc/marker; ls -a /; cat /etc/hostname")
            self.assertEqual(done["verdict"], "ok", done)
            self.assertTrue(done["stdout"].startswith("from the tar\n"), done)
        self.assertEqual(len(images), 1, "the same tree is the same image, however it came")
        self.remove("small")
        self.assert_no_leftovers()

    def test_nothing_of_the_host_is_in_it(self):
        self.build("bare", pack("bare", 'rootfs_tar = "r"', {"r": self.root}))
        done = self.run_in("bare", "cd /; ls etc home root var usr/share 2>/dev/null; ls /")
        words = set(done["stdout"].split())
        self.assertFalse(words & {"shadow", "apt", "ssh", "dpkg", "doc", "boot", "work"}, words)
        self.remove("bare")

    def test_versions_aliases_and_unchanged_packs(self):
        def version(text):
            data = small_root.root_tar(entry("etc/version", text))
            return pack("versions", 'rootfs_tar = "r"', {"r": data}, top='aliases = ["vs"]\n')
        one = self.build("versions", version(b"1"))["reference"]
        again = self.put("versions", version(b"1"))
        self.assertEqual((again["state"], again["reference"]), ("built", one))
        two = self.build("versions", version(b"2"))["reference"]
        self.assertNotEqual(one, two)
        for name, text in ((one, "1"), (two, "2"), ("versions", "2"), ("vs", "2")):
            self.assertEqual(self.run_in(name, "cat /etc/version")["stdout"], text, name)
        shown = self.atoll.request("GET", "/v1/templates/vs").json
        self.assertEqual((shown["name"], shown["reference"]), ("versions", two))
        wrong = self.atoll.request("POST", "/v1/sandboxes",
                                   {"template": "versions@sha256:" + "0" * 64})
        self.assertEqual((wrong.status, wrong.json["error"]["code"]), (404, "template_not_found"))
        self.remove("versions")

    def test_oci_layers_from_a_registry(self):
        lower = small_root.root_tar(entry("opt/old", b"old"), entry("opt/dir/a", b"a"),
                                    entry("opt/dir/b", b"b"))
        upper = tar([entry("opt/.wh.old"), entry("opt/dir/c", b"c"),
                     entry("opt/dir/.wh..wh..opq"), entry("opt/new", b"new", uid=1000),
                     entry("opt/hard", kind=b"1", link="opt/new")])
        image = small_root.OciImage(lower, upper)
        for auth in ("none", "bearer"):
            served = registry.Registry("team/app", image, auth)
            self.addCleanup(served.close)
            name = f"oci-{auth}"
            self.build(name, pack(name, f'oci = "{served.host}/team/app:latest"'))
            script = "cd /opt; ls . dir; cat new hard; stat -c %u:%h new"
            done = self.run_in(name, script)
            beside = ["atoll", "dir", "hard", "new"]  # /opt/atoll is the toolbox's place
            self.assertEqual(done["stdout"].split(),
                             [".:", *beside, "dir:", "c", "newnew1000:2"], done)
            self.remove(name)

    def test_registry_credentials_are_the_operators(self):
        image = small_root.OciImage(self.root)
        served = registry.Registry("private/app", image, "basic")
        self.addCleanup(served.close)
        auth = os.path.join(self.atoll.directory, "registry-auth.json")
        with open(auth, "w", encoding="ascii") as file:
            json.dump({"auths": {served.host: {"auth": served.USER}}}, file)
        os.chmod(auth, 0o600)
        self.addCleanup(os.unlink, auth)
        data = pack("private", f'oci = "{served.host}/private/app"')
        key = self.tenant_key("creds")
        self.put("private", data, key=key)
        self.assertIn("does not let us",
                      self.wait_built("private", key=key, state="failed")["failure"])
        self.build("private", data)
        self.remove("private")

    def test_registry_that_lies(self):
        image = small_root.OciImage(self.root)
        for name in list(image.blobs):
            if len(image.blobs[name]) > 10000:
                image.blobs[name] = image.blobs[name][:-1] + b"!"
        served = registry.Registry("evil/app", image)
        self.addCleanup(served.close)
        self.put("liar", pack("liar", f'oci = "{served.host}/evil/app"'))
        self.assertIn("other bytes", self.wait_built("liar", state="failed")["failure"])
        self.assert_no_leftovers()

    def test_oci_layout_and_docker_archive(self):
        image = small_root.OciImage(self.root, tar([entry("etc/layer", b"two")]))
        files = {f"image/{path}": data for path, data in image.layout().items()}
        self.build("layout", pack("layout", 'oci_layout = "image"', files))
        self.assertEqual(self.run_in("layout", "cat /etc/layer")["stdout"], "two")
        saved = tar([entry("abc/layer.tar", self.root), entry("def/layer.tar",
                                                              tar([entry("etc/layer", b"3")])),
                     entry("manifest.json",
                           json.dumps([{"Config": "x.json", "RepoTags": None, "Layers":
                                        ["abc/layer.tar", "def/layer.tar"]}]).encode())])
        self.build("saved", pack("saved", 'oci_archive = "saved.tar"', {"saved.tar": saved}))
        self.assertEqual(self.run_in("saved", "cat /etc/layer")["stdout"], "3")
        for name in ("layout", "saved"):
            self.remove(name)

    def test_hostile_archives_are_refused(self):
        for name, bad in (("dots", entry("../../etc/cron.d/x", b"x")),
                          ("owner", entry("x", b"x", uid=70000)),
                          ("deep", entry("d/" * 200 + "x", b"x")),
                          ("hardlink", entry("h", kind=b"1", link="../../../etc/passwd"))):
            self.put(f"bad-{name}", pack(f"bad-{name}", 'rootfs_tar = "r"', {"r": tar([bad])}))
            self.wait_built(f"bad-{name}", state="failed")
        confined = tar([entry("dev", kind=b"2", link="/etc"), entry("proc", b"file"),
                        entry("up", kind=b"2", link="../../.."), entry("up/escaped", b"x"),
                        entry("null", kind=b"3"), entry("root-shell", b"x", 0o6755),
                        *small_root.system_entries()])
        self.build("confined", pack("confined", 'rootfs_tar = "r"', {"r": confined}))
        done = self.run_in("confined", "stat -c '%a %F' /root-shell /escaped; ls /null; ls -d /dev")
        self.assertIn("755 regular file", done["stdout"])
        self.assertNotIn("6755", done["stdout"])
        self.assertIn("/dev", done["stdout"])
        self.assertIn("null", done["stderr"])
        self.remove("confined")
        self.assert_no_leftovers()

    def test_wrong_packs_are_refused_at_once(self):
        for data, part in ((b"no tar at all" * 100, b"archive"),
                           (tar([entry("x", b"")]), b"no template.toml"),
                           (pack("other", 'rootfs_tar = "r"'), b"names other"),
                           (pack("wrong", 'rootfs_tarr = "r"'), b"rootfs_tar"),
                           (pack("wrong", 'rootfs_tar = "../r"'), b"rootfs_tar")):
            answer = self.atoll.request("PUT", "/v1/templates/wrong/pack", data,
                                        headers={"Content-Type": "application/x-tar"})
            self.assertEqual(answer.status, 400, answer.body)
            self.assertIn(part, answer.body)

    def test_setup_runs_in_a_sandbox(self):
        more = ('setup = ["mkdir -p /srv/data; echo made >/srv/data/x", '
                '"stat -c %u /srv/data/x; cat /proc/net/dev"]')
        self.build("prepared", pack("prepared", 'rootfs_tar = "r"', {"r": self.root}, more))
        self.assertEqual(self.run_in("prepared", "cat /srv/data/x /etc/marker")["stdout"],
                         "made\nfrom the tar\n")
        log = self.log("prepared")
        self.assertIn("lo:", log)
        self.assertNotIn("eth", log, "no network while it is set up")
        bad = pack("broken", 'rootfs_tar = "r"', {"r": self.root},
                   'setup = ["echo about to fail; exit 7"]')
        self.put("broken", bad)
        self.assertIn("exit code 7", self.wait_built("broken", state="failed")["failure"])
        self.assertIn("about to fail", self.log("broken"))
        self.assertEqual(self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"], [])
        self.remove("prepared")

    def test_grows_from_another(self):
        def ground(text):
            return pack("ground", 'rootfs_tar = "r"', {"r": self.root}, (
                f'setup = ["mkdir -p /srv; echo {text} >/top"]\n[defaults]\n'
                'env = { A = "1", B = "2" }\ncwd = "/srv"\npids = 99\n'))
        files = {"files/etc/added": b"added\n", "files/home/user/mine": b"mine\n"}
        grown = pack("grown", 'template = "ground"', files,
                     'files = "files"\nsetup = ["# in short\\n: >/srv/x"]')
        self.put("grown", grown, expect=(400,))
        self.build("ground", ground("old"))
        first = self.build("grown", grown)["reference"]
        self.assertIn("$ in short", self.log("grown"))
        look = "pwd; echo $A$B; cat /top /etc/added ~/mine /etc/marker; stat -c %u:%a ~/mine; ls"
        said = "/srv\n12\n{}\nadded\nmine\nfrom the tar\n1000:644\nx\n"
        self.assertEqual(self.run_in("grown", look)["stdout"], said.format("old"))
        self.assertEqual(self.put("grown", grown)["reference"], first, "nothing has changed")
        self.build("ground", ground("new"))
        self.assertNotEqual(self.build("grown", grown)["reference"], first)
        self.remove("ground")
        self.assertEqual(self.run_in("grown", look)["stdout"], said.format("new"))
        made = self.atoll.request("POST", "/v1/sandboxes", {"template": "grown",
                                                            "env": {"B": "3"}}).json
        self.assertEqual(made["limits"]["pids"], 99)
        done = self.atoll.request("POST", f"/v1/sandboxes/{made['id']}/execs", {
            "shell": "echo $A$B$C; pwd", "env": {"C": "4"}, "cwd": "/tmp", "wait": True}).json
        self.assertEqual(done["stdout"], "134\n/tmp\n")
        self.assertEqual(self.atoll.request("DELETE", f"/v1/sandboxes/{made['id']}").status, 204)
        self.remove("grown")

    def tenant_key(self, tenant):
        answer = self.atoll.request("POST", "/v1/keys", {"tenant": tenant})
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json["key"]

    def names(self, key=None):
        listed = self.atoll.request("GET", "/v1/templates", key=key).json["templates"]
        return {row["name"]: row for row in listed}

    def test_tenants_have_their_own(self):
        one, two = self.tenant_key("one"), self.tenant_key("two")

        def data(text):
            return pack("mine", 'rootfs_tar = "r"',
                        {"r": small_root.root_tar(entry("etc/who", text))})
        self.build("mine", data(b"one"), key=one)
        self.assertNotIn("mine", self.names(two))
        self.assertNotIn("mine", self.names())
        for path in ("", "/build", "/pack"):
            self.assertEqual(self.atoll.request("GET", "/v1/templates/mine" + path, key=two).status,
                             404)
        self.assertEqual(self.atoll.request("DELETE", "/v1/templates/mine", key=two).status, 404)
        self.build("mine", data(b"two"), key=two)
        self.assertEqual(self.run_in("mine", "cat /etc/who", one)["stdout"], "one")
        self.assertEqual(self.run_in("mine", "cat /etc/who", two)["stdout"], "two")
        self.build("mine", data(b"operator"))
        self.remove("mine", two)
        self.assertEqual(self.run_in("mine", "cat /etc/who", two)["stdout"], "operator")
        self.assertEqual(self.names(two)["mine"]["origin"], "operator")
        self.assertEqual(self.atoll.request("DELETE", "/v1/templates/mine", key=two).status, 404)
        self.remove("mine", one)
        self.remove("mine")

    def test_an_image_goes_with_the_last_that_needs_it(self):
        data = pack("brief", 'rootfs_tar = "r"',
                    {"r": small_root.root_tar(entry("etc/brief", b"x"))})
        reference = self.build("brief", data)["reference"]
        image = os.path.join(self.atoll.directory, "images",
                             reference.split(":")[1] + ".erofs")
        os.utime(image, (0, 0))
        sandbox = self.atoll.create(template="brief")["id"]
        self.remove("brief")
        self.assertTrue(os.path.exists(image), "a sandbox uses it")
        self.assertEqual(self.atoll.execute(sandbox, ["/bin/cat", "/etc/brief"])["stdout"], "x")
        self.atoll.delete(sandbox)
        self.build("other", pack("other", 'rootfs_tar = "r"', {"r": self.root}))
        self.remove("other")
        atoll.wait_for("the image to be collected", lambda: not os.path.exists(image))
        mounts = atoll.read(f"/proc/{self.atoll.warden_pid}/mountinfo")
        self.assertNotIn(reference.split(":")[1], mounts)

    def test_built_in_templates_are_built_when_first_used(self):
        folder = os.path.join(self.atoll.directory, "built-in", "first-use")
        os.mkdir(folder)
        self.addCleanup(shutil.rmtree, folder)
        with open(os.path.join(folder, "template.toml"), "w", encoding="ascii") as file:
            file.write(small_root.manifest("first-use", 'rootfs_tar = "root.tar"'))
        with open(os.path.join(folder, "root.tar"), "wb") as file:
            file.write(self.root)
        self.assertEqual(self.names()["first-use"]["state"], "not_built")
        key = self.tenant_key("first")
        answer = self.atoll.request("POST", "/v1/sandboxes", {"template": "first-use"}, key=key)
        self.assertEqual((answer.status, answer.json["error"]["code"]), (503, "template_building"))
        self.assertIn("Retry-After", answer.headers)
        self.wait_built("first-use", key=key)
        self.assertEqual(self.run_in("first-use", "cat /etc/marker", key)["verdict"], "ok")
        self.remove("first-use")
        done = self.atoll.cli("run", "-t", "first-use", "--json", "-c", "x", check=False)
        self.assertNotIn(b"template_building", done.stdout + done.stderr)
        created = self.atoll.cli("create", "-t", "first-use").stdout.decode().split()[0]
        self.atoll.delete(created)
        self.remove("first-use")

    def test_cli_builds_exports_imports_and_removes(self):
        folder = tempfile.mkdtemp(prefix="atoll-cli-template-")
        self.addCleanup(shutil.rmtree, folder)
        mine = os.path.join(folder, "my-own")
        self.atoll.cli("template", "init", mine)
        text = atoll.read(os.path.join(mine, "template.toml"))
        self.assertIn('name = "my-own"', text)
        with open(os.path.join(mine, "template.toml"), "w", encoding="utf-8") as file:
            file.write(text.replace('debian = {', 'rootfs_tar = "root.tar"\n# debian = {'))
        with open(os.path.join(mine, "root.tar"), "wb") as file:
            file.write(self.root)
        built = self.atoll.cli("template", "build", mine)
        reference = built.stdout.decode().strip()
        self.assertRegex(reference, r"^my-own@sha256:[0-9a-f]{64}$")
        self.assertIn(b"5/5", built.stderr)
        self.assertIn(b"my-own", self.atoll.cli("template", "ls").stdout)
        self.assertIn(b"Python", self.atoll.cli("template", "show", "my-own").stdout)
        packed = os.path.join(folder, "my-own.tar")
        self.atoll.cli("template", "export", "my-own", "-o", packed)
        self.atoll.cli("template", "rm", "my-own")
        self.assertNotIn("my-own", self.names())
        imported = self.atoll.cli("template", "import", packed)
        self.assertEqual(imported.stdout.decode().strip(), reference)
        self.remove("my-own")

    def test_a_build_that_is_given_up_leaves_nothing(self):
        """The builder is asked directly: who closes the connection ends the build."""
        before = self.images()
        slow = tar([entry(f"f{number}", b"x" * 4096) for number in range(20000)])
        self.put("slow", pack("slow", 'rootfs_tar = "r"', {"r": slow}))
        builds = os.path.join(self.atoll.directory, "builder", "builds")
        atoll.wait_for("the build to begin", lambda: os.listdir(builds))
        os.kill(self.atoll.daemon_pid, signal.SIGKILL)
        self.atoll.close()
        self.atoll.wait_ready()
        self.assert_no_leftovers()
        self.assertEqual(self.images(), before)
        self.assertNotIn("slow", self.names())


class KilledAtEveryStage(atoll.SystemTest):
    """As power loss does: whoever is at work dies at each point, and the next start is clean."""
    BUILDER = ("request.received", "build.begun", "build.opened", "build.fetched", "build.unpacked",
               "build.written", "image.copied", "image.kept", "build.answered")
    DAEMON = ("build.image", "build.setup", "build.pack", "build.stored")

    @classmethod
    def setUpClass(cls):
        cls.atoll = atoll.Atoll()
        cls.atoll.cli("template", "add", atoll.IMAGE)
        crash = os.path.join(cls.atoll.run_directory, "crash")
        os.makedirs(crash)
        os.chmod(crash, 0o777)  # a process that dies there takes the mark away
        cls.atoll.up()
        cls.root = small_root.root_tar(entry("etc/marker", b"from the tar\n"))

    @property
    def builder_pid(self):
        return atoll.lock_holder(os.path.join(self.atoll.run_directory, "builder.lock"))

    def put(self, data):
        return self.atoll.request("PUT", "/v1/templates/phoenix/pack?anew=true", data,
                                  headers={"Content-Type": "application/x-tar"})

    def state(self):
        answer = self.atoll.try_request("GET", "/v1/templates/phoenix/build")
        return answer.json["state"] if answer.status == 200 else "gone"

    def data(self, text):
        return pack("phoenix", 'rootfs_tar = "r"',
                    {"r": small_root.root_tar(entry("etc/text", text.encode()))},
                    'setup = ["echo set up >/etc/setup"]')

    def check_consistent(self, point):
        self.atoll.wait_ready()
        atoll.wait_for("the builder", lambda: self.builder_pid)
        builds = os.path.join(self.atoll.directory, "builder", "builds")
        atoll.wait_for(f"nothing to be left after {point}", lambda: not os.listdir(builds))
        images = os.path.join(self.atoll.directory, "images")
        atoll.wait_for("no half image", lambda: all(name.endswith(".erofs")
                                                    for name in os.listdir(images)))
        for name in os.listdir(images):
            printed = subprocess.run(["sha256sum", os.path.join(images, name)],
                                     capture_output=True, text=True, check=True).stdout
            self.assertEqual(printed.split()[0] + ".erofs", name)
        done = self.put(self.data(f"after {point}"))
        self.assertIn(done.status, (200, 202), done.body)
        atoll.wait_for("the build after it", lambda: self.state() in ("built", "failed"))
        self.assertEqual(self.state(), "built", point)
        body = {"template": "phoenix", "cmd": ["/bin/cat", "/etc/text", "/etc/setup"]}
        answer = self.atoll.request("POST", "/v1/run", body)
        self.assertEqual(answer.json["stdout"], f"after {point}set up\n", point)

    def crash(self, program, point):
        armed = os.path.join(self.atoll.run_directory, "crash", f"{program}.{point}")
        with open(armed, "w", encoding="ascii"):
            pass
        try:
            self.put(self.data(f"during {point}"))
        except OSError:
            pass  # the daemon may have died first
        atoll.wait_for(f"{point} to be reached", lambda: not os.path.exists(armed))
        atoll.wait_for("the build to end", lambda: self.state() in ("built", "failed", "gone"))

    def test_builder(self):
        for point in self.BUILDER:
            with self.subTest(point):
                self.crash("atoll-builder", point)
                self.check_consistent(point)

    def test_daemon(self):
        for point in self.DAEMON:
            with self.subTest(point):
                self.crash("atolld", point)
                self.check_consistent(point)

    def test_builder_killed_while_it_unpacks(self):
        data = pack("phoenix", 'rootfs_tar = "r"',
                    {"r": tar([entry(f"f{number}", b"x" * 4096) for number in range(20000)])})
        builds = os.path.join(self.atoll.directory, "builder", "builds")
        self.put(data)
        atoll.wait_for("files to be unpacked", lambda: glob.glob(f"{builds}/**/f1", recursive=True))
        os.kill(self.builder_pid, signal.SIGKILL)
        atoll.wait_for("the build to fail", lambda: self.state() == "failed")
        self.check_consistent("kill")


RESIDENT = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
file = os.open(sys.argv[1], os.O_RDONLY)
size = os.fstat(file).st_size
pages = (size + 4095) // 4096
view = mmap.mmap(file, size, prot=mmap.PROT_READ | mmap.PROT_WRITE, flags=mmap.MAP_PRIVATE)
found = (ctypes.c_ubyte * pages)()
address = ctypes.addressof(ctypes.c_char.from_buffer(view))
assert libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), found) == 0
print(sum(byte & 1 for byte in found), pages)
"""
# Some 100 KiB that nothing but this test reads.
UNREAD = "/usr/lib/python3.11/pydoc_data/topics.py"


class PageCache(atoll.SystemTest):
    def resident(self, sandbox):
        """How many pages of the file are in memory, and of how many; only its owner is told."""
        done = self.atoll.execute(sandbox, ["python3", "-c", RESIDENT, UNREAD], user="root")
        self.assertEqual(done["verdict"], "ok", done["stderr"])
        return [int(word) for word in done["stdout"].split()]

    def test_what_one_sandbox_has_read_is_in_memory_for_all(self):
        first, second = (self.atoll.create()["id"] for _ in range(2))
        before, pages = self.resident(second)
        self.assertLess(before, pages)
        done = self.atoll.execute(first, ["cat", UNREAD])
        self.assertEqual(done["verdict"], "ok")
        self.assertEqual(self.resident(second), [pages, pages])
        for sandbox in (first, second):
            self.atoll.delete(sandbox)


if __name__ == "__main__":
    atoll.main()
