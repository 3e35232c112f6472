"""The built-in templates: a real program in each language, compiled where it must be, and what an
answer says when it is not. Templates whose image is not built are skipped, with a word."""
import base64
import json
import os
import tempfile

import atoll


class LanguageTest(atoll.ImageTest):
    shared = True

    def ask(self, **fields):
        return self.atoll.request("POST", "/v1/run", {"template": self.template, **fields})

    def run_it(self, **fields):
        answer = self.ask(**fields)
        self.assertEqual(answer.status, 200, answer.body)
        gone = self.atoll.request("GET", "/v1/sandboxes").json["sandboxes"]
        self.assertEqual(gone, [], "the run left its sandbox")
        return answer.json

    def assert_output(self, run, stdout):
        self.assertEqual((run["verdict"], run["stdout"]), ("ok", stdout), run)
        self.assertEqual(run["phase"], "run")

    def assert_prints(self, stdout, **fields):
        self.assert_output(self.run_it(**fields), stdout)


class BashTest(LanguageTest):
    template = "bash"

    def test_a_program_with_input_and_arguments(self):
        self.assert_prints("a b\n2\n", code='echo "$1 $2"; wc -l', args=["a", "b"], stdin="x\ny\n")
        self.assert_prints("3\n1\n", code="printf '1\\n3\\n' | sort -r")
        self.assertEqual(self.run_it(code="exit 7")["exit_code"], 7)

    def test_a_file_with_others_beside_it(self):
        files = [{"path": "/home/user/main.sh", "text": ". ./more.sh; echo $X $1"},
                 {"path": "/home/user/more.sh", "text": "X=sourced"}]
        self.assert_prints("sourced y\n", files=files, args=["y"])

    def test_the_tools_are_gnu(self):
        run = self.run_it(code="sort --version | head -1; echo '{\"a\": 2}' | jq .a\n"
                               "echo 2^70 | bc")
        self.assertIn("GNU coreutils", run["stdout"])
        self.assertIn("\n2\n1180591620717411303424\n", run["stdout"])


class PythonTest(LanguageTest):
    template = "python"

    def test_code_runs_without_a_file_and_long_code_from_one(self):
        code = "import sys\nprint(sys.argv[1:], input())"
        run = self.run_it(code=code, args=["a", "b c"], stdin="in\n")
        self.assert_output(run, "['a', 'b c'] in\n")
        self.assertEqual(run["request"]["cmd"][:2], ["python3", "-c"])
        self.assertNotIn("compile", run)
        self.assertNotIn("compile_ms", run["timings"])
        run = self.run_it(code=code + "\n#" + "x" * 200_000, args=["a"], stdin="in\n")
        self.assert_output(run, "['a'] in\n")
        self.assertEqual(run["request"]["cmd"], ["python3", "/home/user/main.py", "a"])

    def test_files_name_the_one_that_is_run(self):
        files = [{"path": "/home/user/app/start.py", "text": "import part; print(part.X)"},
                 {"path": "/home/user/app/part.py", "text": "import os\nX = os.getcwd()"}]
        self.assert_prints("/home/user/app\n", files=files, entry="/home/user/app/start.py")
        self.assert_prints("1\n", files=[{"path": "/home/user/only.py", "text": "print(1)"}])
        self.assertEqual(self.ask(files=files).json["error"]["field"], "entry")
        refused = self.ask(files=files, entry="/home/user/other.py")
        self.assertEqual((refused.status, refused.json["error"]["field"]), (400, "entry"))

    def test_fields_that_do_not_fit_are_refused(self):
        for field, fields in (("language", {"code": "1", "language": "cobol"}),
                              ("compile", {"code": "1", "compile": {"timeout_ms": 5}}),
                              ("args", {"cmd": ["true"], "args": ["x"]}),
                              ("language", {"shell": "true", "language": "python"}),
                              ("entry", {"code": "1", "entry": "/home/user/x.py"}),
                              ("entry", {"entry": "relative.py"})):
            answer = self.ask(**fields)
            self.assertEqual((answer.status, answer.json["error"]["field"]), (400, field), fields)

    def test_another_user_runs_from_a_file_too(self):
        run = self.run_it(code="import os\nprint(os.getuid())\n#" + "x" * 200_000, user="root")
        self.assert_output(run, "0\n")


