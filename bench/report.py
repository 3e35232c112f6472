"""Figures as rows, and rows as a table. A row has samples in milliseconds, a rate, or the reason
why there is none."""

import math
from dataclasses import asdict, dataclass, field
from typing import Optional

COLUMNS = "{:<49} {:<6} {:>9} {:>8} {:>8}  {:>10}  {}"


@dataclass
class Row:
    measure: str
    who: str
    samples_ms: list = field(default_factory=list)
    per_second: Optional[float] = None
    value: Optional[float] = None
    unit: str = ""  # of the value
    note: str = ""
    error: str = ""  # why it could not be measured

    def percentile(self, percent):
        """Nearest rank: a value that was measured, never one in between."""
        if not self.samples_ms:
            return None
        ordered = sorted(self.samples_ms)
        return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]

    def figure(self):
        for figure in (self.per_second, self.value):
            if figure is not None:
                return figure
        return self.percentile(50)

    def as_json(self):
        figures = {f"p{percent}_ms": self.percentile(percent) for percent in (50, 95, 99)}
        return {**asdict(self), **figures}


def ratio(row, rows):
    """Atoll's figure divided by this row's, for the same measure."""
    ours = [other for other in rows if other.who == "atoll" and other.measure == row.measure]
    if row.who == "atoll" or not ours or not ours[0].figure() or not row.figure():
        return None
    return ours[0].figure() / row.figure()


def number(value):
    return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def table(facts, rows):
    lines = [
        f"{facts['cpu']}, {facts['cores']} cores, {facts['memory_bytes'] / 2**30:.0f} GiB, "
        f"Linux {facts['kernel']}, cgroups {facts['cgroups']}, load {facts['load_before']:.2f}",
        "",
        COLUMNS.format("measure", "who", "p50", "p95", "p99", "atoll/this", ""),
    ]
    previous = ""
    for row in rows:
        name = row.measure if row.measure != previous else ""
        previous = row.measure
        relative = ratio(row, rows)
        if row.per_second is not None:
            figures = [f"{row.per_second:.1f}/s", "", ""]
        elif row.value is not None:
            figures = [f"{number(row.value)} {row.unit}", "", ""]
        else:
            figures = [number(row.percentile(percent)) for percent in (50, 95, 99)]
        if row.error:
            figures[0] = "-"
        against = f"{relative:.2f}" if relative else ""
        remark = row.error or row.note
        lines.append(COLUMNS.format(name, row.who, *figures, against, remark).rstrip())
    return "\n".join(lines)
