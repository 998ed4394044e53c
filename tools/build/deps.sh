#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Looks for what a target needs; on Debian, as root, apt-get installs what is missing, without questions.
# Usage: deps.sh demo|check|tidy|coverage|deb
# Else it prints what would install it. It exits with 1 if something is missing without which the target
# cannot be made; whether that is so is seen by the tools and libraries themselves, whoever installed them.
set -eu

# who  what must be there              Debian            Fedora             Arch          openSUSE
# cmd: a command; pc: a library by its pkg-config name; h: a header; py: a module of python3; deb: the
# package itself (on other systems nothing looks for it).
table='
demo   cmd:gcc                         gcc               gcc                gcc           gcc
demo   cmd:g++                         g++               gcc-c++            gcc           gcc-c++
demo   h:linux/pci_regs.h              libc6-dev         kernel-headers     linux-api-headers linux-glibc-devel
demo   cmd:make                        make              make               make          make
demo   cmd:pkg-config                  pkg-config        pkgconf            pkgconf       pkgconf-pkg-config
demo   cmd:meson                       meson             meson              meson         meson
demo   cmd:ninja                       ninja-build       ninja-build        ninja         ninja
demo   cmd:python3                     python3           python3            python        python3
demo   pc:yaml-0.1                     libyaml-dev       libyaml-devel      libyaml       libyaml-devel
demo   pc:libsystemd                   libsystemd-dev    systemd-devel      systemd-libs  systemd-devel
demo   pc:json-c                       libjson-c-dev     json-c-devel       json-c        libjson-c-devel
demo   pc:libpci                       libpci-dev        pciutils-devel     pciutils      pciutils-devel
demo   pc:gnutls                      libgnutls28-dev   gnutls-devel       gnutls             libgnutls-devel
check  pc:ncursesw                     libncurses-dev    ncurses-devel     ncurses            ncurses-devel
check  pc:libmicrohttpd                libmicrohttpd-dev libmicrohttpd-devel libmicrohttpd   libmicrohttpd-devel
demo   h:uthash.h                      uthash-dev        uthash-devel       uthash        uthash-devel
demo   h:nvme/types.h                  libnvme-dev       libnvme-devel      libnvme       libnvme-devel
check  pc:cmocka                       libcmocka-dev     libcmocka-devel    cmocka        libcmocka-devel
check  cmd:clang                       clang             clang              clang         clang
check  cmd:clang-format                clang-format      clang-tools-extra  clang         clang
check  cmd:valgrind                    valgrind          valgrind           valgrind      valgrind
check  cmd:strace                      strace            strace             strace        strace
check  cmd:scdoc                       scdoc             scdoc              scdoc         scdoc
check  h:sys/sdt.h                     systemtap-sdt-dev systemtap-sdt-devel -           systemtap-sdt-devel
check  pc:liburing                     liburing-dev      liburing-devel     liburing      liburing-devel
check  h:nbdkit-plugin.h               nbdkit-plugin-dev nbdkit-devel       nbdkit        nbdkit-devel
check  cmd:nbdkit                      nbdkit            nbdkit-server      nbdkit        nbdkit-server
check  cmd:nbdcopy                     libnbd-bin        libnbd             libnbd        libnbd
check  cmd:nbdsh                       python3-libnbd    python3-libnbd     libnbd        python3-libnbd
check  cmd:qemu-io                     qemu-utils        qemu-img           qemu-img      qemu-img
check  cmd:mke2fs                      e2fsprogs         e2fsprogs          e2fsprogs     e2fsprogs
check  cmd:fio                         fio               fio                fio           fio
check  cmd:gnuplot                     gnuplot-nox       gnuplot            gnuplot       gnuplot
check  cmd:git                         git               git                git           git
check  py:jsonschema                  python3-jsonschema python3-jsonschema python-jsonschema python3-jsonschema
check  py:yaml         python3-yaml      python3-pyyaml     python-yaml   python3-PyYAML
tidy   cmd:clang-tidy                  clang-tidy        clang-tools-extra  clang         clang-tools
coverage cmd:gcovr                     gcovr             gcovr              gcovr         gcovr
web    cmd:chromium                    chromium          chromium           chromium      chromium
vm     cmd:qemu-system-x86_64          qemu-system-x86   qemu-system-x86    qemu-system-x86 qemu-x86
vm     deb                             busybox-static    -                  -             -
vm     cmd:mmdebstrap                  mmdebstrap        mmdebstrap         -             -
vm     cmd:nvme                        nvme-cli          nvme-cli           nvme-cli      nvme-cli
vm     cmd:nbd-client                  nbd-client        nbd                nbd           nbd
vm     cmd:dmsetup                     dmsetup           device-mapper      device-mapper device-mapper
vm     cmd:iperf3                      iperf3            iperf3             iperf3        iperf
vm     cmd:bc                          bc                bc                 bc            bc
vm     cmd:bison                       bison             bison              bison         bison
vm     cmd:flex                        flex              flex               flex          flex
vm     h:libelf.h                      libelf-dev        elfutils-libelf-devel libelf     libelf-devel
vm     cmd:xz                          xz-utils          xz                 xz            xz
vm     cmd:perl                        perl              perl               perl          perl
vm     cmd:sparse                      sparse            sparse             sparse        sparse
deb    cmd:dh                          debhelper         -                  -             -
deb    cmd:dh_dkms                     dh-dkms           -                  -             -
deb    cmd:dkms                        dkms              -                  -             -
deb    cmd:lintian                     lintian           -                  -             -'

