# SPDX-License-Identifier: BSD-2-Clause
"""Charts by gnuplot: an SVG for the page, in the page's own colours, and a PNG for everything else."""
import re
import shutil
import subprocess

COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31"]  # apart for all eyes
MISSING = "no pictures: gnuplot is not installed (Debian: gnuplot-nox)"


def there():
    return shutil.which("gnuplot") is not None


def text(s):
    """In gnuplot's single quotes."""
    return "'" + s.replace("'", "''") + "'"


def data(chart):
    blocks = []
    for i, points in enumerate(chart["series"].values()):
        lines = "\n".join(" ".join(f"{v:.9g}" if isinstance(v, (int, float)) else f'"{v}"' for v in p) for p in points)
        blocks.append(f"$d{i} << EOD\n{lines}\nEOD\n")
    return "".join(blocks)


def plot(chart):
    parts = []
    for i, (name, points) in enumerate(chart["series"].items()):
        colour = f"lc rgb '{COLOURS[i % len(COLOURS)]}'"
        if chart["kind"] == "bars":
            parts.append(f"$d{i} using 2:xtic(1) {colour} title {text(name)}")
            continue
        if name in chart.get("thin", ()):  # one of many, that nobody tells apart
            parts.append(f"$d{i} using 1:2 with lines lc rgb '#a0777777' lw 1 notitle")
            continue
        if len(points[0]) > 2:  # least and most, behind the line
            parts.append(f"$d{i} using 1:3:4 with filledcurves {colour} fs transparent solid 0.18 notitle")
        parts.append(f"$d{i} using 1:2 with linespoints {colour} dt {1 + i % 3} lw 2 pt {5 + 2 * (i % 3)} ps 0.5 title {text(name)}")
    return "plot " + ", \\\n ".join(parts) + "\n"


def style(chart):
    lines = [f"set title {text(chart['title'] + ' (' + chart['label'] + ')')} noenhanced", "set key below horizontal height 1 noenhanced",
             f"set xlabel {text(chart['x'])} noenhanced", f"set ylabel {text(chart['y'])} noenhanced", "set grid ytics",
             f"set yrange [{0 if 'y' not in chart.get('log', '') else '*'}:*]"]
    for axis in chart.get("log", ""):
        lines.append(f"set logscale {axis} {2 if axis == 'x' else 10}")
    if chart.get("sizes"):  # bytes, as people write them
        lines.append("set xtics ({}) noenhanced".format(", ".join(
            f"{text(size(1 << n))} {1 << n}" for n in range(2, 28, chart["sizes"]))))
    if chart["kind"] == "bars":
        lines += ["set style data histograms", "set style histogram cluster gap 1", "set style fill solid 0.85 border -1",
                  "set boxwidth 0.9", "set xtics noenhanced font ',11'"]
    return "\n".join(lines) + "\n"


def size(n):
    for unit in ("", "K", "M", "G"):
        if n < 1024:
            return f"{n}{unit}"
        n //= 1024
    return f"{n}T"


def draw(chart, path):
    """@path.svg and @path.png. Return: the SVG's text, black made the page's colour of text."""
    for terminal, end in (("svg size 860,470 dynamic font 'sans,14'", "svg"),
                          ("pngcairo size 1000,550 font 'sans,11'", "png")):
        script = (f"set terminal {terminal}\nset output {text(path + '.' + end)}\n" + data(chart) + style(chart) +
                  plot(chart))
        done = subprocess.run(["gnuplot"], input=script, capture_output=True, text=True, check=False)
        if done.returncode or done.stderr.strip():
            raise RuntimeError(f"gnuplot: {done.stderr.strip() or done.returncode}")
    with open(path + ".svg", encoding="utf-8") as f:
        svg = f.read()
    svg = svg[svg.index("<svg"):]
    # Names of gnuplot's parts are the same in each picture; on one page they have to differ.
    name = re.sub(r"\W", "_", path.rsplit("/", 1)[-1])
    svg = re.sub(r"""\b(id=["']|href=["']#|url\(['"]?#)""", rf"\g<1>{name}_", svg)
    return re.sub(r"""(["'])black\1|rgb\( *0, *0, *0\)""",
                  lambda m: f"{m[1]}currentColor{m[1]}" if m[1] else "currentColor", svg)
