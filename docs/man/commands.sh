#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# commands.sh SMARTIO PAGE: the page, with what the command says of its subcommands in place of @COMMANDS@.
set -eu
commands=$("$1" --help=manual)
while IFS= read -r line; do
	case $line in
	@COMMANDS@) printf '%s\n' "$commands" ;;
	*) printf '%s\n' "$line" ;;
	esac
done <"$2"
