#!/bin/bash
# SPDX-License-Identifier: ISC
# The limits of an identity hold for all its sessions together, and those of
# [limits] for all sessions of execd.
# machines: 12 13
# nightly
. ./lib.bash
. ./limits.bash

serve_limits <<'CONF'
[listener local]
address = ws://127.0.0.1:8799

[identity ci]
user = ci
token-sha256 = TOKEN-ci
memory-max = 256M
tasks-max = 60

[identity alice]
user = alice
token-sha256 = TOKEN-alice
CONF

hold="$(touch_mib 160)
import time
time.sleep(600)"

# holds N: whether the session number N has said that it has its memory.
holds() { grep -q touched "/root/limits.out$1"; }
over() { ! kill -0 "$1" 2>/dev/null; }

# start N USER: a session that holds 160 MiB.
start() {
	EXECD_TOKEN=$(cat "/root/limits-$2.token") execctl run --url "$url" -- \
		python3 -c "$hold" >"/root/limits.out$1" 2>"/root/limits.err$1" </dev/null &
	started[$1]=$!
}

start 1 ci
runs "one session has 160 MiB of 256" await 60 holds 1
start 2 ci
# The kernel chooses which of the two is killed.
one_is_over() { over "${started[1]}" || over "${started[2]}"; }
if await 60 one_is_over; then
	ended=1
	over "${started[1]}" || ended=2
	wait "${started[$ended]}"
	is "two sessions of one identity together pass its memory-max" 137 "$?"
else
	not_ok "two sessions of one identity together pass its memory-max" \
		"both go on: $(cat /root/limits.out[12] | xargs)"
fi
start 3 alice
runs "another identity has as much beside it" await 60 holds 3
kill "${started[@]}" 2>/dev/null
wait

forks='for i in $(seq 45); do sleep 60 & done 2>&1; echo all; wait'
EXECD_TOKEN=$(cat /root/limits-ci.token) execctl run --url "$url" -- \
	sh -c "$forks" >/root/limits.out4 2>&1 </dev/null &
first=$!
runs "45 tasks of 60" await 60 grep -qx all /root/limits.out4
has "45 more in another session are too many" \
	"$(timeout 60 env EXECD_TOKEN="$(cat /root/limits-ci.token)" execctl run --url "$url" \
		-- sh -c "${forks%; wait}" 2>&1)" "[Ff]ork|unavailable"
kill $first 2>/dev/null
wait

systemctl stop limits
finish
