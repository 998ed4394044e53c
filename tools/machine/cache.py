# SPDX-License-Identifier: BSD-2-Clause
"""Where downloads and built kernels are kept between runs: outside the source tree."""
import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time

KEEP_SECONDS = 14 * 24 * 3600


class Unavailable(Exception):
    """Something that the machine or its network does not give: a reason to skip, not to fail."""


def folder():
    """The cache; SMARTIO_VM_CACHE names another place."""
    path = os.environ.get("SMARTIO_VM_CACHE")
    if not path:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
        path = os.path.join(base, "smartio", "vm")
    os.makedirs(path, exist_ok=True)
    return path


@contextlib.contextmanager
def locked(name):
    """One process at a time for this name; the others wait."""
    with open(os.path.join(folder(), f".{name}.lock"), "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        yield


def forget_unfinished(name):
    """Under the lock: what one that was killed had begun to make is nobody's; of a kernel it is 2 GB."""
    begun = re.compile(re.escape(f".{name}.") + "[a-z0-9_]{8}")
    for entry in os.listdir(folder()):
        path = os.path.join(folder(), entry)
        if begun.fullmatch(entry) and os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)


def have(name, make):
    """The cached folder @name; make(an empty folder) fills it if it is not there. All or nothing."""
    path = os.path.join(folder(), name)
    with locked(name):
        forget_unfinished(name)
        if os.path.isdir(path):
            return path
        work = tempfile.mkdtemp(prefix=f".{name}.", dir=folder())
        try:
            make(work)
            os.chmod(work, 0o755)
            os.rename(work, path)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return path


def forget_others(prefix, keep):
    """Old versions of what @keep replaces: a kernel takes some 100 MB. Younger ones may be in use by
    another tree."""
    for name in os.listdir(folder()):
        path = os.path.join(folder(), name)
        if (name.startswith(prefix) and name != keep and
                time.time() - os.stat(path).st_mtime > KEEP_SECONDS):
            with locked(name):
                shutil.rmtree(path, ignore_errors=True)
