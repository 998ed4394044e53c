# SPDX-License-Identifier: BSD-2-Clause
"""A strict reader of OpenMetrics text, version 1.0.0, of the types that smartio writes."""
import re

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{((?:{LABEL}(?:,{LABEL})*)?)\}})? (\S+)")
NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")
# What stands behind the family's name in its samples.
SUFFIXES = {"counter": ("_total", "_created"), "gauge": ("",), "unknown": ("",), "info": ("_info",)}
ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def unescape(value):
    return re.sub(r"\\.", lambda m: ESCAPES[m.group()], value)


class Family:
    def __init__(self, name):
        self.name, self.type, self.unit, self.help = name, None, None, None
        self.samples = {}  # labels, a sorted tuple of pairs: the number


def parse(text):
    """{name of a family: Family}; ValueError with the line that is wrong."""
    families, family = {}, None

    def wrong(line, why):
        raise ValueError(f"{why}: {line!r}")

    if not text.endswith("# EOF\n"):
        wrong(text[-80:], "the end is missing")
    for line in text.removesuffix("# EOF\n").splitlines(keepends=True):
        if not line.endswith("\n") or line != line.strip(" \t\r"):
            wrong(line, "space, or no end")
        line = line.removesuffix("\n")
        meta = re.fullmatch(rf"# (TYPE|UNIT|HELP) ({NAME}) (.*)", line)
        if meta:
            what, name, value = meta.groups()
            if family is None or name != family.name:
                if name in families:
                    wrong(line, "its family has ended")
                family = families[name] = Family(name)
            if family.samples:
                wrong(line, "samples come behind it")
            if getattr(family, what.lower()) is not None:
                wrong(line, "said twice")
            if what == "TYPE" and value not in SUFFIXES:
                wrong(line, "no type of smartio's")
            if what == "UNIT" and not name.endswith("_" + value):
                wrong(line, "the unit ends the name")
            if what == "HELP" and re.search(r"\\(?![\\n\"])", value):
                wrong(line, "a stray backslash")
            setattr(family, what.lower(), value)
            continue
        match = SAMPLE.fullmatch(line)
        if not match:
            wrong(line, "no sample")
        name, labels, number = match.groups()
        if family is None or family.type is None:
            wrong(line, "no family, or one without a type")
        if name not in [family.name + suffix for suffix in SUFFIXES[family.type]]:
            wrong(line, f"no sample of {family.type} {family.name}")
        pairs = [pair.split("=", 1) for pair in re.findall(LABEL, labels or "")]
        key = tuple(sorted((k, unescape(v[1:-1])) for k, v in pairs))
        if len(dict(key)) != len(key) or key in family.samples:
            wrong(line, "twice the same")
        if not NUMBER.fullmatch(number) or family.type == "counter" and number.startswith("-"):
            wrong(line, "no such number")
        if family.type == "info" and number != "1":
            wrong(line, "an info is 1")
        family.samples[key] = int(number) if number.isdigit() else float(number)
    names = [f.name + s for f in families.values() for s in {*SUFFIXES[f.type], ""}]
    clash = {n for n in names if names.count(n) > 1}
    if clash:
        raise ValueError(f"names of two families: {clash}")
    return families
