#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The page of smartio web in Chromium: the graph, rates under I/O, a pulled link, keys, in both themes and at two widths;
nothing overlaps, no text is cut or too pale, no line crosses a card, and the console is silent."""
import json
import os
import re
import signal
import sys

import base
import browser
from webserver import NVME, WebTest

sys.path.append(os.path.join(base.HERE, "..", "emu"))
from ntb_machine import Machine  # noqa: E402

TOPOLOGIES = os.path.join(base.HERE, "..", "..", "examples", "topologies")
MACHINES = """cluster: m
switches: [s, t]
hosts:
  one: { ram: 64M, adapters: [{ to: t }] }
  a: { kind: machine, adapters: [{ to: s, window: 1M, entries: 256 }], devices: { disk: { type: nvme, size: 1M } } }
  b: { kind: machine, adapters: [{ to: s, window: 1M, entries: 256 }] }
  c: { kind: machine, adapters: [{ to: s, window: 1M, entries: 256 }] }
"""
SIZES = ((1280, 900), (390, 844))
# Functions for scripts below.
SCRIPT = """
const all = css => [...document.querySelectorAll(css)];
const seen = e => e.checkVisibility() && e.getClientRects().length;
const rgb = text => text.match(/[\\d.]+/g).map(Number);
function ground(e) {
    for (; e; e = e.parentElement) {
        const c = rgb(getComputedStyle(e).backgroundColor);
        if (c.length < 4 || c[3] === 1) return c.slice(0, 3);
    }
    return [255, 255, 255];
}
const luminance = c => c.map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
function contrast(e) {
    const [a, b] = [luminance(rgb(getComputedStyle(e).color).slice(0, 3)), luminance(ground(e))].sort((x, y) => y - x);
    return (a + .05) / (b + .05);
}
const texts = () => all("body *").filter(e => !e.closest("script, style, noscript") && seen(e) &&
    [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim()));
const pale = () => texts().filter(e => contrast(e) < 4.5).map(e => `${e.textContent}: ${contrast(e).toFixed(2)}`);
const cut = () => texts().filter(e => !e.closest(".scroll") && getComputedStyle(e).overflowX !== "visible" &&
    e.scrollWidth > e.clientWidth + 1 || (e.closest(".host") && e.getBoundingClientRect().right >
    e.closest(".host").getBoundingClientRect().right + 1)).map(e => e.textContent);
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;
function overlaps() {
    const found = [];
    for (const css of [".host, .bar", ".pin", ".device", "header > *"]) {
        const some = all(css).filter(seen).map(e => [e, e.getBoundingClientRect()]);
        some.forEach(([a, x], i) => some.slice(i + 1).forEach(([b, y]) =>
            meet(x, y) && found.push(`${a.textContent} | ${b.textContent}`)));
    }
    return found;
}
// Lines within cards or bars, by points along each of them.
function crossings() {
    const origin = document.getElementById("graph").getBoundingClientRect();
    const solid = all(".host, .bar").map(e => [e, e.getBoundingClientRect()]);
    return all("#wires path").flatMap(path => {
        const length = path.getAttribute("d") ? path.getTotalLength() : 0;
        for (let at = 0; at < length; at += 3) {
            const p = path.getPointAtLength(at), x = p.x + origin.left, y = p.y + origin.top;
            const [hit] = solid.find(([, r]) => x > r.left + 2 && x < r.right - 2 && y > r.top + 2 && y < r.bottom - 2) ?? [];
            if (hit) return [`${path.getAttribute("d")} crosses ${hit.textContent}`];
        }
        return [];
    });
}
// Each adapter that is on something has a line that ends at it.
function loose() {
    const origin = document.getElementById("graph").getBoundingClientRect();
    const ends = all("#wires path").flatMap(path => {
        const d = path.getAttribute("d");
        return d ? [path.getPointAtLength(0), path.getPointAtLength(path.getTotalLength())] : [];
    });
    return all(".pin").filter(e => {
        const r = e.getBoundingClientRect(), x = (r.left + r.right) / 2 - origin.left;
        const top = e.closest(".host").getBoundingClientRect().top - origin.top;
        return !ends.some(p => Math.abs(p.x - x) < 1 && Math.abs(p.y - top) < 1);
    }).map(e => e.ariaLabel);
}
const wrong = () => ({pale: pale(), cut: cut(), overlaps: overlaps(), crossings: crossings(), loose: loose(),
    wide: document.documentElement.scrollWidth > innerWidth ? [document.documentElement.scrollWidth] : []});
