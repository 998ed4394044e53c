# SPDX-License-Identifier: BSD-2-Clause
"""Chromium without a screen, led by the DevTools protocol over its two pipes: the standard library is enough."""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
# A program between us and the browser, which wants its pipes by these numbers.
AS_3_AND_4 = """import os, sys
os.dup2(int(sys.argv[1]), 203)
os.dup2(int(sys.argv[2]), 204)
os.dup2(203, 3)
os.dup2(204, 4)
os.closerange(203, 205)
os.execv(sys.argv[3], sys.argv[3:])"""
SECONDS = 60  # what an answer may take on a busy machine


class Browser:
    """One window of it. What its console and its exceptions say is in .complaints."""

    def __init__(self):
        self.home = tempfile.mkdtemp(prefix="sio-browser-")
        ours, theirs = os.pipe(), os.pipe()  # (it reads, we write), (we read, it writes)
        self.child = subprocess.Popen(
            [sys.executable, "-c", AS_3_AND_4, str(ours[0]), str(theirs[1]), PROGRAM, "--headless=new", "--no-sandbox",
             "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--disable-background-networking",
             "--disable-component-update", "--disable-default-apps", "--no-first-run", "--remote-debugging-pipe",
             f"--user-data-dir={self.home}", "about:blank"],
            env={**os.environ, "HOME": self.home}, pass_fds=(ours[0], theirs[1]), start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (ours[0], theirs[1]):
            os.close(fd)
        self.out, self.into = ours[1], theirs[0]
        self.left, self.number, self.session = b"", 0, None
        self.complaints, self.loaded = [], False
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for part in ("Page", "Runtime", "Log"):
            self.call(f"{part}.enable")

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
            self.child.wait(SECONDS)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            os.killpg(self.child.pid, signal.SIGKILL)
            self.child.wait(SECONDS)
        os.close(self.out)
        os.close(self.into)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self):
        """The next one that it sends."""
        end = time.monotonic() + SECONDS
        while b"\0" not in self.left:
            if not select.select([self.into], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"the browser has said nothing for {SECONDS} s")
            data = os.read(self.into, 1 << 20)
            if not data:
                raise AssertionError("the browser has ended")
            self.left += data
        text, self.left = self.left.split(b"\0", 1)
        return json.loads(text)

    def hear(self, m):
        if m.get("method") == "Page.loadEventFired":
            self.loaded = True
        elif m.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(m["params"]["exceptionDetails"]))
        elif m.get("method") == "Runtime.consoleAPICalled" and m["params"]["type"] in ("error", "warning", "assert"):
            self.complaints.append(json.dumps(m["params"]["args"]))
        elif m.get("method") == "Log.entryAdded" and m["params"]["entry"]["level"] in ("error", "warning"):
            self.complaints.append(m["params"]["entry"]["text"])

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.out, json.dumps(request).encode() + b"\0")
        while True:
            m = self.message()
            if m.get("id") == self.number:
                if "error" in m:
                    raise AssertionError(f"{method}: {m['error']}")
                return m["result"]
            self.hear(m)

    def window(self, width, height, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, url):
        self.loaded = False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.hear(self.message())

    def run(self, script):
        """The value of an expression in the page."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def until(self, script, seconds=SECONDS):
        """Wait until an expression is true; the page looks at each of its own changes."""
        found = self.run(f"""new Promise(done => {{
            const look = () => {{ if ({script}) done(true); else return false; return true; }};
            if (look()) return;
            const watch = new MutationObserver(() => look() && watch.disconnect());
            watch.observe(document, {{subtree: true, childList: true, attributes: true, characterData: true}});
            setTimeout(() => done(false), {seconds * 1000});
        }})""")
        if not found:
            raise AssertionError(f"not within {seconds} s: {script}\nThe page says:\n" +
                                 self.run("document.body.innerText"))

    def key(self, name, code=0):
        """@code: of the key, where it has an effect of its own, as Enter has."""
        more = {"windowsVirtualKeyCode": code, "text": "\r"} if name == "Enter" else {"windowsVirtualKeyCode": code}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name, code=name, windowsVirtualKeyCode=code)

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as f:
            f.write(base64.b64decode(data))
