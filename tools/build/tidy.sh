#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Usage: tidy.sh format|tidy
# format: whether every C file of the repository has the form of .clang-format (shim/ too), in 100 columns.
# tidy: what clang-tidy finds in all but tests (.clang-tidy says what it looks for); takes minutes.
set -u
cd "$(dirname "$0")/../.."
case ${1-} in
format)
	git ls-files -z '*.c' '*.h' | xargs -0 clang-format --dry-run -Werror || {
		echo "mend it with: clang-format -i FILE..." >&2
		exit 1
	}
	# Comments are left as they are by clang-format; messages may be as long as they are.
	git ls-files -z '*.c' '*.h' | xargs -0 awk '
		{ line = $0; while (match(line, /\t/))
			line = substr(line, 1, RSTART - 1) \
				substr("        ", 1, 8 - (RSTART - 1) % 8) substr(line, RSTART + 1) }
		length(line) > 100 && line !~ /"/ {
			print FILENAME ":" FNR ": " length(line) " columns, at most 100"; bad = 1 }
		END { exit bad }' >&2
	;;
tidy)
	[ -f build/plain/build.ninja ] || sh tools/build/configure.sh build/plain || exit 1
	ninja -C build/plain >/dev/null || exit 1
	# One process a file: of several, this version mixes up what it knows of the first.
	git ls-files -z '*.c' ':!tests' ':!shim' |
		xargs -0 -n 1 -P "$(nproc)" clang-tidy -p build/plain --quiet \
			--extra-arg=-Wno-unknown-warning-option 2>/dev/null # gcc has more of them
	;;
*)
	echo "usage: tidy.sh format|tidy" >&2
	exit 2
	;;
esac
