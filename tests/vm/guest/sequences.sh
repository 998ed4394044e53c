# SPDX-License-Identifier: BSD-2-Clause
# The sequences of commands that our model is held against (tests/nvme/compare), by our driver on
# smartio.ko: QEMU's drive answers as it does when a test writes its registers by hand (qemu.txt), but for
# what machine.txt lists with reasons. nvme.ko stays away: what it sets the drive keeps through resets.
# programs: tests/nvme/compare/nvme_sequences_machine
# files: tests/nvme/compare/sequences.txt tests/nvme/compare/qemu.txt tests/nvme/compare/machine.txt
# worlds: module vfio
# modules: smartio
# alone: a drive like the model's, as it comes from the factory
# drive: 16M
# nvme: serial=COMPARE-1,max_ioqpairs=4,msix_qsize=5,mdts=8
# limit: 900
# not: none
. /lib.sh
bdf=$(drive_bdf)
load_modules
give_drive "$bdf"
start_daemon
as_user nvme_sequences_machine machine /files/sequences.txt "$bdf" >/tmp/answers ||
	fail "the sequences did not run to their end"

# Lines of machine.txt take the place of those of qemu.txt; "*" is any answer.
expect() { # FILE yes|no
	awk -v replace="$2" '
		/^#/ || !NF { next }
		FILENAME ~ /machine.txt$/ {
			if ($3 == "*") any[$1 " " $2]
			else other[$1 " " $2] = $0
			next
		}
		($1 " " $2) in any { print $1, $2, "*"; next }
		replace == "yes" && ($1 " " $2) in other { $0 = other[$1 " " $2] }
		{ print }
	' /files/machine.txt "$1"
}
expect /files/qemu.txt yes >/tmp/expected
expect /tmp/answers no >/tmp/got
diff /tmp/expected /tmp/got >/tmp/diff || {
	cat /tmp/diff
	fail "QEMU's drive answers otherwise than qemu.txt and machine.txt say"
}
echo "$(wc -l </tmp/answers) answers"
stop_daemon
smartio device remove "$bdf"
end_world
