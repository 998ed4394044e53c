# SPDX-License-Identifier: BSD-2-Clause
# The commands of docs/hardware.md, or docs/vfio.md, as they stand there, for this machine's drive: what builds, installs
# and adds users is left out, and who has been started in the background is awaited as a reader would.
# worlds: module vfio
# modules: smartio nvme
# files: docs/hardware.md docs/vfio.md
# not: none
# alone: a drive as large as the guide's
# drive: 1088M
. /lib.sh
bdf=$(drive_bdf)
guide=hardware.md least=12
[ "$WORLD" = module ] || guide=vfio.md least=10
for m in $MODULES; do
	case $m in smartio.ko | vfio*) ;; *) load_module "$m" ;; esac
done
until_ok test -b /dev/nvme0n1
ulimit -l 1048576 # as doctor says, and the system before a login
mkdir /tmp/shim
cp /modules/smartio.ko /tmp/shim 2>/dev/null || [ "$WORLD" = vfio ]
cd /tmp
head -c 16777216 /dev/urandom >FILE
sed -n '/^## Step by step/,/^## What `device add/p' /files/$guide |
	sed -n '/^```sh/,/^```$/p' | grep -v '^```' |
	sed -e 's/ *#.*//' -e "s/0000:05:00\.0/$bdf/" >commands

# `sudo` is root; what a reader does without it, a member of the group does.
run() { # LINE
	case $1 in
	"sudo "*) eval "${1#sudo }" ;;
	*"&") eval "spawn $1" ;;
	"kill %2") kill "$manager" ;;
	*) as_user sh -c "$1" ;;
	esac
}

pkill() { # -x NAME
	killall "$2"
}

modprobe() { # NAME
	load_modules
}

lines=0
while read -r line <&8; do
	case $line in make* | "sudo make"* | "sudo groupadd"* | "sudo usermod"*) continue ;; esac
	echo "\$ $line"
	case $line in
	"smartio doctor") # warnings are what machines differ in
		run "$line" >said || ! grep BAD said || fail "doctor: $(cat said)"
		;;
	*) run "$line" || fail "'$line' of docs/$guide ended with $?" ;;
	esac
	lines=$((lines + 1))
	case $line in
	"sudo smartiod --shim &" | "sudo smartiod --vfio &")
		daemon=$!
		until_ok smartio device list
		;;
	"smartio-nvme manager"*)
		manager=$!
		until_ok smartio-nvme identify "$bdf"
		;;
	"smartio-nvme copy-out"*) cmp FILE BACK || fail "FILE came back changed" ;;
	"kill %2") wait "$manager" || fail "the manager ended with $?" ;;
	"sudo pkill"*) wait "$daemon" || fail "smartiod ended with $?" ;;
	esac
done 8<commands
[ $lines -ge $least ] || fail "only $lines commands of docs/$guide were found"
until_ok test -b /dev/nvme0n1
! grep '^smartio ' /proc/modules || fail "smartio.ko is still loaded"
! pidof smartio-vfio || fail "smartio-vfio did not end"
