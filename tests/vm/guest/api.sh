# SPDX-License-Identifier: BSD-2-Clause
# The tests of the API, the same programs as on the emulated cluster, with this machine in place of all
# of its hosts; what a machine cannot do they skip, and say why.
# programs: tests/api/adapters_api_test tests/api/block_api_test tests/api/callbacks_api_test
# programs: tests/api/connect_api_test tests/api/copy_api_test tests/api/dataint_api_test
# programs: tests/api/dataint_all_api_test tests/api/device_api_test
# programs: tests/api/device_interrupt_api_test tests/api/dma_api_test
# programs: tests/api/dma_channel_api_test tests/api/dma_gather_api_test
# programs: tests/api/dma_loss_api_test tests/api/dma_memory_api_test tests/api/errors_api_test
# programs: tests/api/flag_api_test tests/api/generation3_api_test tests/api/interrupt_api_test
# programs: tests/api/interrupt_share_api_test tests/api/limits_api_test tests/api/link_api_test
# programs: tests/api/loss_api_test tests/api/memory_api_test tests/api/multicast_api_test
# programs: tests/api/multicast_exact_api_test tests/api/own_memory_api_test
# programs: tests/api/pio_api_test tests/api/query_api_test tests/api/segment_api_test
# programs: tests/api/segment_event_api_test tests/api/share_api_test tests/api/threads_api_test
# programs: tests/api/wait_api_test
# files: tests/vm/api-tests.txt
# modules: smartio nvme
# alone: a drive with as many vectors as the emulated one
# nvme: serial=SIO0,max_ioqpairs=31,msix_qsize=32
# limit: 1800
. /lib.sh
bdf=$(drive_bdf)
load_modules
give_drive "$bdf"
start_daemon
for program in $PROGRAMS; do
	name=${program%_api_test}
	echo "$name"
	export SMARTIO_TEST_MACHINE="$bdf" SMARTIO_TEST_TOOL=/bin/smartio
	export SMARTIO_TEST_USER=1000 SMARTIO_TEST_GROUP=900
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
grep -v '^#' /files/api-tests.txt >/tmp/expected || :
diff /tmp/expected /tmp/table || {
	record api-tests.txt </tmp/table
	fail "tests/vm/api-tests.txt says otherwise: vm.py --record writes it"
}
grep -c runs /tmp/table
stop_daemon
take_drive "$bdf"
rmmod smartio
