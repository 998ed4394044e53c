#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The tests of the API on two machines: the same programs as on the emulated cluster, each run on both machines at once,
which fork the programs of their own hosts (tests/lib/pair.h).

usage: pair_api.py BUILD MACHINE [--console] [--soak] [--record] [TEST...]

Without --soak a few short ones. --record writes pair-api-tests.txt, the list of what runs, from what it saw.
"""
import glob
import os
import re
import sys

import cluster
import pair
from cluster import DRIVE
from machine import Failed

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "pair-api-tests.txt")
SHORT = ("connect", "copy", "dma", "map_flag", "multicast_pair", "segment", "segment_event", "share")
# Programs that two machines cannot run, and what they would need.
NOT = {
    "adapters": "several adapters of a host",
    "answers": "a daemon of the test's own",
    "dataint_all": "three hosts",
    "dataint_size": "interrupts that do not get lost: the virtual NTB refuses the 33rd that is under way",
    "device_callback": "a cable that is pulled, a host that crashes",
    "device_group": "three hosts, and memory that their programs share",
    "dma_loss": "a cable that is pulled, a host that crashes",
    "errors": "three hosts, and tables of a length that the test has chosen",
    "fault": "calls of the library that fail: in the simulator, and on one machine",
    "gpu": "a driver of CUDA's that one process plays",
    "guest": "a lender of emulated memory",
    "interrupt": "interrupts that are counted one by one: messages that meet are one",
    "interrupt_share": "interrupts that are counted one by one: messages that meet are one",
    "link": "a cable that is pulled",
    "many": "more hosts",
    "many_members": "more hosts",
    "mirror": "counts of the emulated bridge",
    "outage": "a cable that is pulled",
    "overlay": "four hosts, and memory that their programs share",
    "overlay_life": "four hosts, and memory that their programs share",
    "p2p": "three hosts, and memory that their programs share",
    "p2p_cut": "three hosts, and memory that their programs share",
    "query": "the names, the switch and the links of the test's own topology",
    "stress": "memory that programs of different hosts share",
    "wait": "a daemon that can be stopped",
    "wide": "several adapters of a host",
    "multicast": "groups whose members share memory",
    "multicast_exact": "three hosts, and a cable that is pulled: multicast_pair has the rest",
}
# And of those that can, tests by a pattern that are not in order yet: a connection is told to be lost now and then; the
# audit of the lender does not agree with a borrower on another machine that plugged its device in, and was refused.
SKIP = {"dataint": "idle_receivers_keep_no_empty_rings", "device_interrupt": "wh*"}
PORT = 7600
LINE = re.compile(r"^\[ *(RUN|NEEDS|OK|SKIPPED|FAILED) *\] (.*)")


def names(build):
    """Of all programs that there are."""
    found = (os.path.basename(path)[:-len("_api_test")] for path in glob.glob(f"{build}/tests/api/*_api_test"))
    return sorted(set(found) - set(NOT))


def read(text):
    """What the output of a program says of each of its tests."""
    seen, needs = {}, ""
    test = ""
    for line in text.replace("\r", "\n").splitlines():
        found = LINE.match(line)
        if not found:
            continue
        what, rest = found[1], found[2].strip()
        if what == "RUN":
            test, needs = rest.split()[-1], ""
        elif what == "NEEDS":
            needs = rest
        elif what == "OK":
            seen[test] = "runs"
        elif what == "SKIPPED" and test:
            seen.setdefault(test, f"skipped: needs {needs}")
        elif what == "FAILED" and test:
            seen.setdefault(test, "fails")
    return seen


def run_program(p, name):
    """What ran, by test; the output of both if something is wrong."""
    p.a.limit(300)
    p.b.limit(300)
    for m, node in ((p.a, cluster.NODE["a"]), (p.b, cluster.NODE["b"])):
        m.start(f"SMARTIO_TEST_SKIP='{SKIP.get(name, '')}' SMARTIO_TEST_PAIR='{node} 10.0.0.1:{PORT}' SMARTIO_TEST_MACHINE={DRIVE} SMARTIO_TEST_TOOL=/bin/smartio "
                f"{name}_api_test >/tmp/out 2>&1 && n=0 || n=$?; echo ended $n >>/tmp/out; cat /tmp/out")
    said = [m.wait() for m in (p.a, p.b)]
    seen = [read(text) for text in said]
    bad = any("ended 0" not in text for text in said) or seen[0] != seen[1]
    return seen[0], "".join(f"--- {name} on {m.name}\n{text}\n" for m, text in zip((p.a, p.b), said)) if bad else ""


def expected():
    with open(TABLE, encoding="utf-8") as f:
        return [line.rstrip("\n") for line in f if not line.startswith("#")]


def check(p, wanted, lines):
    """What @lines say of the programs is what the table says of them."""
    right = [line for line in expected() if line.split()[0] in wanted]
    for line in sorted(set(right) ^ set(lines)):
        print(("missing: " if line in right else "new: ") + line)
    if set(right) != set(lines):
        raise Failed("pair-api-tests.txt says otherwise; --record writes it")
    p.step(f"{sum(line.endswith(' runs') for line in lines)} tests of {len(wanted)} programs")


def run_tests(p):
    wanted = p.kind.tests or (names(p.build) if p.soak or p.kind.record else SHORT)
    lines, wrong = [], ""
    for name in wanted:
        seen, output = run_program(p, name)
        lines += [f"{name} {test} {how}" for test, how in seen.items()]
        p.step(f"{name}: {sum(how == 'runs' for how in seen.values())} of {len(seen)}")
        if output:
            print(output)
            wrong += " " + name
    if p.kind.record:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write("# SPDX-License-Identifier: BSD-2-Clause\n# Written by pair_api.py BUILD MACHINE --record, from what it saw.\n")
            f.writelines(line + "\n" for line in lines)
    if wrong:
        raise Failed("these programs failed:" + wrong)
    if not p.kind.record:
        check(p, wanted, lines)


class PairApi(cluster.Cluster):
    name = "pair_api"
    doc = __doc__
    topology = pair.TOPOLOGY.replace("\n", "\nmulticast: exact\n", 1)
    memory = 768
    drive = ",max_ioqpairs=31,msix_qsize=32"  # as the emulated one
    checks = (cluster.start, cluster.give_drive, run_tests)
    tests = ()
    record = False
    tell = "cat /tmp/out /tmp/smartiod.log; ps -ef | grep api_test; cat /proc/$(pgrep api_test | head -n 1)/stack"

    def fill(self, image, kernel, build):
        super().fill(image, kernel, build)
        for name in self.tests or names(build):
            image.add_program(os.path.join(build, f"tests/api/{name}_api_test"))


def main():
    kind = PairApi()
    kind.record = "--record" in sys.argv
    words = [w for w in sys.argv[1:] if not w.startswith("--")]
    kind.tests = tuple(words[2:])
    sys.argv[1:] = words[:2] + [w for w in sys.argv[1:] if w in ("--soak", "--console")]
    return pair.main(kind)


if __name__ == "__main__":
    sys.exit(main())
