#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# room.sh BUILD-ROOT NAME SOURCE-FOLDER...: makes the include folder BUILD-ROOT/rooms/NAME, whose links lead to
# these folders: "libsmartio/core" is found as core/, "smartiod/base" as smartiod/base/. Nothing else is found there.
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
rooms=$1/rooms/$2
shift 2
rm -rf "$rooms"
for folder; do
	name=${folder#libsmartio/}
	mkdir -p "$(dirname "$rooms/$name")"
	ln -sfn "$top/$folder" "$rooms/$name"
done
