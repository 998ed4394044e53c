# SPDX-License-Identifier: BSD-2-Clause
# What kept.py has its machine run, besides installed-lib.sh.

# As a machine comes up whose kernel has its modules where they belong.
start_alone() {
	depmod -a 2>/dev/null
	systemctl restart systemd-udevd
	udevadm trigger --action=add
	udevadm settle
	modprobe nvme
	until_ok test -b /dev/nvme0n1
}

# Another process than @pid, which answers.
comes_back() { # UNIT PID
	serves "$1" && [ "$(main_pid "$1")" != "$2" ]
}

answers() {
	smartio device list >/dev/null 2>&1
}

# The service's process ends, by @how; the next ones have all that there was.
end_one() { # UNIT kill|restart
	pid=$(main_pid "$1")
	if [ "$2" = kill ]; then
		kill -9 "$pid"
	else
		systemctl restart "$1"
	fi
	until_ok comes_back "$1" "$pid"
	until_ok answers
}
