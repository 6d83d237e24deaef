#!/bin/bash
# SPDX-License-Identifier: ISC
# What execd doctor says of a machine, against what happens there.
# machines: all
# nightly
# state: installed
. ./lib.bash

# In a place of the same kind as the service has.
doctor=$(systemd-run -q --wait --pipe -p Delegate=yes execd doctor --user ci 2>&1 || true)
echo "$doctor"

# line LAYER: the first word of doctor's line about it: ok, without, MISSING.
line() { sed -nE "s/^(ok|without|MISSING) +$1([:,].*|)\$/\1/p" <<<"$doctor" | head -n 1; }

# agree NAME LAYER HAPPENED: both say the same.
agree() {
	local said
	said=$(line "$2")
	case $said,$3 in
	ok,yes | without,no | MISSING,no) ok "$1: $said, and so it is" ;;
	*) not_ok "$1" "doctor says '$said', but what happened is '$3'" ;;
	esac
}

happens() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }

# The machine's name in the table says what mount and doctor must say there.
case $(cat /proc/cmdline) in
*lsm=*) is "Landlock is not there" without "$(line 'Landlock')" ;;
*max_user_namespaces=0*) is "user namespaces are not there" MISSING "$(line 'user namespace')" ;;
esac

bash ./serve || failures=$((failures + 1))
systemctl stop execd execd-sessions
cat >>/etc/execd/execd.conf <<'CONF'
command-tasks-max = 40
command-memory-max = 128M
CONF
# No limit is set where none can be held: that is refused, and says which.
if ! systemctl start execd; then
	out=$(journal -u execd -n 20)
	for key in tasks memory; do
		has "a limit that cannot be held is refused by its key" "$out" "command-$key-max"
	done
else
	out=$(as alice run sh -c 'for i in $(seq 80); do sleep 5 & done; wait' 2>&1)
	agree "processes" "a limit on the processes of a command" \
		"$(grep -q -i fork <<<"$out" && echo yes || echo no)"
	out=$(as alice run python3 -c 'x = bytearray(400 << 20); print(len(x))' 2>&1)
	echo "$out"
	agree "memory" "a limit on the memory of a command" \
		"$(grep -q 419430400 <<<"$out" && echo no || echo yes)"
fi
agree "a sandbox" "a command in a sandbox" \
	"$(happens as ci run -s workspace-write -C /home/ci true)"
finish
