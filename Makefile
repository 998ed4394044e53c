# SPDX-License-Identifier: BSD-2-Clause
# The two commands of the README, and a few for those who work on SmartIO. meson does the building.
.PHONY: all demo check soak tidy format-check coverage mutants install deb clean

# What the demo runs; the tests need more of the system than that.
programs = tools/smartio smartiod/smartiod emu/smartio-emu drivers/nvme-user/smartio-nvme \
	bench/nvme/bench-nvme-worker

all:
	@sh tools/build/deps.sh demo
	@test -f build/plain/build.ninja || sh tools/build/configure.sh build/plain
	@ninja -C build/plain

# Build, then the main job: five hosts; three of them share one drive at once.
demo:
	@sh tools/build/deps.sh demo
	@test -f build/plain/build.ninja || sh tools/build/configure.sh build/plain
	@echo "building (log in build/plain.log)"
	@ninja -C build/plain $(programs) >build/plain.log || { cat build/plain.log; false; }
	@python3 examples/demo.py --build build/plain

# All builds, all tests; ends with "N passed, N failed, N skipped".
check:
	@sh tools/build/deps.sh check
	@bash tools/build/check.sh

# Long runs of what `make check` does briefly; with SECONDS=N the simulator alone, for so long; with
# STRESS=N the stress test of the API; with FAIL=N the API's tests while calls of the library fail.
soak:
	@sh tools/build/deps.sh check
	@STRESS=$(STRESS) FAIL=$(FAIL) bash tools/build/soak.sh $(SECONDS)

# What clang-tidy and clang-format find: for those who change the code.
tidy:
	@sh tools/build/deps.sh tidy
	@bash tools/build/tidy.sh tidy

format-check:
	@sh tools/build/deps.sh tidy
	@bash tools/build/tidy.sh format

# Branches of libsmartio/core and libsmartio/wire that the tests take.
coverage:
	@sh tools/build/deps.sh coverage
	@python3 tools/build/coverage.py

# Patches with a mistake each: who finds them. Goes on where it stopped; hours for all of them.
mutants:
	@sh tools/build/deps.sh check
	@python3 tests/mutants/mutants.py run

# Configured anew: what is installed may depend on packages that came since (scdoc: manual pages).
install:
	@sh tools/build/deps.sh demo
	@sh tools/build/configure.sh build/plain
	@ninja -C build/plain
	@meson install --no-rebuild -C build/plain

# Debian packages of the tree as it is, in build/deb.
deb:
	@sh tools/build/deps.sh deb
	@sh tools/build/deb.sh

clean:
	rm -rf build
