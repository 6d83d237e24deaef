#!/bin/bash
# SPDX-License-Identifier: ISC
# state: serving
# An upgrade by apt under 50 sessions, or 10 in the gate: none of them ends, and no byte is lost.
# At night it comes from the last release (tests/last-release).
. ./package.bash

# The gate has not the time for all of them, under emulation.
[ "$NIGHTLY" = yes ] && SESSIONS=50 || SESSIONS=10

systemctl stop execd execd-sessions 2>/dev/null # and the sessions of serve
if [ -d /root/debs-before ]; then
	old=/root/debs-before new=/root/debs
	runs "the last release is there" apt_install "$old"
	systemctl stop execd execd-sessions 2>/dev/null
fi
systemctl start execd
is "what runs is the old version" "$(version_of "$old")" "$(running_version)"
root_pid=$(systemctl show -P MainPID execd-sessions.service)
broker_pid=$(systemctl show -P MainPID execd.service)

# Each command counts until it is told to end; its input is told back at once.
mkdir -p /root/out
rm -f /root/out/* /run/stop-counting
session() { # session NUMBER
	as ci run sh -c 'n=0; while [ ! -e /run/stop-counting ]; do n=$((n + 1)); echo $n; sleep 2; done; echo last $n' \
		>"/root/out/$1" 2>"/root/out/$1.err"
	echo $? >"/root/out/$1.rc"
}
counting() { # counting N: so many count
	[ "$(find /root/out -regex '.*/[0-9]+' -size +0 | wc -l)" -eq "$1" ]
}
for n in $(seq $SESSIONS); do
	session "$n" &
	# An emulated processor starts few in the time that a client has for it.
	[ $((n % 5)) -ne 0 ] || await 60 counting "$n"
done
runs "$SESSIONS sessions run" counting $SESSIONS
lines() { cat /root/out/? /root/out/?? | wc -l; }

out=$(apt_install "$new" 2>&1)
is "apt upgrades" 0 $?
is "it has nothing to say" "" "$(grep '^execd: ' <<<"$out")"
is "the process of execd-sessions is the same" "$root_pid" \
	"$(systemctl show -P MainPID execd-sessions.service)"
is "it executes what is installed" "$(stat -Lc %i "$(command -v execd)")" \
	"$(stat -Lc %i "/proc/$root_pid/exe")"
runs "the broker is another one" test "$broker_pid" != "$(systemctl show -P MainPID execd.service)"
is "execd ctl status names the new version" "$(version_of "$new")" "$(running_version)"
then=$(lines)
more() { [ "$(lines)" -gt $((then + 3 * SESSIONS)) ]; }
runs "all go on" await 300 more
is "no session ended" $SESSIONS "$(execd ctl --json list | jq '(.result // .).sessions | length')"
touch /run/stop-counting
wait
good=0
for n in $(seq $SESSIONS); do
	last=$(sed -n 's/^last //p' "/root/out/$n")
	if [ "$(cat "/root/out/$n.rc")" = 0 ] && [ -n "$last" ] &&
		cmp -s "/root/out/$n" <(seq "$last"; echo "last $last"); then
		good=$((good + 1))
	else
		echo "# session $n: status $(cat "/root/out/$n.rc"): $(tail -n 2 "/root/out/$n.err")"
	fi
done
is "of $SESSIONS sessions none lost a byte" $SESSIONS $good
is "a new one runs" ci "$(as ci run id -un 2>&1)"
finish
