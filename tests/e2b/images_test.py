"""The templates `base` and `code-interpreter-v1` as they are built, with E2B's Python packages:
what E2B's own images promise is in them. Needs their images, which `make test-long` builds."""
import clients

clients.enter_python()

import door  # noqa: E402

if not all(door.has_image(name) for name in door.ALIASES):
    clients.skip("the images of base and code-interpreter-v1 are not built")

import e2b  # noqa: E402
import e2b_code_interpreter  # noqa: E402

CHART = """
import matplotlib.pyplot as plt
plt.plot([1, 2], [3, 4], label="line")
plt.title("a chart")
plt.show()
"""


class Base(door.DoorTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sandbox = e2b.Sandbox.create(timeout=900)

    def run_command(self, command, **options):
        return self.sandbox.commands.run(command, **options).stdout.strip()

    def test_has_the_programs_of_e2b(self):
        self.assertEqual(self.sandbox.get_info().template_id, "base")
        self.assertEqual(self.run_command("id -un; id -u; echo $HOME"), "user\n1000\n/home/user")
        self.assertEqual(self.run_command("sudo -n id -u"), "0")
        self.assertRegex(self.run_command("python3 --version; python --version"),
                         r"^Python 3\.\d+\.\d+\nPython 3")
        self.assertRegex(self.run_command("node --version"), r"^v20\.")
        for program in ("git", "curl", "npm", "pip", "jq", "tput -V", "bash"):
            name = program.split()[0]
            self.assertTrue(self.run_command(f"command -v {name}"), name)
        self.assertEqual(self.run_command("node -e 'console.log(6 * 7)'"), "42")

    def test_git_works_by_the_methods_of_the_clients(self):
        git, here = self.sandbox.git, "/home/user/work"
        git.init("/home/user/origin", bare=True, initial_branch="main")
        git.init(here, initial_branch="main")
        git.configure_user("Me", "me@example.com")
        git.set_config("core.editor", "true")
        self.assertEqual(git.get_config("core.editor"), "true")
        git.remote_add(here, "origin", "/home/user/origin")
        self.assertEqual(git.remote_get(here, "origin"), "/home/user/origin")
        self.sandbox.files.write(f"{here}/a", "1")
        self.assertEqual([entry.name for entry in git.status(here).file_status], ["a"])
        git.add(here)
        git.commit(here, "first")
        git.push(here, remote="origin", branch="main")
        git.clone("/home/user/origin", path="/home/user/copy")
        self.assertEqual(self.sandbox.files.read("/home/user/copy/a"), "1")
        git.create_branch(here, "other")
        git.checkout_branch(here, "main")
        self.assertEqual(sorted(git.branches(here).branches), ["main", "other"])
        git.delete_branch(here, "other", force=True)
        self.sandbox.files.write(f"{here}/a", "2")
        git.restore(here, ["a"], worktree=True)
        self.assertEqual(self.sandbox.files.read(f"{here}/a"), "1")
        self.sandbox.files.write(f"{here}/b", "3")
        git.add(here)
        git.reset(here, mode="hard")
        self.assertFalse(self.sandbox.files.exists(f"{here}/b"))
        self.assertTrue(git.status(here).is_clean)
        git.pull(here, remote="origin", branch="main")
        git.dangerously_authenticate("me", "secret", host="git.example.com")


class CodeInterpreter(door.DoorTest):
    def test_has_the_data_packages_and_gives_charts(self):
        sandbox = e2b_code_interpreter.Sandbox.create(timeout=600)
        execution = sandbox.run_code(CHART)
        self.assertIsNone(execution.error, execution.error)
        result = next(result for result in execution.results if result.png)
        self.assertEqual((result.chart.type.value, result.chart.title), ("line", "a chart"))
        self.assertEqual(result.chart.elements[0].label, "line")
        table = sandbox.run_code("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
        self.assertIn("<table", table.results[0].html)
        self.assertEqual(table.results[0].data, {"a": [1, 2]})
        self.assertEqual(sandbox.run_code("!echo hi").logs.stdout, ["hi\n"])
        self.assertEqual(sandbox.run_code("1 + 1", language="javascript").text, "2")
        sandbox.kill()


if __name__ == "__main__":
    door.atoll.main()