CPP_SUM = """#include <iostream>
int main() { long a, b; while (std::cin >> a >> b) std::cout << a + b << '\\n'; }
"""
# Each line doubles what the compiler holds.
CPP_BOMB = ('#define A0 "0123456789"\n'
            + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(26))
            + "char text[] = A26;\nint main() {}\n")


class CppTest(LanguageTest):
    template = "cpp-algorithm"

    def test_compile_and_run_have_their_own_figures(self):
        run = self.run_it(code=CPP_SUM, stdin="1 2\n3 4\n")
        self.assert_output(run, "3\n7\n")
        compile_step = run["compile"]
        self.assertEqual((compile_step["verdict"], compile_step["exit_code"]), ("ok", 0))
        self.assertGreater(run["timings"]["compile_ms"], 0)
        self.assertGreater(run["timings"]["run_ms"], 0)
        self.assertEqual(run["timings"]["compile_ms"], compile_step["usage"]["wall_ms"])
        self.assertGreater(compile_step["usage"]["user_ms"], run["usage"]["user_ms"])
        print(f"cpp: compile {run['timings']['compile_ms']:.0f} ms, "
              f"run {run['timings']['run_ms']:.1f} ms")

    def test_what_does_not_compile_has_its_own_verdict(self):
        run = self.run_it(code="int main() { return missing; }")
        self.assertEqual((run["verdict"], run["phase"]), ("compile_error", "compile"), run)
        self.assertIn("main.cpp:1:21: error: ", run["compile"]["stderr"])
        self.assertEqual((run["compile"]["verdict"], run["compile"]["exit_code"]), ("nonzero", 1))
        self.assertEqual(run["timings"]["run_ms"], 0)
        self.assertGreater(run["timings"]["compile_ms"], 0)

    def test_the_program_fails_by_itself(self):
        run = self.run_it(code="int main() { return 1; }")
        self.assertEqual((run["verdict"], run["phase"], run["exit_code"]), ("nonzero", "run", 1))
        run = self.run_it(code="int main() { *(volatile int*)8 = 1; }")
        self.assertEqual((run["verdict"], run["phase"], run["signal"]), ("signal", "run", 11))
        run = self.run_it(code="int main() { for (;;) {} }", timeout_ms=500)
        self.assertEqual((run["verdict"], run["phase"]), ("wall_time", "run"))

    def test_a_limit_of_the_compiler_keeps_its_name(self):
        run = self.run_it(code=CPP_SUM, compile={"timeout_ms": 20})
        self.assertEqual((run["verdict"], run["phase"]), ("wall_time", "compile"), run)
        run = self.run_it(code=CPP_BOMB, compile={"limits": {"memory_bytes": 256 << 20}})
        self.assertEqual((run["verdict"], run["phase"]), ("oom", "compile"), run)
        self.assertEqual(run["limits_hit"], ["memory"])
        run = self.run_it(code=CPP_SUM, compile={"limits": {"cpu_time_ms": 10}})
        self.assertEqual((run["verdict"], run["phase"]), ("cpu_time", "compile"), run)

    def test_the_program_has_less_memory_than_its_compiler(self):
        code = ("#include <cstdio>\n#include <cstring>\n#include <vector>\n"
                "int main() { std::vector<char> v(200 << 20); memset(v.data(), 1, v.size());"
                " puts(\"held\"); }\n")
        self.assert_prints("held\n", code=code)
        run = self.run_it(code=code, limits={"memory_bytes": 64 << 20},
                          compile={"limits": {"memory_bytes": 1 << 30}})
        self.assertEqual((run["verdict"], run["phase"]), ("oom", "run"), run)
        self.assertEqual(run["compile"]["verdict"], "ok")

    def test_several_files_and_c(self):
        main = '#include "twice.h"\n#include <cstdio>\nint main() { printf("%d\\n", twice(4)); }'
        files = [{"path": "/home/user/main.cpp", "text": main},
                 {"path": "/home/user/twice.cpp", "text": "int twice(int x) { return 2 * x; }"},
                 {"path": "/home/user/twice.h", "text": "int twice(int);"}]
        self.assert_prints("8\n", files=files)
        c = "#include <stdio.h>\nint main(int c, char **v) { int new = c; printf(\"%d\\n\", new); }"
        self.assert_prints("2\n", files=[{"path": "/home/user/x.c", "text": c}], args=["a"])
        self.assert_prints("1\n", code=c, language="c")

    def test_the_command_line_compiles(self):
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "sum.cpp")
            with open(source, "w", encoding="utf-8") as file:
                file.write(CPP_SUM)
            done = self.atoll.cli("run", "--stdin", "-", source, input=b"20 22\n")
            self.assertEqual((done.stdout, done.stderr), (b"42\n", b""))
        done = self.atoll.cli("run", "-t", "cpp-algorithm", "-c", "int main() { return 5; }",
                              check=False)
        self.assertEqual((done.returncode, done.stdout), (5, b""))
        done = self.atoll.cli("run", "-t", "cpp-algorithm", "-c", "int main() { x; }", check=False)
        self.assertEqual((done.returncode, done.stdout), (65, b""))
        self.assertIn(b"error: ", done.stderr)
        self.assertIn(b"atoll: compile_error", done.stderr)
        done = self.atoll.cli("--json", "run", "-t", "cpp-algorithm", "-c", "int main() { x; }",
                              check=False)
        self.assertEqual((done.returncode, json.loads(done.stdout)["verdict"]),
                         (65, "compile_error"))


