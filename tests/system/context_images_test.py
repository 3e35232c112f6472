#!/usr/bin/env python3
"""Contexts of images that not every run of the tests builds: JavaScript, and data analysis. One
whose image is not built is skipped, with a word."""
import base64
import json

import atoll
from contexts_test import ContextCase

CHART = "application/vnd.atoll.chart+json"
COPIES = 100
FRAME = "application/vnd.atoll.dataframe+json"


class JavaScriptTest(ContextCase, atoll.ImageTest):
    template = "node"

    def test_state_values_and_errors(self):
        context = self.context(language="javascript")
        self.run_code(context, "const a = 40; let b = 1; function f(x) { return x + 1 }")
        self.assertEqual(self.value(context, "b += 1; f(a) + b - 1"), "42")
        done = self.run_code(context, "console.log('out'); console.error('err'); undefined")
        self.assertEqual((done["stdout"], done["stderr"], done["results"]), ("out\n", "err\n", []))
        done = self.run_code(context, "null.x")
        self.assertEqual((done["verdict"], done["error"]["name"]), ("exception", "TypeError"))
        self.assertEqual(self.value(context, "a"), "40")

    def test_await_and_imports(self):
        context = self.context(language="javascript")
        self.assertEqual(self.value(context, "await new Promise(done => setTimeout(done, 5, 7))"),
                         "7")
        self.run_code(context, "import { basename } from 'node:path'\n"
                               "const os = require('node:os')")
        self.assertEqual(self.value(context, "basename('/a/b') + typeof os.cpus"), "'bfunction'")
        self.assertEqual(self.value(context, "(await import('node:path')).dirname('/a/b')"), "'/a'")

    def test_output_of_children_is_there(self):
        context = self.context(language="javascript")
        done = self.run_code(context, "require('child_process').execSync('echo child',"
                                      " {stdio: 'inherit'}); 1")
        self.assertEqual(done["stdout"], "child\n")

    def test_an_interrupted_run_keeps_its_state(self):
        context = self.context(language="javascript")
        self.run_code(context, "var kept = 5")
        done = self.run_code(context, "for (;;) {}", timeout_ms=500)
        self.assertEqual((done["verdict"], done["state_lost"]), ("wall_time", False), done)
        self.assertEqual(self.value(context, "kept"), "5")

    def test_a_crash_is_a_fresh_context(self):
        context = self.context(language="javascript")
        done = self.run_code(context, "process.exit(3)")
        self.assertEqual((done["verdict"], done["exit_code"], done["state_lost"]),
                         ("nonzero", 3, True))
        self.assertEqual(self.value(context, "1 + 1"), "2")

    def test_random_numbers_differ(self):
        drawn = {self.value(self.context(language="javascript"), "Math.random()")
                 for _ in range(8)}
        self.assertEqual(len(drawn), 8)


