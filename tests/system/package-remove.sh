#!/bin/bash
# SPDX-License-Identifier: ISC
# Removing the packages of an execd that serves: nothing runs on, and a purge
# leaves nothing.
# state: serving
. ./package.bash

as ci run sh -c 'echo begin; sleep 1000' >last.out 2>&1 &
client=$!
await 60 grep -q begin last.out
runs "apt removes the packages" apt_ remove execd execctl
wait $client
is "nothing runs" "" "$(pgrep -a execd)"
is "the units are gone" "not-found not-found" \
	"$(systemctl show -P LoadState execd.service execd-sessions.service | xargs)"
is "nothing listens" no "$( (: </dev/tcp/127.0.0.1/8766) 2>/dev/null && echo yes || echo no)"
is "the configuration stays" yes "$(test -f /etc/execd/execd.conf && echo yes || echo no)"
runs "apt purges them" apt_ purge execd execctl
is "nothing is left" "" "$(find /etc /run /usr /var/lib /var/log \
	\( -path /var/log/journal -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune \
	-o -name '*execd*' -print)"
is "nothing failed" 0 "$(systemctl list-units --failed --no-legend | wc -l)"
finish
