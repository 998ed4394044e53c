# SPDX-License-Identifier: BSD-2-Clause
# Every allocation and every request of the library fails once, with this machine in place of all of the
# hosts of the emulated cluster.
# as: api
. /lib.sh
bdf=$(drive_bdf)
load_modules
give_drive "$bdf"
start_daemon
export SMARTIO_TEST_MACHINE="$bdf" SMARTIO_TEST_TOOL=/bin/smartio
export SMARTIO_TEST_USER=1000 SMARTIO_TEST_GROUP=900
fault_api_test 2>&1 || fail "fault"
stop_daemon
take_drive "$bdf"
rmmod smartio
