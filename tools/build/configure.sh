#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Configures a build folder, or looks anew for what has been installed since it was configured.
# Usage: configure.sh FOLDER [MESON-OPTION...]
# Its output goes to FOLDER.log and is shown if it fails.
set -eu
dir=$1
shift
mkdir -p "$(dirname "$dir")"
again=
[ ! -f "$dir/build.ninja" ] || again=--reconfigure
# A folder that was left half configured cannot be configured anew.
[ -n "$again" ] || rm -rf "$dir"
meson setup $again "$dir" "$@" >"$dir.log" 2>&1 || {
	cat "$dir.log"
	exit 1
}
