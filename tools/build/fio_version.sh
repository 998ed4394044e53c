#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What the fio that is built from a folder calls itself, or why no engine can be compiled with its headers.
# Usage: fio_version.sh FOLDER
set -eu
for file in fio.h optgroup.h FIO-VERSION-GEN; do
	[ -f "$1/$file" ] || {
		echo "-Dfio_source=$1: there is no $file; the folder of fio's source is right" >&2
		exit 1
	}
done
[ -f "$1/config-host.h" ] || {
	echo "-Dfio_source=$1: there is no config-host.h; ./configure in that folder makes it" >&2
	exit 1
}
# fio's make writes the file; without it the version is that of the release.
if [ -f "$1/FIO-VERSION-FILE" ]; then
	sed -n 's/^FIO_VERSION = //p' "$1/FIO-VERSION-FILE"
else
	sed -n 's/^DEF_VER=//p' "$1/FIO-VERSION-GEN"
fi
