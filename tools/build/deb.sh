#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds the Debian packages of the tree as it is, tracked files alone, and has lintian look at them.
# Usage: deb.sh [FOLDER]: packages go there; build/deb if not given.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "${1:-build/deb}"
out=$(cd "${1:-build/deb}" && pwd)
log=$out/build.log
version=$(dpkg-parsechangelog -l tools/debian/changelog -S Version)
tree=$out/smartio-$version

rm -rf "$tree"
rm -f "$out"/*.deb "$out"/*.changes "$out"/*.buildinfo
mkdir "$tree"
git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$tree"
mv "$tree/tools/debian" "$tree/debian"
echo "building packages of SmartIO $version (log in ${log#"$PWD/"})"
(cd "$tree" && dpkg-buildpackage -b -us -uc) >"$log" 2>&1 || {
	tail -n 50 "$log" >&2
	exit 1
}
rm -rf "$tree"
lintian --fail-on error "$out"/*.changes
ls "$out"/*.deb
