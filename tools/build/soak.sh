#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Long runs of what `make check` does briefly. Stops at the first failure.
# usage: soak.sh [SECONDS], as make soak SECONDS=N: the simulator alone, for so long
# STRESS=N: the stress test alone, for so long; FAIL=N: the suite with failing calls alone
set -eu
cd "$(dirname "$0")/../.."
sh tools/build/configure.sh build/plain
ninja -C build/plain

vm() { # MACHINE TEST...; 77: not to be had, and it has said why
	python3 tests/vm/vm.py build/plain "$@" || [ $? = 77 ]
}

stress() { # SECONDS, of both rounds
	SMARTIO_STRESS_S=$((($1 + 1) / 2)) meson test -C build/plain --no-rebuild -t $(($1 / 90 + 1)) 'api stress'
}

fail_calls() { # SECONDS
	local asan=build/asan
	[ -f $asan/build.ninja ] || sh tools/build/configure.sh $asan -Db_sanitize=address,undefined -Db_lundef=false
	ninja -C $asan
	python3 tests/api/fault_suite.py $asan --seconds "$1"
}

[ -z "${STRESS:-}" ] || { stress "$STRESS"; exit; }
[ -z "${FAIL:-}" ] || { fail_calls "$FAIL"; exit; }
if [ $# = 1 ]; then # make soak SECONDS=...: the simulator alone, new seeds on all cores
	exec build/plain/tests/sim/smartio-sim --soak "$1" --jobs "$(nproc)"
fi
echo '== make demo, then the test of what is installed, in one clone'
python3 tests/build/clone_test.py
echo '== new seeds of the simulator, for ten minutes'
build/plain/tests/sim/smartio-sim --soak 600 --jobs "$(nproc)"
echo '== the tests of the API in the simulator, 300 seeds'
python3 tests/sim/api/api.py build/plain/tests/sim/smartio-sim-api tests/sim/api/api-tests.txt --seeds 300
echo '== a client killed in every step, of 40 seeds, in the simulator'
build/plain/tests/sim/seam_test 40
echo '== a manager killed in every step, and a standby, in the simulator'
build/plain/tests/sim/takeover_seam_test
echo '== daemons of real hosts killed at any time, 50,000 seeds'
CHAOS_RUNS=50000 build/plain/tests/smartiod/restart_chaos_test
echo '== a client killed at every system call, at 100 instants; hosts crashed at 30'
SOAK=1 python3 tests/system/death_test.py build/plain
echo '== 16 programs on 8 hosts, used by each other and killed, for ten minutes'
stress 600
echo '== 31 clients on 31 of 60 hosts, each on a queue pair of one drive, for ten minutes'
SIO_MANY_S=600 meson test -C build/plain --no-rebuild -t 4 nvme-many
echo '== the same with clients and managers killed, cables pulled, and commands of up to 1 MiB, for ten minutes'
SIO_INTEGRITY_S=600 meson test -C build/plain --no-rebuild -t 4 nvme-integrity
echo '== 1,000 links pulled under a client with two ways to its drive'
SMARTIO_TEST_FAILURES=1000 meson test -C build/plain --no-rebuild -t 10 -v nvme-multipath
echo '== the tests of the API while calls of the library fail, under ASan, for half an hour'
fail_calls 1800
echo '== every test of virtual machines in every machine; then the long ones on the debug kernel'
for machine in none-6.1 none-6.12 intel-6.1 intel-6.12 amd-6.1 amd-6.12 none-debug amd-debug \
	vfio-intel-6.1 vfio-intel-6.12 vfio-amd-6.1 vfio-amd-6.12 \
	vfio-intel-6.12-iommufd vfio-amd-6.12-iommufd vfio-none-6.12-iommufd \
	vfio-intel-backports vfio-intel-backports-iommufd; do
	vm "$machine" all
done
vm vfio-amd-backports vfio restart noremap
vm debug all --soak
vm vfio-debug all
echo '== by VFIO, each process killed at every system call and at a thousand instants'
vm vfio-intel-6.12 death vfio --soak
for part in 1 2 3 4 5 6 7 8; do # each within the time that a test has
	vm vfio-intel-6.12 calls --soak --part=$part/8
done
echo "== the kernel's NTB clients on two machines, and clusters of two and three"
for machine in none-6.1 none-6.12 intel-6.1 intel-6.12; do
	python3 tests/vm/ntb.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/cluster.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/trio.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/hostile.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/bridge_ntb.py build/plain "$machine" || [ $? = 77 ]
	python3 tests/vm/cluster_ntb.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/pair_api.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/lend.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/lend_card.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/lend_card.py build/plain "$machine" --igb --soak || [ $? = 77 ]
	python3 tests/vm/lend_cycles.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/lend_peer.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/lend_peer.py build/plain "$machine" --third --soak || [ $? = 77 ]
	python3 tests/vm/lend_peer.py build/plain "$machine" --apart --soak || [ $? = 77 ]
	for where in '' --own --third; do
		python3 tests/vm/far_bar.py build/plain "$machine" $where --soak || [ $? = 77 ]
	done
	python3 tests/vm/disk.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/ocfs2.py build/plain "$machine" --soak || [ $? = 77 ]
done
for machine in amd-6.1 amd-6.12; do
	for test in lend lend_card disk; do
		python3 tests/vm/$test.py build/plain "$machine" --soak || [ $? = 77 ]
	done
done
echo '== an hour of a cluster file system on one drive of two'
python3 tests/vm/ocfs2.py build/plain none-6.1 --hour --soak || [ $? = 77 ]
echo '== a thousand random deaths in a cluster of two'
python3 tests/vm/deaths.py build/plain none-6.1 --soak || [ $? = 77 ]
for machine in none-6.1 none-6.12; do
	python3 tests/vm/model.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/mapped.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/mixed.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/mixed.py build/plain "$machine" --mapped --soak || [ $? = 77 ]
	python3 tests/vm/lend_functions.py build/plain "$machine" --soak || [ $? = 77 ]
done
for machine in intel-6.1 intel-6.12; do
	python3 tests/vm/passthrough.py build/plain "$machine" --soak || [ $? = 77 ]
	python3 tests/vm/lend.py build/plain "$machine" --a-alone --soak || [ $? = 77 ]
	python3 tests/vm/lend.py build/plain "$machine" --b-alone --soak || [ $? = 77 ]
	python3 tests/vm/lend_peer.py build/plain "$machine" --a-alone --soak || [ $? = 77 ]
	python3 tests/vm/lend_peer.py build/plain "$machine" --b-alone --soak || [ $? = 77 ]
	python3 tests/vm/far_bar.py build/plain "$machine" --third --there --soak || [ $? = 77 ]
done
for machine in none-6.1 intel-6.12; do
	python3 bench/lending/bench.py build/plain "$machine" --count 100 --rounds 1 --out build/plain/lending || [ $? = 77 ]
done
python3 bench/nvmeof/bench.py build/plain none-6.1 --count 30 --rounds 1 --out build/plain/nvmeof || [ $? = 77 ]
echo '== devices in virtual machines: a million random addresses; what is plugged and lost'
SMARTIO_RANDOM_ADDRESSES=1000000 SMARTIO_TOOL=$PWD/build/plain/tools/smartio python3 -B tests/cli/passthrough_test.py
for kernel in 6.1 6.12; do
	python3 tests/vm/guest.py build/plain "$kernel" --soak || [ $? = 77 ]
	python3 tests/vm/kept.py build/plain "$kernel" --soak || [ $? = 77 ]
	python3 bench/lending/passthrough.py build/plain "$kernel" --count 100 --rounds 1 --out build/plain/lending || [ $? = 77 ]
done
python3 tests/vm/kept.py build/plain 6.12-iommufd --soak || [ $? = 77 ]
echo '== instructions, system calls, transactions'
python3 tests/system/path_test.py build/plain
