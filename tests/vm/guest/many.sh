# SPDX-License-Identifier: BSD-2-Clause
# 20,000 segments, connections and maps of one program on an emulated cluster, in a machine whose limits
# allow them: where the tests run otherwise, a process often may not have so many descriptors.
# programs: tests/api/many_api_test emu/smartio-emu
# alone: it needs memory that others do not
# memory: 3072
# limit: 1800
# not: intel amd
. /lib.sh
ulimit -Hn 1048576 && ulimit -n 1048576
export SMARTIO_TEST_EMULATED=1 SMARTIO_TEST_TOOL=/bin/smartio
export SMARTIO_TEST_EMU=/bin/smartio-emu SMARTIO_TEST_SMARTIOD=/bin/smartiod
many_api_test 2>&1 | tr '\r' '\n' | tee /tmp/out
grep -q '^\[  PASSED  \] 2 test' /tmp/out || fail "the test of many objects failed"
grep -q 'while 60000 objects' /tmp/out || fail "they were fewer than 20,000 of each kind"
