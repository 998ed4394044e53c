#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# cuda_libraries.sh NVCC: the folders of the toolkit's libraries, one a line. The compiler is asked, for only it knows
# from where it really runs; --dryrun compiles nothing, but wants a file.
source=$(mktemp --suffix .cu) || exit 1
trap 'rm -f "$source"' EXIT
"$1" --dryrun "$source" 2>&1 | sed -n 's/^#\$ LIBRARIES=//p' | grep -o '"-L[^"]*"' | sed 's/^"-L//; s/"$//' | while read -r folder; do
	[ ! -d "$folder" ] || readlink -f "$folder"
done