GO_SUM = """package main
import ("fmt"; "os")
func main() {
  var a, b int
  fmt.Scan(&a, &b)
  fmt.Println(a+b, os.Args[1:])
}
"""


class GoTest(LanguageTest):
    template = "go-algorithm"

    def test_compile_and_run(self):
        run = self.run_it(code=GO_SUM, stdin="40 2", args=["x"])
        self.assert_output(run, "42 [x]\n")
        print(f"go: compile {run['timings']['compile_ms']:.0f} ms, "
              f"run {run['timings']['run_ms']:.1f} ms")

    def test_what_does_not_compile_has_its_own_verdict(self):
        run = self.run_it(code="package main\nfunc main() { x := 1 }\n")
        self.assertEqual((run["verdict"], run["phase"]), ("compile_error", "compile"), run)
        self.assertIn("x declared but not used", run["compile"]["stderr"])
        run = self.run_it(code="package main\nfunc main() { panic(1) }\n")
        self.assertEqual((run["verdict"], run["phase"], run["exit_code"]), ("nonzero", "run", 2))

    def test_a_module_and_the_standard_library(self):
        files = [{"path": "/home/user/m/go.mod", "text": "module m\ngo 1.19\n"},
                 {"path": "/home/user/m/main.go",
                  "text": "package main\nimport (\"encoding/json\"; \"m/part\"; \"os\"; \"sort\")\n"
                          "func main() { s := part.S(); sort.Ints(s);"
                          " json.NewEncoder(os.Stdout).Encode(s) }\n"},
                 {"path": "/home/user/m/part/part.go",
                  "text": "package part\nfunc S() []int { return []int{3, 1, 2} }\n"}]
        self.assert_prints("[1,2,3]\n", files=files)


class NodePrograms:
    version = ""

    def test_code_with_input_and_arguments(self):
        self.assert_prints("a b IN\n", args=["a", "b"], stdin="in",
                           code="const text = require('fs').readFileSync(0, 'utf8');\n"
                                "console.log(...process.argv.slice(2), text.toUpperCase())")
        run = self.run_it(code="console.log(process.version)")
        self.assertTrue(run["stdout"].startswith(self.version), run["stdout"])
        run = self.run_it(code="throw new Error('no')")
        self.assertEqual((run["verdict"], run["exit_code"]), ("nonzero", 1))
        self.assertIn("Error: no", run["stderr"])

    def test_a_module_waits_at_its_top(self):
        text = "import fs from 'node:fs/promises';\nconsole.log((await fs.readFile('in')).length);"
        files = [{"path": "/home/user/main.mjs", "text": text},
                 {"path": "/home/user/in", "text": "12345"}]
        self.assert_prints("5\n", files=files, entry="/home/user/main.mjs")


class NodeTest(NodePrograms, LanguageTest):
    template = "node"
    version = "v20."

    def test_code_waits_at_its_top(self):
        self.assert_prints("7\n", code="console.log(await Promise.resolve(7));")
        self.assert_prints("7\n", code="import 'node:fs';\n"
                                       "console.log(await Promise.resolve(7));")


class Node18Test(NodePrograms, LanguageTest):
    template = "node-18"
    version = "v18."


