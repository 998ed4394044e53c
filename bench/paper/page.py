# SPDX-License-Identifier: BSD-2-Clause
"""The report: one HTML file that needs no other, light or dark as its reader's screen is."""
import html

STYLE = """
:root { color-scheme: light dark; --text: #1b1b1b; --back: #fdfdfd; --line: #c8c8c8; --tag: #e8eef4 }
@media (prefers-color-scheme: dark) { :root { --text: #e6e6e6; --back: #16181b; --line: #4a4e54; --tag: #26323d } }
body { color: var(--text); background: var(--back); font: 16px/1.5 sans-serif; max-width: 62rem; margin: 2rem auto;
       padding: 0 1rem }
table { border-collapse: collapse; margin: .5rem 0 1.5rem; display: block; overflow-x: auto }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .7rem; text-align: right }
.text { text-align: left }
th:first-child { min-width: 8rem }
figure { margin: 1rem 0; overflow-x: auto }
caption { text-align: left; font-weight: bold; padding: .3rem 0 }
.label { background: var(--tag); border-radius: .3rem; padding: .1rem .5rem; font-size: .85rem; margin-left: .6rem }
svg { width: 100%; min-width: 38rem; height: auto; color: var(--text) }
dt { float: left; clear: left; width: 9rem } dd { margin-left: 9rem }
"""


def is_text(cells):
    """A column that says something, and has not numbers for most of its rows."""
    return 2 * sum(c[:1].isdigit() or c[:1] in ("", "-", "+") for c in cells) < len(cells)


def page_table(t):
    text = [i == 0 or is_text([r[i] for r in t["rows"]]) for i in range(len(t["columns"]))]

    def line(kind, cells):
        return "<tr>" + "".join(f"<{kind}{' class=text' if text[i] else ''}>{html.escape(c)}</{kind}>"
                                for i, c in enumerate(cells)) + "</tr>\n"

    return (f"<table><caption>{html.escape(t['title'])}</caption>\n{line('th', t['columns'])}"
            f"{''.join(line('td', r) for r in t['rows'])}</table>\n")


def page(about, results, note):
    """@results: of each experiment its fields, tables, and the texts of its SVGs."""
    parts = [f"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>SmartIO: the paper's experiments</title>"
             f"<meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style>\n"
             "<h1>SmartIO: the paper's experiments</h1>\n<p>Times that are measured here are times of this software "
             "on one machine: on an emulated cluster a remote access costs what a local one does, and nothing of PCIe "
             "is in them. Times of hardware are modelled.</p>\n<dl>"]
    parts += [f"<dt>{html.escape(k)}</dt><dd>{html.escape(v)}</dd>\n" for k, v in about.items()]
    parts.append("</dl>\n")
    if note:
        parts.append(f"<p>{html.escape(note)}</p>\n")
    for r in results:
        section = f" (paper, {html.escape(r['paper'])})" if r["paper"] else ""
        parts.append(f"<h2 id=\"{r['name']}\">{html.escape(r['title'])}{section}"
                     f"<span class=\"label\">{html.escape(r['label'])}</span></h2>\n")
        if r.get("failed"):
            parts.append(f"<p>Not done: {html.escape(r['failed'])}</p>\n")
        parts += [page_table(t) for t in r["tables"]]
        parts += [f"<figure>{svg}</figure>\n" for svg in r["svg"]]
    parts.append("</html>\n")
    return "".join(parts)
