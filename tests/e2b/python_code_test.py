"""E2B's Python package e2b-code-interpreter, unmodified, against Atoll."""
import threading

import clients

clients.enter_python()

import door  # noqa: E402
from e2b_code_interpreter import Sandbox  # noqa: E402


class CodeInterpreter(door.DoorTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.sandbox = Sandbox.create(timeout=600, envs={"FROM": "the sandbox"})

    def run_code(self, code, **options):
        return self.sandbox.run_code(code, **options)

    def test_keeps_state_and_gives_results(self):
        self.run_code("x = 41")
        execution = self.run_code("print('prinäted'); x + 1")
        self.assertEqual(execution.text, "42")
        self.assertEqual(execution.logs.stdout, ["prinäted\n"])
        self.assertEqual(self.run_code("'a string'").text, "a string")
        self.assertGreater(execution.execution_count, 1)

    def test_tells_errors(self):
        error = self.run_code("undefined_name").error
        self.assertEqual((error.name, error.value),
                         ("NameError", "name 'undefined_name' is not defined"))
        self.assertIn("NameError", error.traceback)
        self.assertIsNotNone(self.run_code("def").error)

    def test_streams(self):
        seen, results = [], []
        self.run_code("import time\nfor i in range(3):\n    print(i); time.sleep(0.2)\n'end'",
                      on_stdout=lambda message: seen.append(message.line),
                      on_result=results.append)
        self.assertEqual("".join(seen), "0\n1\n2\n")
        self.assertEqual(results[0].text, "end")

    def test_shows_rich_results(self):
        execution = self.run_code("class H:\n    def _repr_html_(self): return '<b>ü</b>'\nH()")
        self.assertEqual(execution.results[0].html, "<b>ü</b>")

    def test_has_variables_of_the_sandbox_and_of_the_run(self):
        code = "import os; print(os.environ.get('FROM'), os.environ.get('ONCE'))"
        self.assertEqual(self.run_code(code, envs={"ONCE": "now"}).logs.stdout,
                         ["the sandbox now\n"])
        self.assertEqual(self.run_code(code).logs.stdout, ["the sandbox None\n"])

    def test_has_contexts(self):
        context = self.sandbox.create_code_context(cwd="/tmp")
        self.assertEqual((context.language, context.cwd), ("python", "/tmp"))
        self.run_code("y = 1", context=context)
        self.assertIsNotNone(self.run_code("y").error)
        self.assertEqual(self.run_code("import os; os.getcwd()", context=context).text, "/tmp")
        self.assertIn(context.id, [one.id for one in self.sandbox.list_code_contexts()])
        self.sandbox.restart_code_context(context)
        self.assertIsNotNone(self.run_code("y", context=context).error)
        self.sandbox.remove_code_context(context)
        with self.assertRaisesRegex(Exception, "not found"):
            self.run_code("1", context=context)

    def test_runs_bash(self):
        self.assertEqual(self.run_code("echo $((6 * 7))", language="bash").logs.stdout, ["42\n"])

    def test_a_run_that_takes_too_long_is_interrupted(self):
        with self.assertRaises(Exception):
            self.run_code("while True: pass", timeout=1)
        self.assertEqual(self.run_code("1 + 1").text, "2")

    def test_a_run_is_cut_off_when_the_sandbox_is_killed(self):
        sandbox = Sandbox.create(timeout=60)
        threading.Timer(1, sandbox.kill).start()
        with self.assertRaises(Exception):
            sandbox.run_code("import time; time.sleep(30)")


if __name__ == "__main__":
    door.atoll.main()
