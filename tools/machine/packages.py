# SPDX-License-Identifier: BSD-2-Clause
"""Debian packages, downloaded and unpacked into the cache. Nothing is installed."""
import os
import re
import subprocess
import tarfile

import cache


def run(*command, cwd=None, stdin=None):
    """Standard output; Unavailable with the last words of what failed."""
    try:
        done = subprocess.run(command, cwd=cwd, stdin=stdin, capture_output=True, text=True)
    except FileNotFoundError as e:
        raise cache.Unavailable(f"{command[0]} is not installed") from e
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines()
        raise cache.Unavailable(f"{' '.join(command)}: {words[-1] if words else 'failed'}")
    return done.stdout


def depends(package):
    """Names of the packages that this one needs."""
    out = run("apt-cache", "depends", "--important", package)
    return re.findall(r"^ *\|?Depends: (\S+)", out, re.M)


def version(package):
    found = re.search(r"^Version: (\S+)", run("apt-cache", "show", "--no-all-versions", package),
                      re.M)
    if not found:
        raise cache.Unavailable(f"apt-cache show {package}: no version")
    return found.group(1)


def resolve(meta):
    """The one linux-* package behind a meta package, by its exact name: never written down."""
    try:
        return next(p for p in depends(meta) if re.match(r"linux-(image|headers)-\d", p))
    except StopIteration:
        raise cache.Unavailable(f"{meta} names no kernel package") from None


def download(package, into):
    """Path of the .deb. Old package lists name files that are gone: then they are fetched anew."""
    try:
        run("apt-get", "download", package, cwd=into)
    except cache.Unavailable:
        if os.geteuid() != 0:
            raise
        run("apt-get", "update", "-q")
        run("apt-get", "download", package, cwd=into)
    (deb,) = [f for f in os.listdir(into) if f.startswith(package + "_")]
    return os.path.join(into, deb)


def unpack(deb, into, wanted=""):
    """The files of a .deb whose paths match @wanted, a regular expression; "" matches all."""
    with subprocess.Popen(["dpkg", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as files:
        with tarfile.open(fileobj=files.stdout, mode="r|") as tar:
            for member in tar:
                if re.search(wanted, member.name):
                    tar.extract(member, into)


def unpack_source(deb, into, wanted):
    """The files of a linux-source package, a tar of a tar of the whole kernel, that match @wanted, paths with wildcards."""
    with subprocess.Popen(["dpkg", "--fsys-tarfile", deb], stdout=subprocess.PIPE) as files, \
            subprocess.Popen(["tar", "-xO", "--wildcards", "*/linux-source-*.tar.xz"], stdin=files.stdout,
                             stdout=subprocess.PIPE) as source:
        files.stdout.close()
        run("tar", "-xJ", "-C", into, "--strip-components=1", "--wildcards", *("*/" + w for w in wanted), stdin=source.stdout)
