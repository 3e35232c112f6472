"""Templates that E2B's Python package builds on Atoll: steps, files, users, logs, failures."""
import asyncio
import os
import tempfile
import urllib.error
import urllib.request

import clients

clients.enter_python()

import door  # noqa: E402
import e2b  # noqa: E402
from e2b import Sandbox, Template  # noqa: E402


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


class Templates(door.DoorTest):
    def setUp(self):
        self.built = []
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.context = directory.name

    def tearDown(self):
        self.atoll.close()  # which was idle for as long as the builds took
        for name in self.built:
            self.atoll.request("DELETE", f"/v1/templates/{name}")
        left = self.atoll.request("GET", "/v1/templates").json["templates"]
        self.assertFalse({one["name"] for one in left} & set(self.built))
        sandboxes = self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]
        self.assertEqual(sandboxes, [], "the sandbox of a build is gone with it")

    def start(self):
        return Template(file_context_path=self.context)

    def build(self, template, name, **options):
        self.built.append(name)
        logs = []
        info = Template.build(template, name, **options,
                              on_build_logs=lambda entry: logs.append(entry.message))
        self.assertEqual((info.name, info.template_id), (name, name))
        return logs

    def run_in(self, name, command, **options):
        sandbox = Sandbox.create(name, timeout=60)
        try:
            return sandbox.commands.run(command, **options).stdout
        finally:
            sandbox.kill()

    def test_are_built_from_steps(self):
        template = (self.start().from_base_image()
                    .set_envs({"WORD": "it's \u00e9"})
                    .run_cmd(["echo one", 'echo "$WORD" >~/word; id -un; pwd; echo $HOME']))
        logs = self.build(template, "steps")
        self.assertIn("$ ENV WORD", logs)
        self.assertEqual(logs.index("one") + 2, logs.index("/home/user", logs.index("one")))
        self.assertTrue(Template.exists("steps"))
        self.assertTrue(Template.alias_exists("steps:default"))
        self.assertEqual(self.run_in("steps", "cat word; echo .$WORD."), "it's \u00e9\n..\n",
                         "variables are those of the build")
        self.assertEqual(self.run_in("steps", "python3 -c 'print(6 * 7)'"), "42\n")

    def test_the_last_user_and_directory_hold_in_sandboxes(self):
        template = (self.start().from_template("base").set_workdir("/srv/app").run_cmd("pwd >here")
                    .set_user("root").set_workdir("inner").run_cmd("id -un >../who"))
        self.build(template, "placed", cpu_count=2, memory_mb=256)
        sandbox = Sandbox.create("placed", timeout=60)
        said = sandbox.commands.run("id -un; pwd; cat ../here ../who; stat -c %U .. .").stdout
        self.assertEqual(said, "root\n/srv/app/inner\n/srv/app\nroot\nuser\nroot\n")
        self.assertEqual(sandbox.commands.run("id -un; pwd", user="user", cwd="/tmp").stdout,
                         "user\n/tmp\n")
        sandbox.files.write("/srv/app/of-root", "x")
        self.assertEqual(sandbox.files.get_info("/srv/app/of-root").owner, "root")
        info = sandbox.get_info()
        self.assertEqual((info.cpu_count, info.memory_mb), (2, 256))
        self.atoll.close()
        plain = self.atoll.request("POST", f"/v1/sandboxes/{sandbox.sandbox_id}/execs", {
            "shell": "id -un; pwd", "wait": True}).json
        self.assertEqual(plain["stdout"], "root\n/srv/app/inner\n")
        sandbox.kill()
        grown = self.start().from_template("placed").run_cmd("pwd >/tmp/x; cp /tmp/x /grown")
        self.build(grown, "grown")
        self.assertEqual(self.run_in("grown", "pwd; cat /grown"), "/srv/app/inner\n" * 2)

    def test_files_are_copied_as_docker_does(self):
        write(f"{self.context}/a.txt", "a")
        write(f"{self.context}/b c.txt", "b")
        write(f"{self.context}/app/main.sh", "echo main", 0o755)
        write(f"{self.context}/app/.hidden", "h")
        write(f"{self.context}/app/lib/x", "x")
        write(f"{self.context}/app/left/out", "o")
        os.symlink("lib/x", f"{self.context}/app/link")
        write(f"{self.context}/.dockerignore", "app/left\n")
        template = (self.start().from_base_image()
                    .copy("a.txt", "/srv/renamed.txt")
                    .copy("a.txt", "/srv/dir/", user="root", mode=0o600)
                    .copy("app", "/srv/app")
                    .copy("*.txt", "texts/", gzip=False)
                    .copy_items([{"src": "app/lib", "dest": "/srv/app/more", "user": "root:user"}])
                    .run_cmd("cat /srv/renamed.txt && /srv/app/main.sh"))
        logs = self.build(template, "copied")
        self.assertIn("Uploaded 'app'", logs)
        self.assertIn("amain", logs)
        listed = self.run_in("copied", "cd /srv; find . | sort; cat app/link; cd ~/texts; ls")
        self.assertEqual(listed.split("\n"), [
            ".", "./app", "./app/.hidden", "./app/lib", "./app/lib/x", "./app/link",
            "./app/main.sh", "./app/more", "./app/more/x", "./dir", "./dir/a.txt", "./renamed.txt",
            "xa.txt", "b c.txt", ""])
        owners = self.run_in("copied", "cd /srv; stat -c '%U:%G %a' renamed.txt dir/a.txt "
                             "app/main.sh app/more/x ~/texts/a.txt; ls /tmp")
        self.assertEqual(owners.split("\n"), ["user:user 644", "root:root 600", "user:user 755",
                                              "root:user 644", "user:user 644", ""])
        again = self.build(template, "copied")
        self.assertIn("Skipping upload of 'app', already cached", again)
        self.assertIn("nothing has changed", again)
        self.assertNotIn("nothing has changed", self.build(template, "copied", skip_cache=True))

    def test_what_fails_is_said_with_its_step(self):
        template = (self.start().skip_cache().from_base_image().run_cmd("true")
                    .run_cmd("echo so; exit 3"))
        self.built.append("failing")
        with self.assertRaisesRegex(e2b.BuildException, "RUN echo so; exit 3: exit code 3"):
            Template.build(template, "failing")
        self.assertFalse(Template.exists("failing"))
        info = Template.build_in_background(template, "failing")

        def ended():
            status = Template.get_build_status(info, logs_offset=0)
            return status.status == e2b.TemplateBuildStatus.ERROR and status
        status = door.atoll.wait_for("the end of the build", ended)
        self.assertEqual((status.reason.step, status.build_id), ("2", info.build_id))
        lines = [entry.message for entry in status.log_entries]
        self.assertIn("so", lines)
        rest = Template.get_build_status(info, logs_offset=len(lines) - 1).log_entries
        self.assertEqual([entry.message for entry in rest], lines[-1:])
        for template, word in (
                (self.start().from_template("nowhere"), "template 'nowhere' not found"),
                (self.start().from_image("x.example/y", "me", "secret"), "501.*credentials"),
                (self.start().from_base_image().run_cmd("x", user="a b"), "names no user"),
                (self.start().from_base_image().set_user("nobody-here"), "exit code")):
            with self.assertRaisesRegex(e2b.BuildException, word):
                Template.build(template, "failing")
        for name in ("With_Capitals", "a:b c", "a:-b"):
            with self.assertRaises(e2b.BuildException):
                Template.build(self.start().from_base_image(), name)

    def test_have_versions_by_tag(self):
        def made(text):
            return self.start().from_base_image().run_cmd(f"echo {text} >/word", user="root")

        def word(name):
            return self.run_in(name, "cat /word")
        self.built.append("tagged")
        Template.build(made("one"), "tagged:v1")
        self.assertEqual((word("tagged:v1"), word("tagged")), ("one\n", "one\n"))
        info = Template.build(made("two"), "tagged:v2", tags=["stable"])
        self.assertEqual(set(info.tags), {"v2", "stable"})
        self.assertEqual([word(name) for name in ("tagged:v1", "tagged:v2", "tagged:stable",
                                                  "tagged")], ["one\n", "two\n", "two\n", "one\n"])
        given = Template.assign_tags("tagged:v2", ["production", "default"])
        self.assertEqual(given.tags, ["production", "default"])
        self.assertEqual((word("tagged"), word("tagged:production")), ("two\n", "two\n"))
        tags = {tag.tag: tag.build_id for tag in Template.get_tags("tagged")}
        self.assertEqual(set(tags), {"default", "v1", "v2", "stable", "production"})
        self.assertEqual(tags["v2"], given.build_id)
        self.assertNotEqual(tags["v1"], given.build_id)
        Template.remove_tags("tagged", ["stable", "never"])
        self.assertFalse(Template.exists("tagged:stable"))
        self.assertTrue(Template.exists("tagged:v1"))
        Template.build(made("one"), "tagged", tags=["again"])
        self.assertEqual((word("tagged:again"), word("tagged")), ("one\n", "two\n"))
        grown = self.start().from_template("tagged:v1").run_cmd("echo more >>/word", user="root")
        self.built.append("grown")
        Template.build(grown, "grown")
        self.assertEqual(word("grown"), "one\nmore\n")
        for call, message in ((lambda: Template.assign_tags("tagged:never", "x"), "404"),
                              (lambda: Template.assign_tags("base", "x"), "404"),
                              (lambda: Template.assign_tags("tagged", "a b"), "400"),
                              (lambda: Template.remove_tags("tagged", "default"), "400"),
                              (lambda: Template.get_tags("nowhere"), "404")):
            with self.assertRaisesRegex(Exception, message):
                call()
        self.assertEqual([tag.tag for tag in Template.get_tags("base")], ["default"])

    def test_start_a_program_that_is_ready_when_the_sandbox_is(self):
        serve = "cd /srv && exec python3 -m http.server 8000"
        ready = "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", 8000))'"
        template = (self.start().from_base_image().run_cmd("echo served >/srv/x", user="root")
                    .set_start_cmd(serve, ready))
        self.build(template, "serving")
        fetch = "python3 -c 'import urllib.request as u; " \
                "print(u.urlopen(\"http://127.0.0.1:8000/x\").read().decode(), end=\"\")'"
        sandbox = Sandbox.create("serving", timeout=60)
        self.addCleanup(sandbox.kill)
        self.assertEqual(sandbox.commands.run(fetch).stdout, "served\n")
        self.assertIn(serve, [" ".join(one.args) for one in sandbox.commands.list()][0])
        sandbox.kill()
        self.build(self.start().from_template("serving").run_cmd("true"), "serving-too")
        self.assertEqual(self.run_in("serving-too", fetch), "served\n")
        failing = self.start().from_base_image().set_start_cmd("echo broken >&2; exit 3", "false")
        self.build(failing, "not-serving")
        with self.assertRaisesRegex(Exception, "nonzero.*broken"):
            Sandbox.create("not-serving")
        self.assertEqual(Sandbox.list().next_items(), [])

    def test_belong_to_their_tenant(self):
        other = self.atoll.request("POST", "/v1/keys", {"tenant": "other", "e2b": True}).json["key"]
        write(f"{self.context}/a", "mine")
        template = self.start().from_base_image().copy("a", "/a")
        self.build(template, "mine")
        self.assertEqual(self.run_in("mine", "cat /a"), "mine")
        logs = []
        info = Template.build(template, "theirs", api_key=other,
                              on_build_logs=lambda entry: logs.append(entry.message))
        self.assertIn("Uploaded 'a'", logs, "what another tenant has sent is not there")
        with self.assertRaises(Exception):
            Template.get_build_status(info)
        self.assertFalse(Template.exists("theirs"))
        self.assertTrue(Template.exists("theirs", api_key=other))
        self.assertEqual(self.door("DELETE", "/templates/theirs%3Av1", other), 404)
        for key, status in ((os.environ["E2B_API_KEY"], 404), (other, 204), (other, 404)):
            self.assertEqual(self.door("DELETE", "/templates/theirs%3Adefault", key), status)

    def door(self, method, path, key=None, data=None):
        headers = {"X-API-Key": key} if key else {}
        request = urllib.request.Request(os.environ["E2B_API_URL"] + path, method=method,
                                         headers=headers, data=data)
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def test_links_for_files_open_nothing_else(self):
        self.assertEqual(self.door("PUT", "/e2b/uploads/" + "a" * 40, data=b"x"), 401)
        key = os.environ["E2B_API_KEY"]
        self.assertEqual(self.door("GET", f"/templates/unheard-of/files/{'0' * 64}", key), 404)

    def test_are_built_by_asynchronous_clients_too(self):
        async def build():
            template = e2b.AsyncTemplate().from_base_image().run_cmd("echo async >/home/user/a")
            await e2b.AsyncTemplate.build(template, "async")
        self.built.append("async")
        asyncio.run(build())
        self.assertEqual(self.run_in("async", "cat a"), "async\n")


if __name__ == "__main__":
    door.atoll.main()
