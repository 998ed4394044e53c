# SPDX-License-Identifier: BSD-2-Clause
# 20,000 segments, connections and maps in one program, on the emulated cluster: a machine that is its tests' own lets a
# process have as many descriptors and mappings as that needs. Nothing of a drive or of the kernel's side is used.
# programs: emu/smartio-emu tests/api/many_api_test
# not: intel amd
# alone: most of the memory
# memory: 3072
# limit: 3000
. /lib.sh
if [ "$KERNEL" = debug ]; then
	echo "nothing of the kernel is tested: its checks would make hours of it"
	exit 0
fi
echo 1048576 >/proc/sys/fs/nr_open
ulimit -n 200000
export SMARTIO_TEST_TOOL=/bin/smartio SMARTIO_TEST_EMU=/bin/smartio-emu SMARTIO_TEST_SMARTIOD=/bin/smartiod
export SMARTIO_TEST_LIMIT_S=2000 SMARTIO_TIMEOUT=300 # its processor is emulated
many_api_test >/tmp/out 2>&1 || {
	cat /tmp/out
	fail "many_api_test"
}
cat /tmp/out
! grep 'instead of' /tmp/out || fail "this machine allows fewer"
