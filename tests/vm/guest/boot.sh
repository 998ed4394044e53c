# SPDX-License-Identifier: BSD-2-Clause
# The machine itself: drive, IOMMU as asked for, a module that loads, the kernel's own driver.
# modules: nvme
. /lib.sh
bdf=$(drive_bdf)
echo "drive at $bdf"
check_machine
load_modules
drive=$(host sha256 0 1048576)
until_ok test -b /dev/nvme0n1
[ "$(dd if=/dev/nvme0n1 bs=1M count=1 2>/dev/null | sha256sum | cut -d' ' -f1)" = "$drive" ] ||
	fail "nvme.ko reads something else than what is in the drive's file"
