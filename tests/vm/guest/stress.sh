# SPDX-License-Identifier: BSD-2-Clause
# Everything at once on smartio.ko (tests/port/shim_stress.c), then nothing may be left.
# programs: tests/port/shim_stress
# modules: smartio nvme
# limit: 900
. /lib.sh
load_module smartio.ko
give_drive "$(drive_bdf)"
shim_stress /dev/smartio0 "$((SOAK ? 100 : 15))" "${SEED:-$(tr -d - </proc/sys/kernel/random/uuid | head -c 8 | sed 's/^/0x/')}"
rmmod smartio
