# SPDX-License-Identifier: BSD-2-Clause
"""A small Debian with systemd, of this system's own release, as the first file system of a test machine."""
import hashlib
import os
import stat

import paths  # noqa: F401
import cache
import packages

ALWAYS = ("systemd-sysv", "udev", "kmod", "iproute2")
LEFT_OUT = ("/usr/share/doc/*", "/usr/share/locale/*", "/usr/share/man/*", "/usr/lib/udev/hwdb*")
# Of no use to a machine that lives for a minute.
MASKED = ("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
          "getty@tty1.service", "serial-getty@ttyS0.service", "systemd-update-utmp.service", "man-db.timer",
          "systemd-hwdb-update.service", "ldconfig.service", "systemd-journal-catalog-update.service")


def release():
    try:
        with open("/etc/os-release", encoding="utf-8") as f:
            words = dict(line.rstrip("\n").split("=", 1) for line in f if "=" in line)
    except OSError:
        words = {}
    if words.get("ID") != "debian" or "VERSION_CODENAME" not in words:
        raise cache.Unavailable("this system is no Debian release")
    return words["VERSION_CODENAME"]


def sources():
    """Where apt has this release from, its updates among it."""
    said = packages.run("apt-get", "indextargets", "--format", "$(ORIGIN)|deb $(REPO_URI) $(RELEASE) $(COMPONENT)")
    return sorted({line.partition("|")[2] for line in said.splitlines() if line.startswith("Debian|")})


def get(names):
    """The folder of a root with these packages and what they need."""
    suite, wanted = release(), sorted({*ALWAYS, *names})
    words = ["--variant=essential", f"--mode={'root' if os.geteuid() == 0 else 'unshare'}",
             '--aptopt=Acquire::Languages "none"', *(f"--dpkgopt=path-exclude={p}" for p in LEFT_OUT),
             "--include=" + ",".join(wanted)]
    key = "root-" + hashlib.sha256(" ".join([suite, *words]).encode()).hexdigest()[:12]

    def make(into):
        packages.run("mmdebstrap", *words, suite, os.path.join(into, "root"), *sources())

    return os.path.join(cache.have(key, make), "root")


def fill(image, root):
    """The whole of it. Everything belongs to root; devices are the kernel's own."""
    for folder, folders, files in os.walk(root):
        at = folder[len(root):]
        if at in ("/dev", "/proc", "/sys", "/boot", "/var/cache/apt", "/var/lib/apt/lists"):
            folders.clear()
            image.add_folder(at)
            continue
        if at:
            image.add_folder(at)
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                image.add_link(f"{at}/{name}", os.readlink(path))
            elif stat.S_ISREG(mode):
                with open(path, "rb") as f:
                    image.add_data(f"{at}/{name}", f.read(), stat.S_IMODE(mode))
    image.add_device("/dev/console", 5, 1)
    image.add_link("/init", "/lib/systemd/systemd")
    for unit in MASKED:
        image.add_link("/etc/systemd/system/" + unit, "/dev/null")
