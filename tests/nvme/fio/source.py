#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The source of the fio that is installed, configured, in the cache of the virtual machines' kernels.

usage: source.py     prints the folder: what meson's option fio_source wants

fio's engines are compiled with the headers of the very fio that loads them, and no package has these. Debian's archive has
the source of its package: some 16 MB are downloaded, once for each version (deb-src need not be configured, and nothing is
installed). Where that cannot be had, the reason is said, and nothing printed.
"""
import os
import re
import shutil
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "..", "tools", "machine"))
import cache  # noqa: E402
import packages  # noqa: E402

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


def release():
    """Version of the source package that the installed fio is of."""
    return packages.run("dpkg-query", "-W", "-f", "${source:Version}", "fio")


def sources():
    """Lines for apt: the sources of the archives of Debian that it has packages of."""
    found = set(re.findall(r"^(\S+) (\S+) Debian \S+ main$", packages.run(
        "apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(ORIGIN) $(LABEL) $(COMPONENT)"), re.M))
    if not found:
        raise cache.Unavailable("apt is configured with no archive of Debian's")
    return "".join(f"deb-src [signed-by={KEYRING}] {uri} {suite} main\n" for uri, suite in sorted(found))


def fetch(into, version):
    apt = os.path.join(into, "apt")
    for name in ("state/lists/partial", "cache/archives/partial"):
        os.makedirs(os.path.join(apt, name))
    with open(os.path.join(apt, "sources.list"), "w", encoding="ascii") as f:
        f.write(sources())
    # It runs as who calls it, and not as a user who must be able to reach the cache.
    own = [f"-o{name}={value}" for name, value in {
        "Dir::Etc::sourcelist": f"{apt}/sources.list", "Dir::Etc::sourceparts": "/dev/null", "Dir::State": f"{apt}/state",
        "Dir::State::status": "/var/lib/dpkg/status", "Dir::Cache": f"{apt}/cache", "APT::Sandbox::User": "root",
    }.items()]
    packages.run("apt-get", "-q", *own, "update")
    packages.run("apt-get", "-q", *own, "source", "--download-only", f"fio={version}", cwd=apt)
    (dsc,) = [name for name in os.listdir(apt) if name.endswith(".dsc")]
    # apt has checked it against the archive's signature.
    packages.run("dpkg-source", "--no-check", "-x", dsc, os.path.join(into, "fio"), cwd=apt)
    shutil.rmtree(apt)
    packages.run("./configure", "--disable-native", cwd=os.path.join(into, "fio"))


def get():
    """The folder; Unavailable if it cannot be had."""
    version = release()
    key = f"fio-{version}"
    folder = cache.have(key, lambda into: fetch(into, version))
    cache.forget_others("fio-", key)
    return os.path.join(folder, "fio")


if __name__ == "__main__":
    if len(sys.argv) != 1:
        sys.exit(__doc__.strip())
    try:
        print(get())
    except cache.Unavailable as e:
        sys.exit(f"fio's source: {e}")