PLOT = """import numpy as np, pandas as pd, matplotlib.pyplot as plt
from scipy import stats
frame = pd.DataFrame({"x": np.arange(10), "y": np.arange(10) * 2.0})
print(frame.y.mean(), round(stats.linregress(frame.x, frame.y).slope, 6))
frame.plot(x="x", y="y")
plt.show()
plt.plot([1, 2]); plt.show()
"""


class PythonDataAnalysisTest(LanguageTest):
    template = "python-data-analysis"

    def test_plots_are_artifacts(self):
        run = self.run_it(code=PLOT)
        self.assert_output(run, "9.0 2.0\n")
        artifacts = {item["name"]: item for item in run["artifacts"]}
        self.assertEqual(sorted(artifacts), ["figure-1.png", "figure-2.png"])
        data = base64.b64decode(artifacts["figure-1.png"]["base64"])
        self.assertTrue(data.startswith(b"\x89PNG\r\n\x1a\n"))
        self.assertEqual(artifacts["figure-1.png"]["type"], "image/png")
        self.assertEqual(run["stderr"], "")

    def test_pillow(self):
        self.assert_prints("(4, 2)\n", code="from PIL import Image\n"
                                            "print(Image.new('RGB', (2, 4)).rotate(90, "
                                            "expand=True).size)")


WEB_PAGE = """import http.server, subprocess, sys, threading
PAGES = {"/": ("text/html", "<head><title>T  1</title><style>no</style></head><p>one<p>two"),
         "/find": ("text/html", '<a class="result__a" href="/l?uddg=https%3A%2F%2Fa.example%2F">A'
                   ' <b>b</b></a> <a class="result__snippet">s <b>x</b></a>')}
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, text = PAGES.get(self.path.split("?")[0], ("", None))
        self.send_response(200 if text else 404)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write((text or "").encode())
    def log_message(self, *_): pass
server = http.server.HTTPServer(("127.0.0.1", 8000), Page)
threading.Thread(target=server.serve_forever, daemon=True).start()
here = "http://127.0.0.1:8000"
environment = {"PATH": "/usr/local/bin:/usr/bin", "SEARCH_URL": here + "/find?q={query}"}
for words in (["fetch", here + "/"], ["search", "a", "b"], ["fetch", here + "/none"]):
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    print(done.returncode, done.stdout + done.stderr, end="")
"""


class WebsearchToolsTest(LanguageTest):
    template = "websearch-tools"

    def test_pages_become_text_and_searches_lists(self):
        self.assert_prints(
            "0 T 1\n\none\ntwo\n"
            '0 {"title": "A b", "url": "https://a.example/", "snippet": "s x"}\n'
            "1 fetch: http://127.0.0.1:8000/none: the server answered 404 Not Found\n",
            code=WEB_PAGE)

    def test_without_a_network_it_says_so(self):
        for command in ("fetch https://en.wikipedia.org/", "search something"):
            run = self.run_it(shell=command)
            self.assertEqual((run["verdict"], run["exit_code"]), ("nonzero", 3), run)
            self.assertIn("it has no network", run["stderr"])


class BaseTest(LanguageTest):
    template = "base"
    languages = (("python", "print(1 + 1)"), ("javascript", "console.log(1 + 1)"),
                 ("bash", "echo $((1 + 1))"))

    def test_each_of_its_languages(self):
        for language, code in self.languages:
            self.assert_prints("2\n", language=language, code=code)

    def test_its_tools(self):
        run = self.run_it(language="bash", code="set -e; id -un; sudo id -un; git init -q x; "
                                                "curl --version | head -c4; echo; npm --version; "
                                                "node --version; pip --version | head -c4; echo")
        self.assertEqual(run["verdict"], "ok", run)
        lines = run["stdout"].split("\n")
        self.assertEqual(lines[:4], ["user", "root", "curl", "10.8.2"])
        self.assertTrue(lines[4].startswith("v20."), lines)
        self.assertEqual(lines[5], "pip ")


class CodeInterpreterTest(BaseTest):
    template = "code-interpreter-v1"

    def test_plots_are_artifacts(self):
        run = self.run_it(code=PLOT)
        self.assert_output(run, "9.0 2.0\n")
        self.assertEqual(len(run["artifacts"]), 2)

    def test_ipython(self):
        self.assert_prints("['7']\n", shell="python3 -m IPython -c \"x = !echo 7\nprint(x)\"")


if __name__ == "__main__":
    atoll.main()
