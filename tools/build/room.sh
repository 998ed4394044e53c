#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# room.sh BUILD-ROOT NAME SOURCE-FOLDER...: makes the include folder BUILD-ROOT/rooms/NAME, whose links lead to
# these folders: "libsmartio/core" is found as core/, "smartiod/base" as smartiod/base/. Nothing else is found there.
set -eu
top=$(cd "${0%/*}/../.." && pwd)
rooms=$1/rooms/$2
shift 2
rm -rf "$rooms"
for folder; do
	name=${folder#libsmartio/}
	case $name in
	*/*) into=$rooms/${name%/*} ;;
	*) into=$rooms ;;
	esac
	[ -d "$into" ] || mkdir -p "$into"
	ln -sfn "$top/$folder" "$rooms/$name"
done
