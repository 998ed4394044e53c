#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# All builds and all tests, each stage with its time. Last line: "N passed, N failed, N skipped".
# A stage that cannot be built counts as one failure; the others still run. What failed is named again at the end, with
# the last words of each, for whoever sees the end alone.
set -u
cd "$(dirname "$0")/../.."

passed=0 failed=0 skipped=0
results=$(mktemp -d) kernels=
trap '[ -z "$kernels" ] || kill -- "-$kernels" 2>/dev/null; rm -rf "$results"' EXIT
# Tests start python3 all the time. It may be a script that first looks for the right one (pyenv's takes ten times
# as long as Python itself): here it is that one, and nothing else of its folder. The builds remember this path.
python=$(python3 -c 'import sys; print(sys.executable)') || python=
case $python in
'' | "$(command -v python3)") ;;
*)
	mkdir -p build/bin
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$python" >build/bin/python3
	chmod +x build/bin/python3
	PATH=$PWD/build/bin:$PATH
	;;
esac
failures=$results/failures
begin=$SECONDS

# Jiffies of all processors so far: busy, and all; and those of what this script has run.
jiffies() {
	awk '$1 == "cpu" { for (i = 2; i <= 9; i++) all += $i; busy = all - $5 - $6 }
		FILENAME != "/proc/stat" { own = $16 + $17 } END { print busy, all, own }' /proc/stat /proc/$$/stat
}

stage() { # NAME COMMAND...
	local name=$1 start=$SECONDS rc before after
	shift
	before=$(jiffies)
	printf '== %s\n' "$name"
	"$@"
	rc=$?
	after=$(jiffies)
	printf '== %s: %s, %d s, %s\n' "$name" "$([ $rc = 0 ] && echo done || echo FAILED)" $((SECONDS - start)) \
		"$(echo $before $after | awk -v hz="$(getconf CLK_TCK)" '{ printf "%d s of processors, which were %d %% busy",
			($6 - $3) / hz, ($5 > $2 ? 100 * ($4 - $1) / ($5 - $2) : 0) }')"
	[ $rc = 0 ] || printf -- '-- stage: %s\n' "$name" >>"$failures"
	return $rc
}

build() { # DIR COMPILER WHAT MESON-OPTION...; WHAT: a target, what a suite's tests run, or "" for everything
	local dir=build/$1 compiler=$2 what=$3 log=build/$1.log targets
	shift 3
	# Configured anew each time: packages may have come since, which bring parts with them.
	CC=$compiler CXX=$([ "$compiler" = clang ] && echo clang++ || echo g++) \
		sh tools/build/configure.sh "$dir" -Dtests=enabled "$@" || return 1
	case $what in
	*/* | '') targets=$what ;;
	*) targets=$(python3 tools/build/targets.py "$dir" --suite "$what") || return 1 ;;
	esac
	# shellcheck disable=SC2086
	ninja -C "$dir" $targets >"$log" 2>&1 || {
		tail -n 60 "$log"
		grep -m 8 -E 'error|undefined' "$log" >>"$failures"
		return 1
	}
	if grep -q 'warning:' "$log"; then
		grep -A5 'warning:' "$log"
		return 1
	fi
}

# The simulator is compared with gcc's; of all else clang's warnings count, which need no programs.
build_clang() { # MESON-OPTION...
	local sim=tests/sim/smartio-sim log=build/clang-warnings.log
	build clang clang $sim "$@" || return 1
	python3 tools/build/warnings.py build/clang $sim >"$log" 2>&1 || {
		tail -n 60 "$log"
		grep -m 8 -E 'error|warning' "$log" >>"$failures"
		return 1
	}
	tail -n 1 "$log"
}

tests() { # DIR MESON-TEST-OPTION...
	local dir=build/$1 p f s
	shift
	: >"$results/counts"
	$wrap python3 tools/build/suite.py "$dir" "$results" "$@"
	read -r p f s <"$results/counts"
	passed=$((passed + ${p:-0})) failed=$((failed + ${f:-1})) skipped=$((skipped + ${s:-0}))
	[ "${f:-1}" = 0 ]
}

must() { "$@" || failed=$((failed + 1)); } # its stage is named

# Compiled in half the time; what is slow in these builds is what the sanitizers add.
fast='--werror -Doptimization=1 -Ddebug=true'
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:strict_string_checks=1
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
# The library may be used in a child of a program that has threads.
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0
# Kernels with much randomness in mmap and gcc's TSan do not agree.
no_aslr= wrap=
setarch -R true 2>/dev/null && no_aslr='setarch -R'

# The machines' kernels are built out of what the stages before theirs leave idle: the debug kernel alone takes longer
# than any other build. A group of processes of its own, which ends with this script, in the same session: where the
# kernel groups processes by sessions, niceness counts within one.
mkdir -p build
set -m
nice -n 19 sh -c 'for kernel in debug 6.1 6.12 6.12-iommufd; do python3 tests/vm/kernel.py $kernel; done' \
	>build/kernels.log 2>&1 </dev/null &
kernels=$!
set +m

# The engine for fio is compiled with its headers, which no package has.
fio=$(python3 tests/nvme/fio/source.py) || fio=

if stage 'build with gcc' build plain gcc '' -Dfio_source="$fio"; then
	stage 'tests, plain build' tests plain --no-suite vm
else
	failed=$((failed + 1))
fi
if stage 'build with clang' build_clang --werror -Doptimization=0 -Ddebug=false -Dfio_source="$fio" && [ -x build/plain/tests/sim/smartio-sim ]; then
	must stage 'the same seeds in both builds' python3 tests/sim/same.py 8 \
		build/plain/tests/sim/smartio-sim build/clang/tests/sim/smartio-sim
else
	failed=$((failed + 1))
fi
if stage 'build with ASan and UBSan' build asan gcc '' $fast -Db_sanitize=address,undefined -Db_lundef=false; then
	stage 'tests under ASan and UBSan' tests asan --no-suite plain-only
else
	failed=$((failed + 1))
fi
if stage 'build with TSan' build tsan gcc threads $fast -Db_sanitize=thread -Db_lundef=false; then
	wrap=$no_aslr stage 'threaded tests under TSan' tests tsan --suite threads
else
	failed=$((failed + 1))
fi

# What is left of the kernels goes on beside the first machines, or before them for whoever may not take niceness away.
kernels_now() {
	[ ! -d "/proc/$kernels" ] || renice -n 0 -g "$kernels" || wait "$kernels"
}
stage 'kernels of machines' kernels_now
# Last, when their kernels are there. Machines wait much: one more of them than there are processors.
[ ! -f build/plain/build.ninja ] || stage 'virtual machines' tests plain --suite vm \
	--num-processes $(($(nproc) + 1))

printf '== all stages: %d s\n' $((SECONDS - begin))
[ ! -s "$results/again" ] || { echo '== what failed, and passed when it ran alone'; cat "$results/again"; }
[ ! -s "$failures" ] || { echo '== what failed'; cat "$failures"; }
printf '%d passed, %d failed, %d skipped\n' $passed $failed $skipped
[ $failed = 0 ]
