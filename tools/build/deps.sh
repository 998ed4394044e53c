#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Installs the Debian packages that a target needs, or says how.
# Usage: deps.sh demo|check
# As root: apt-get installs what is missing, without questions. Else: prints the one line that does
# it, and exits with 1.
set -eu

build='gcc g++ libc6-dev make pkg-config meson ninja-build python3 libyaml-dev libsystemd-dev
 libjson-c-dev uthash-dev libnvme-dev libcmocka-dev'
check='clang clang-format valgrind strace scdoc git'

case ${1-} in
demo) want=$build ;;
check) want="$build $check" ;;
*)
	echo "usage: deps.sh demo|check" >&2
	exit 2
	;;
esac

if ! command -v dpkg-query >/dev/null; then
	echo "deps.sh: this is not a Debian system; install what these packages hold:" $want >&2
	exit 1
fi
missing=
for p in $want; do
	case $(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null || :) in
	installed) ;;
	*) missing="$missing $p" ;;
	esac
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" != 0 ]; then
	echo "sudo apt-get install$missing"
	exit 1
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { apt-get update -q && apt-get install -q -y --no-install-recommends $missing; } >"$log" 2>&1; then
	cat "$log" >&2
	echo "deps.sh: apt-get could not install:$missing" >&2
	exit 1
fi
