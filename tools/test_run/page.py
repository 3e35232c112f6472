"""build/test/report.html: what a run of the tests took, and what it saw, on one page."""

import html

from test_run.cases import FLAKY, SKIPPED, closing_line

SLOWEST = 30
SPARK_RUNS = 20
OVER_BUDGET = 1.3

STYLE = """body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:70em;color:#222}
table{border-collapse:collapse;margin:.5em 0 2em}td,th{padding:.15em .8em;text-align:left;
border-bottom:1px solid #ddd;vertical-align:top}
td.n{text-align:right;font-variant-numeric:tabular-nums}
pre{white-space:pre-wrap;margin:0;font-size:12px;max-height:20em;overflow:auto;}
.bad{color:#b00020;font-weight:600}svg{vertical-align:middle}"""


def cell(value):
    if isinstance(value, Raw):
        return f"<td>{value.text}</td>"
    if isinstance(value, (int, float)):
        return f'<td class="n">{value:,.1f}</td>' if isinstance(value, float) else \
            f'<td class="n">{value:,}</td>'
    return f"<td>{html.escape(str(value))}</td>"


class Raw:
    def __init__(self, text):
        self.text = text


def table(title, heads, rows):
    if not rows:
        return f"<h2>{html.escape(title)}</h2><p>none</p>"
    head = "".join(f"<th>{html.escape(one)}</th>" for one in heads)
    body = "".join("<tr>" + "".join(map(cell, row)) + "</tr>" for row in rows)
    return f"<h2>{html.escape(title)}</h2><table><tr>{head}</tr>{body}</table>"


def sparkline(values):
    """The durations of the last runs, as bars."""
    if len(values) < 2:
        return Raw("")
    top = max(values) or 1
    bars = "".join(f'<rect x="{5 * i}" y="{18 - 18 * value / top:.1f}" width="4" '
                   f'height="{18 * value / top:.1f}"/>' for i, value in enumerate(values))
    return Raw(f'<svg width="{5 * SPARK_RUNS}" height="18" fill="#5b7fa6">{bars}</svg>')


def mark(seconds, budget):
    over = budget and seconds > OVER_BUDGET * budget
    return Raw(f'<span class="bad">{seconds:.0f}</span>' if over else f"{seconds:.0f}")


def text_block(text):
    return Raw(f"<pre>{html.escape(text)}</pre>")


def page(about, cases, runs, coverage=None):
    """`runs` are earlier ones, oldest first; `coverage` is what build/coverage.json says."""
    bad = [case for case in cases if case.is_bad]
    flaky = [case for case in cases if case.outcome == FLAKY]
    skipped = [case for case in cases if case.outcome == SKIPPED]
    slowest = sorted(cases, key=lambda case: -case.seconds)[:SLOWEST]

    def past(case):
        seen = [run.methods[case.name]["seconds"] for run in runs if case.name in run.methods]
        return sparkline(seen[-SPARK_RUNS:] + [case.seconds])

    def flaky_runs(case):
        return sum(run.methods.get(case.name, {}).get("outcome") == FLAKY for run in runs)

    parts = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Tests of Atoll</title>"
        f"<style>{STYLE}</style><h1>Tests of Atoll</h1>"
        f"<p><b>{closing_line(cases)}</b>, commit {html.escape(about['commit'])}, "
        f"{html.escape(about['time'])}, host {html.escape(about['host'])}, "
        f"{about['cores']} cores, load {about['load_mean']} (at most {about['load_max']}), "
        f"steal {about['steal_percent']} %</p>",
        table("Failed", ("test", "what it said"), [(case.name, text_block(case.message))
                                                   for case in bad]),
        table("Flaky: passed when run once more, alone", ("test", "runs before", "what it said"),
              [(case.name, flaky_runs(case), text_block(case.message)) for case in flaky]),
        table("Steps", ("step", "seconds", "CPU seconds of the machine", "budget", "outcome"),
              [(step["name"], mark(step["seconds"], step["budget_seconds"]), step["cpu_seconds"],
                step["budget_seconds"], step["outcome"]) for step in about["steps"]]),
        table("Slowest", ("test", "seconds", "last runs"),
              [(case.name, case.seconds, past(case)) for case in slowest]),
        table("Slowest files", ("test", "methods", "seconds"), files_of(cases)),
        table("Skipped", ("test", "why"), [(case.name, case.message) for case in skipped]),
    ]
    if coverage:
        parts.append(table("Lines that a folder's unit tests run (make coverage)",
                           ("folder", "percent", "lines", "at commit"),
                           [(folder, one["percent"], one["lines"], one["commit"])
                            for folder, one in sorted(coverage.items())]))
    return "\n".join(parts) + "</html>\n"


def files_of(cases):
    files = {}
    for case in cases:
        count, seconds = files.get((case.preset, case.test), (0, 0.0))
        files[case.preset, case.test] = (count + 1, seconds + case.seconds)
    rows = [(f"{test} ({preset})", count, seconds)
            for (preset, test), (count, seconds) in files.items()]
    return sorted(rows, key=lambda row: -row[2])[:SLOWEST]
