# SPDX-License-Identifier: BSD-2-Clause
# The tests of the API, the same programs as on the emulated cluster, with this machine in place of all
# of its hosts; what a machine cannot do they skip, and say why.
# programs: tests/api/*_api_test
# files: tests/vm/api-tests.txt tests/vm/vfio-api-tests.txt
# worlds: module vfio
# modules: smartio nvme
# alone: a drive with as many vectors as the emulated one
# nvme: serial=SIO0,max_ioqpairs=31,msix_qsize=32
# limit: 1800
. /lib.sh
bdf=$(drive_bdf)
load_modules
give_drive "$bdf"
start_daemon
export SMARTIO_TEST_MACHINE="$bdf" SMARTIO_TEST_TOOL=/bin/smartio
export SMARTIO_TEST_WORLD="$WORLD"
export SMARTIO_TEST_USER=1000 SMARTIO_TEST_GROUP=900
[ ! -e /dev/udmabuf ] || chmod 666 /dev/udmabuf # what stands for a card's driver
table=api-tests.txt
[ "$WORLD" = module ] || table=vfio-api-tests.txt
for program in $PROGRAMS; do
	name=${program%_api_test}
	[ "$name" != fault ] || continue # it takes minutes here
	echo "$name"
	"$program" >/tmp/out 2>&1 || {
		cat /tmp/out
		bad="${bad:-} $name"
	}
	# A line for each test: whether it ran here, or what it would need.
	tr '\r' '\n' </tmp/out | awk -v name="$name" '
		/^\[ RUN / { test = $NF }
		/^\[  NEEDS / { sub(/^[^]]*\] /, ""); needs = $0 }
		/^\[       OK / { print name, test, "runs" }
		/^\[  SKIPPED \].*[a-z_]$/ && needs { print name, test, "skipped: needs " needs; needs = "" }
	' >>/tmp/table
done
[ -z "${bad:-}" ] || fail "these tests failed:$bad"
grep -v '^#' /files/$table >/tmp/expected || :
diff /tmp/expected /tmp/table || {
	record $table </tmp/table
	fail "tests/vm/$table says otherwise: vm.py --record writes it"
}
grep -c runs /tmp/table
stop_daemon
take_drive "$bdf"
end_world
