#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs the Debian packages that a target needs, or says how.
# Usage: deps.sh demo|check|tidy|coverage
# As root: apt-get installs what is missing, without questions. Else: prints the one line that does
# it, and exits with 1.
set -eu

build='gcc g++ libc6-dev make pkg-config meson ninja-build python3 libyaml-dev libsystemd-dev
 libjson-c-dev libpci-dev uthash-dev libnvme-dev libcmocka-dev'
check='clang clang-format valgrind strace scdoc git python3-jsonschema'
# For tests/vm; where they cannot be installed, those tests are skipped and say so.
vm='qemu-system-x86 busybox-static dmsetup bc bison flex libelf-dev xz-utils perl sparse'

case ${1-} in
demo) want=$build ;;
check) want="$build $check" ;;
coverage) want="$build gcovr" ;;
tidy) want="$build clang clang-format clang-tidy git" ;;
*)
	echo "usage: deps.sh demo|check|tidy|coverage" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null; then
	echo "deps.sh: this is not a Debian system; install what these packages hold:" $want >&2
	exit 1
fi

missing() { # PACKAGE...: those that are not installed
	for p; do
		case $(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || :) in
		installed) ;;
		*) printf ' %s' "$p" ;;
		esac
	done
}

missing=$(missing $want)
optional=
[ "$1" != check ] || optional=$(missing $vm)
[ -n "$missing$optional" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	if [ -n "$missing" ]; then
		echo "sudo apt-get install$missing"
		exit 1
	fi
	echo "for tests in virtual machines: sudo apt-get install$optional" >&2
	exit 0
fi
echo "installing:$missing$optional"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { # PACKAGE...
	apt-get install -q -y --no-install-recommends "$@" >>"$log" 2>&1
}
apt-get update -q >"$log" 2>&1 || :
if [ -n "$missing" ] && ! install $missing; then
	cat "$log" >&2
	echo "deps.sh: apt-get could not install:$missing" >&2
	exit 1
fi
if [ -n "$optional" ] && ! install $optional; then
	tail -n 5 "$log" >&2
	echo "deps.sh: no tests in virtual machines: apt-get could not install:$optional" >&2
fi
