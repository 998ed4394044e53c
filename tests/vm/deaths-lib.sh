# SPDX-License-Identifier: BSD-2-Clause
# What deaths.py has its machines run, besides cluster-lib.sh.
. /cluster-lib.sh

# It ends by itself, and says why.
was_told() { # NAME
	until_ok test -s "/tmp/p.$1.end"
	stop_feeder "$1"
	case $(cat "/tmp/p.$1.end") in
	1) cat "/tmp/p.$1.err" ;;
	*) fail "$1 ended with $(cat "/tmp/p.$1.end"): $(cat "/tmp/p.$1.err")" ;;
	esac
}

murder() { # NAME
	kill -9 "$(cat "/tmp/p.$1.pid")" 2>/dev/null || true # it may have ended at this very instant
	until_ok test -s "/tmp/p.$1.end"
	stop_feeder "$1"
}

has_ended_itself() { # NAME
	test -s "/tmp/p.$1.end"
}

kill_manager() {
	kill -9 "$(cat /tmp/manager.pid)" 2>/dev/null || true # one that has just started may have ended
	until_ok test ! -e "/proc/$(cat /tmp/manager.pid)"
}

# Without waiting until it serves.
begin_manager() { # DEVICE
	smartio-nvme manager "$1" >/dev/null 2>/tmp/manager.err &
	echo $! >/tmp/manager.pid
}

# Counts of all that there is are as then. What is freed later (when a peer answers) has a while for it.
audit_as() { # AUDIT, in base 64
	echo "$1" | base64 -d >/tmp/audit.before
	smartio doctor --audit --expect /tmp/audit.before --within 60 >/tmp/audit.now 2>/tmp/audit.err || fail "$(cat /tmp/audit.err)"
}