class DataTest(ContextCase, atoll.ImageTest):
    template = "python-data-analysis"

    def chart(self, context, code):
        done = self.run_code(context, "import matplotlib.pyplot as plt\n" + code + "\nplt.show()")
        self.assertEqual(done["verdict"], "ok", done)
        [result] = done["results"]
        png = base64.b64decode(result["mime"]["image/png"])
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        chart = result["mime"][CHART]
        return json.loads(chart) if isinstance(chart, str) else chart

    def test_a_frame_is_data_beside_its_table(self):
        context = self.context()
        done = self.run_code(context, "import pandas as pd\n"
                                      "pd.DataFrame({'a': [1, 2], 'b': ['x', None]})")
        mime = done["results"][0]["mime"]
        self.assertIn("<table", mime["text/html"])
        self.assertIn("a", mime["text/plain"])
        frame = mime[FRAME]
        frame = json.loads(frame) if isinstance(frame, str) else frame
        self.assertEqual(frame, {"columns": ["a", "b"], "index": [0, 1],
                                 "data": [[1, "x"], [2, None]]})

    def test_lines(self):
        chart = self.chart(self.context(), "plt.plot([1, 2, 3], [4, 5, 9], label='one')\n"
                           "plt.plot([1, 2], [0, 1], label='two')\n"
                           "plt.title('T'); plt.xlabel('time (s)'); plt.ylabel('y')")
        self.assertEqual((chart["type"], chart["title"]), ("line", "T"))
        self.assertEqual((chart["x_label"], chart["x_unit"], chart["y_label"]),
                         ("time (s)", "s", "y"))
        self.assertEqual(chart["elements"],
                         [{"label": "one", "points": [[1, 4], [2, 5], [3, 9]]},
                          {"label": "two", "points": [[1, 0], [2, 1]]}])

    def test_dots_dates_and_categories(self):
        context = self.context()
        chart = self.chart(context, "plt.scatter([1, 2], [3, 4])")
        self.assertEqual((chart["type"], chart["elements"][0]["points"]),
                         ("scatter", [[1, 3], [2, 4]]))
        chart = self.chart(context, "import datetime as d\n"
                           "plt.plot([d.date(2026, 1, 1), d.date(2026, 1, 2)], [1, 2])")
        self.assertEqual(chart["x_scale"], "datetime")
        self.assertTrue(chart["elements"][0]["points"][0][0].startswith("2026-01-01"))
        chart = self.chart(context, "plt.plot(['a', 'b'], [1, 2])")
        self.assertEqual((chart["x_scale"], chart["elements"][0]["points"]),
                         ("categorical", [["a", 1], ["b", 2]]))

    def test_bars(self):
        context = self.context()
        chart = self.chart(context, "plt.bar(['a', 'b'], [1, 2])")
        self.assertEqual((chart["type"], chart["elements"]),
                         ("bar", [{"label": "a", "value": 1, "group": None},
                                  {"label": "b", "value": 2, "group": None}]))
        chart = self.chart(context, "plt.barh(['a', 'b'], [3, 4], label='g')")
        self.assertEqual(chart["elements"], [{"label": "a", "value": 3, "group": "g"},
                                             {"label": "b", "value": 4, "group": "g"}])

    def test_pies_and_boxes(self):
        context = self.context()
        chart = self.chart(context, "plt.pie([1, 3], labels=['a', 'b'])")
        self.assertEqual((chart["type"], [(one["label"], round(one["angle"]))
                                          for one in chart["elements"]]),
                         ("pie", [("a", 90), ("b", 270)]))
        chart = self.chart(context, "plt.boxplot([[1, 2, 3, 4, 5, 20]])")
        [box] = chart["elements"]
        self.assertEqual(chart["type"], "box_and_whisker")
        self.assertEqual((box["min"], box["first_quartile"], box["median"],
                          box["third_quartile"], box["max"], box["outliers"]),
                         (1, 2.25, 3.5, 4.75, 5, [20]))

    def test_several_axes_are_one_chart_of_charts(self):
        chart = self.chart(self.context(), "f, (a, b) = plt.subplots(1, 2)\n"
                           "a.plot([1], [2]); b.bar(['x'], [1]); f.suptitle('both')")
        self.assertEqual((chart["type"], chart["title"]), ("superchart", "both"))
        self.assertEqual([one["type"] for one in chart["elements"]], ["line", "bar"])


class CopiedDataTest(DataTest):
    """The same in interpreters that are copies of one that has imported all of it."""
    pool = True
    toolbox = True

    def setUp(self):
        def copied():
            made = self.atoll.create(template=self.template)
            if made["timings"]["from_zygote"]:
                return made["id"]
            self.atoll.delete(made["id"])
            return None
        self.sandbox = atoll.wait_for("a copy", copied, 120)
        self.base = f"/v1/sandboxes/{self.sandbox}/contexts"

    def test_no_two_draw_the_same(self):
        code = ("import sys\nassert {'pandas', 'matplotlib.pyplot'} <= set(sys.modules)\n"
                "import os, random, uuid, tempfile, numpy\n"
                "print(os.urandom(8).hex(), random.random(), numpy.random.rand(), uuid.uuid4(),\n"
                "      numpy.random.default_rng().random(), tempfile.mktemp())")
        seen = []
        while len(seen) < COPIES:
            answer = self.atoll.request("POST", "/v1/run",
                                        {"template": self.template, "code": code})
            self.assertEqual((answer.status, answer.json["verdict"]), (200, "ok"), answer.body)
            self.assertTrue(answer.json["timings"]["from_zygote"], answer.body)
            seen.append(answer.json["stdout"].split())
        for column in zip(*seen):
            self.assertEqual(len(set(column)), COPIES)

    def test_libraries_work_in_threads_too(self):
        done = self.run_code(self.context(), "import numpy as np, threading, pandas as pd\n"
                             "def work(n):\n"
                             "    a = np.random.rand(300, 300)\n"
                             "    good.append(np.allclose(a @ np.linalg.inv(a), np.eye(300)))\n"
                             "good, threads = [], [threading.Thread(target=work, args=[n])"
                             " for n in range(8)]\n"
                             "for one in threads: one.start()\n"
                             "for one in threads: one.join()\n"
                             "sum(good), int(pd.Series(range(10**6)).sum())")
        self.assertEqual(done["results"][0]["mime"]["text/plain"], "(8, 499999500000)", done)


if __name__ == "__main__":
    atoll.main()