"""
LIVE = "document.getElementById('state').textContent === 'live'"


class Page(WebTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = browser.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()

    def open(self, width=1280, height=900, dark=False):
        self.browser.window(width, height, dark)
        self.browser.open(self.url)
        self.browser.run(SCRIPT)
        self.browser.until(f"{LIVE} && document.documentElement.dataset.look > 1")

    def says(self, css, regex):
        """Wait until one of these elements does."""
        self.browser.until(f"all({css!r}).some(e => seen(e) && new RegExp({json.dumps(regex)}).test(e.textContent))")

    def count(self, css):
        return self.browser.run(f"all({css!r}).filter(seen).length")

    def check_look(self, where):
        for what, found in self.browser.run("wrong()").items():
            self.assertEqual(found, [], f"{where}: {what}")
        self.assertEqual(self.browser.complaints, [], where)

    def tearDown(self):
        self.browser.open("about:blank")  # what its page asks meanwhile is nobody's
        self.browser.complaints.clear()

    def test_io_and_a_pulled_link_in_both_themes(self):
        self.up()
        self.serve()
        manager = self.manage()
        bench = self.start("run", "-n", "client1", "--", NVME, "bench", "nvme0", "-t", "600", "-d", "4")
        grounds = set()
        for dark in (False, True):
            for width, height in SIZES:
                where = f"{width} px, {'dark' if dark else 'light'}"
                self.open(width, height, dark)
                grounds.add(self.browser.run("getComputedStyle(document.body).backgroundColor"))
                self.says("h1", "^test$")
                self.assertEqual(self.browser.run("all('.host .name b').map(e => e.textContent)"),
                                 ["lender", "client1", "client2"])
                self.assertEqual((self.count(".bar"), self.count(".pin"), self.count(".device")), (1, 3, 1))
                # What moves, and for whom.
                self.says(".device.busy .rate", r"^\d[\d.]* [KMG]?B/s$")
                self.says(".device", "→ lender, client1")
                self.says(".uses", "^uses nvme0$")
                self.browser.until("all('.pin.busy').length === 2 && all('#wires path.busy').length === 2")
                self.says("#devices td", r"^\d[\d,]*/s$")
                self.says("#devices td", "^1/31$")
                # A cable is pulled, and put back.
                self.smartio("fault", "link", "client2", "down")
                self.says("#wrong li", "^link client2.0 is down$")
                self.says(".pin.down", "^0: down$")
                self.assertEqual(self.browser.run("all('#wires path.down').length"), 1)
                self.check_look(where + ", down")
                self.smartio("fault", "link", "client2", "up")
                self.browser.until("all('.pin.down').length === 0 && all('#wrong li').filter(seen).length === 0")
                self.check_look(where)
        self.assertEqual(len(grounds), 2)
        for child in (bench, manager):
            child.send_signal(signal.SIGTERM)
            child.wait(60)

    def test_what_looks_bad_is_seen(self):
        """The checks of the others can fail."""
        self.up()
        self.serve()
        for what, change in (("pale", "all('.host b')[0].style.color = getComputedStyle(all('.host')[0]).backgroundColor"),
                             ("cut", "all('.pin')[0].style.width = all('.pin')[0].style.minWidth = '12px'"),
                             ("overlaps", "all('.host')[1].style.marginLeft = '-100px'"),
                             ("crossings", "all('#wires path')[0].setAttribute('d', 'M0 0L400 200')"),
                             ("loose", "all('#wires path').forEach(p => p.removeAttribute('d'))"),
                             ("wide", "document.body.style.width = '2000px'")):
            self.open()
            found = self.browser.run(f"{change}; wrong()")
            self.assertNotEqual(found[what], [], what)
            if what == "pale":
                self.assertEqual([k for k, v in found.items() if v], [what])

    def test_keys(self):
        self.up()
        self.serve()
        self.open()
        reached = []
        for _ in range(20):
            self.browser.key("Tab", 9)
            reached.append(self.browser.run("document.activeElement.className.split(' ')[0]"))
        for part in ("pin", "name", "device", "scroll"):
            self.assertIn(part, reached)
        self.browser.run("all('.device')[0].focus()")
        self.browser.key("Enter", 13)
        self.says("#what", "^device nvme0$")
        self.says("#values", "lender")
        self.check_look("details")
        self.browser.key("Escape", 27)
        self.browser.until("!seen(document.getElementById('detail'))")
        self.assertEqual(self.browser.run("document.activeElement.className"), "device")

    def test_it_says_that_the_cluster_is_gone_and_comes_back(self):
        state = self.up()
        child = self.serve()
        self.open()
        self.crash(state, 8)
        self.says(".host.down", "client1")
        self.says("#wrong li", "^host client1 is down$")
        self.smartio("cluster", "down")
        self.says("#state", "^the cluster is gone: ")
        self.check_look("gone")
        self.up()
        self.browser.until(f"{LIVE} && all('.host.down').length === 0")
        # Another cluster by the same name is drawn anew.
        self.smartio("cluster", "down")
        with open(os.path.join(TOPOLOGIES, "ring-of-eight.yaml"), encoding="utf-8") as f:
            ring = self.file("test.yaml", re.sub("(?m)^cluster:.*", "cluster: test", f.read()))
        self.smartio("cluster", "up", ring)
        self.browser.until(f"{LIVE} && all('.host').length === 8")
        self.check_look("another")
        self.end(child)
        self.says("#state", "^smartio web does not answer$")
        # A fetch that fails is told by the browser itself, and by nobody else.
        self.assertEqual([c for c in self.browser.complaints if "ERR_CONNECTION_REFUSED" not in c], [])

    def test_topologies(self):
        """Cascades with what is down in them, chassis, two paths, a ring by cables: as the files have them."""
        for name, bars, hosts, pins, chassis in (("sixty-hosts", 7, 60, 60, 0), ("two-paths", 2, 3, 6, 0),
                                                 ("ring-of-eight", 0, 8, 16, 0), ("chassis", 1, 2, 3, 4)):
            self.smartio("cluster", "up", os.path.join(TOPOLOGIES, f"{name}.yaml"), "--name", name)
            child = self.serve("--cluster", name)
            if name == "sixty-hosts":
                self.smartio("fault", "trunk", "top", "sub3", "down")
                self.smartio("fault", "switch", "sub5", "down")
            for (width, height), dark in zip(SIZES, (True, False)):
                self.open(width, height, dark)
                self.assertEqual((self.count(".bar"), self.count(".host"), self.count(".pin"), self.count(".chassis")),
                                 (bars, hosts, pins, chassis))
                if name == "sixty-hosts":
                    self.says("#wrong li", "^switch sub5 is down, and with it 11 links$")
                    self.says("#wrong li", "^the link between sub3 and top is down$")
                self.check_look(f"{name}, {width} px")
            self.browser.open("about:blank")
            self.end(child)
            self.smartio("--cluster", name, "cluster", "down")

    def test_machines(self):
        """One that runs, one that is off, which is no trouble, and one whose cable is pulled."""
        self.smartio("cluster", "up", self.file("m.yaml", MACHINES), "--name", "m")
        for name in ("a", "c"):
            machine = Machine(f"{self.base}/m/vfio.{name}.0")
            self.addCleanup(machine.close)
            machine.start()
        child = self.serve()
        for (width, height), dark in zip(SIZES, (True, False)):
            self.open(width, height, dark)
            self.says(".host .name", "^one *node 4$")
            self.says(".host .name", "^a *machine, node 8$")
            self.says(".host.off .name", "^b *machine, node 12, off$")
            self.says(".host.off .pin", "^0: off$")
            self.says(".device", "^disk *detached$")
            self.says("#sums li", "^machines up 2/3$")
            self.assertEqual(self.count("#wrong li"), 0)
            self.smartio("fault", "link", "c", "down")
            self.says("#wrong li", "^link c.0 is down$")
            self.check_look(f"machines, {width} px")
            self.smartio("fault", "link", "c", "up")
            self.browser.until("all('#wrong li').filter(seen).length === 0")
        self.browser.run("all('.host .name')[1].click()")
        self.says("#values", "kind.*machine.*window.*exact")
        self.browser.open("about:blank")
        self.end(child)


if __name__ == "__main__":
    if browser.PROGRAM is None:
        print("skipped: there is no Chromium (package chromium): nobody looks at the page of smartio web")
        sys.exit(77)
    base.main()