case ${1-} in
demo) want=demo optional= ;;
check) want='demo check' optional='vm deb web' ;; # without them their tests are skipped, and say so
coverage) want='demo check coverage' optional= ;;
tidy) want='demo check tidy' optional= ;;
deb) want='demo check deb' optional= ;;
*)
	echo "usage: deps.sh demo|check|tidy|coverage|deb" >&2
	exit 2
	;;
esac

# Which column is this system's: 1 Debian, 2 Fedora, 3 Arch, 4 openSUSE; 0: none of them.
column() {
	for id in $(. "${SMARTIO_OS_RELEASE:-/etc/os-release}" 2>/dev/null && echo "${ID-} ${ID_LIKE-}"); do
		case $id in
		debian | ubuntu) echo 1 && return ;;
		fedora | rhel | centos) echo 2 && return ;;
		arch) echo 3 && return ;;
		suse | opensuse*) echo 4 && return ;;
		esac
	done
	echo 0
}

installer() { # COLUMN
	set -- "$1" 'apt-get install' 'dnf install' 'pacman -S --needed' 'zypper install'
	shift "$1"
	echo "sudo $1"
}

there() { # WHAT DEBIAN-PACKAGE
	case $1 in
	cmd:*) command -v "${1#cmd:}" >/dev/null || [ -x "/usr/sbin/${1#cmd:}" ] ;;
	pc:*) pkg-config --exists "${1#pc:}" 2>/dev/null ;;
	h:*) echo "#include <${1#h:}>" | gcc -E -xc - >/dev/null 2>&1 ;;
	py:*) python3 -c "import ${1#py:}" 2>/dev/null ;;
	deb)
		command -v dpkg-query >/dev/null || return 0
		[ "$(dpkg-query -W -f='${db:Status-Status}' "$2" 2>/dev/null || :)" = installed ]
		;;
	esac
}

missing() { # COLUMN GROUP...: packages of what is not there, in this system's words
	column=$1
	shift
	for group; do
		echo "$table" | while read -r g what deb fedora arch suse; do
			[ "$g" = "$group" ] && ! there "$what" "$deb" || continue
			case $column in
			1) echo "$deb" ;;
			2) echo "$fedora" ;;
			3) echo "$arch" ;;
			4) echo "$suse" ;;
			*) echo "$what" ;;
			esac
		done
	done | grep -vx -e - | awk '!seen[$0]++' | tr '\n' ' ' | sed 's/ $//'
}

c=$(column)
missing=$(missing "$c" $want)
extra=$(missing "$c" $optional)
[ -n "$missing$extra" ] || exit 0

if [ "$c" != 1 ] || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
	[ -z "$extra" ] || echo "for tests in virtual machines and in a browser: $([ "$c" = 0 ] && echo install what has || installer "$c") $extra" >&2
	[ -n "$missing" ] || exit 0
	if [ "$c" = 0 ]; then
		echo "install what has these (cmd: commands, pc: pkg-config files, h: headers): $missing" >&2
	else
		echo "$(installer "$c") $missing"
	fi
	exit 1
fi

echo "installing: $missing${missing:+${extra:+ }}$extra"
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { # PACKAGE...
	apt-get install -q -y --no-install-recommends "$@" >>"$log" 2>&1
}
apt-get update -q >"$log" 2>&1 || :
if [ -n "$missing" ] && ! install $missing; then
	cat "$log" >&2
	echo "deps.sh: apt-get could not install: $missing" >&2
	exit 1
fi
if [ -n "$extra" ] && ! install $extra; then
	tail -n 5 "$log" >&2
	echo "deps.sh: no tests in virtual machines, or none in a browser: apt-get could not install: $extra" >&2
fi
