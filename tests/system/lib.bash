# SPDX-License-Identifier: ISC
# What the scripts of tests/system share. They run as root in a machine of
# scripts/vm, in the directory /root/system.
set -uo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8
failures=0

ok() { echo "ok $1"; }

not_ok() { # not_ok NAME WHY
	echo "not ok $1: $2"
	failures=$((failures + 1))
}

skip() { echo "skip $1: $2"; }

# is NAME WANTED GOT: both the same text.
is() {
	if [ "$2" = "$3" ]; then ok "$1"; else not_ok "$1" "not '$2' but '$3'"; fi
}

# has NAME TEXT PATTERN: the text has a line that matches the pattern.
has() {
	if grep -qE -e "$3" <<<"$2"; then
		ok "$1"
	else
		not_ok "$1" "no '$3' in '$2'"
	fi
}

# runs NAME COMMAND...: the command ends with 0.
runs() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then ok "$name"; else not_ok "$name" "$out"; fi
}

# await SECONDS COMMAND...: until it succeeds. The time is a bound of patience.
await() {
	local until=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$until" ] || return 1
		sleep 0.2
	done
}

# journal ARGUMENT...: what was logged until now, which may be on its way. report UNIT: so does systemctl status.
journal() { journalctl --sync; journalctl -q -o cat "$@"; }
report() { journalctl --sync; systemctl status "$1" --no-pager; }

# finish: the status of the script.
finish() { [ "$failures" -eq 0 ]; exit; }

# --- what tests/system/serve made ------------------------------------------

export EXECD_URL=ws://127.0.0.1:8766

# as USER COMMAND...: execctl with that identity's token.
as() {
	local user=$1
	shift
	EXECD_TOKEN=$(cat "/root/$user.token") execctl "$@"
}
