"""The figures as a picture: one group of bars for each measure that has a peer, the length is p50
and the thin line reaches to p95. Shorter is better, but for the rate."""

from html import escape

WIDTH, LABEL, BAR, GAP, TITLE = 760, 92, 16, 4, 26
COLOURS = {"atoll": "#0a7a8f", "cold": "#58b4c4", "floor": "#9a9a9a"}
OTHER = "#d0a56b"


def text(x, y, content, **more):
    attributes = " ".join(f'{name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<text x="{x:.1f}" y="{y:.1f}" {attributes}>{escape(content)}</text>'


def label(row):
    if row.per_second is not None:
        return f"{row.per_second:.0f} per second"
    return f"{row.percentile(50):.1f} ms (p95 {row.percentile(95):.1f})"


def bar(row, y, scale):
    length = max(1.0, row.figure() * scale)
    colour = COLOURS.get(row.who, OTHER)
    parts = [text(LABEL - 8, y + BAR - 4, row.who, text_anchor="end"),
             f'<rect x="{LABEL}" y="{y}" width="{length:.1f}" height="{BAR}" fill="{colour}"/>']
    reach = length
    if row.per_second is None:
        reach = row.percentile(95) * scale
        middle = y + BAR / 2
        parts.append(f'<line x1="{LABEL + length:.1f}" y1="{middle}" x2="{LABEL + reach:.1f}" '
                     f'y2="{middle}" stroke="{colour}" stroke-width="2"/>')
    parts.append(text(LABEL + max(reach, length) + 6, y + BAR - 4, label(row)))
    return parts


def longest(row):
    return row.per_second if row.per_second is not None else row.percentile(95)


def groups(rows):
    """Measures with a figure of somebody else too, in the order of the table."""
    found = {}
    for row in rows:
        if row.figure() is not None and row.value is None:
            found.setdefault(row.measure, []).append(row)
    return {name: members for name, members in found.items() if len(members) > 1}


def draw(facts, rows):
    parts, y = [], 10
    for name, members in groups(rows).items():
        parts.append(text(0, y + 14, name, font_weight="bold"))
        y += TITLE
        scale = (WIDTH - LABEL - 170) / max(longest(row) for row in members)
        for row in members:
            parts += bar(row, y, scale)
            y += BAR + GAP
        y += 14
    machine = f"{facts['cpu']}, {facts['cores']} cores, Linux {facts['kernel']}, " \
              f"cgroups {facts['cgroups']}"
    parts.append(text(0, y + 10, machine, fill="#666"))
    style = 'font-family="sans-serif" font-size="12"'
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y + 24}" {style}>\n'
            f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n")
