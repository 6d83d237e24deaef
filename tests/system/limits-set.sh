#!/bin/bash
# SPDX-License-Identifier: ISC
# Limits of control groups version 2: nobody has one that nobody set, each holds
# for a command with a sandbox and without, and a command sees its own.
# machines: 12 13
. ./lib.bash
. ./limits.bash

serve_limits <<'CONF'
[listener local]
address = ws://127.0.0.1:8799

[identity alice]
user = alice
token-sha256 = TOKEN-alice
sandbox-allow-unsandboxed = yes

[identity ci]
user = ci
token-sha256 = TOKEN-ci
sandbox-allow-unsandboxed = yes
memory-max = 300M
tasks-max = 150
cpu-weight = 50
io-weight = 200
command-memory-max = 200M
command-cpu-quota = 150%
CONF

threads="import threading
over = threading.Event()
try:
    for i in range(700): threading.Thread(target=over.wait, daemon=True).start()
    print('started')
except RuntimeError as e: print(e)
over.set()"

for box in plain sandboxed; do
	flags=()
	[ $box = plain ] || flags=(-s workspace-write)
	run() {
		local user=$1
		shift
		status "$user" "${flags[@]}" -C "/home/$user" -- "$@"
	}
	is "$box: 1 GiB without a limit" "touched 0" \
		"$(run alice python3 -c "$(touch_mib 1024)")"
	is "$box: 700 threads without a limit" "started 0" \
		"$(run alice python3 -c "$threads")"
	is "$box: 100 MiB of 200" "touched 0" "$(run ci python3 -c "$(touch_mib 100)")"
	has "$box: 250 MiB of 200 are killed" \
		"$(run ci python3 -c "$(touch_mib 250)" | tail -n 1)" "137$"
	is "$box: 700 threads of 150 are not started" "can't start new thread 0" \
		"$(run ci python3 -c "$threads")"
	if [ $box = plain ]; then
		own='/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)'
	else
		own=/sys/fs/cgroup
	fi
	is "$box: a command sees the smallest limits above it" \
		"$((200 << 20)) 150 150000 100000 0" \
		"$(run ci sh -c "cd $own && cat memory.max pids.max cpu.max | xargs")"
	is "$box: its swap is limited with its memory" "0 0" \
		"$(run ci sh -c "cd $own && cat memory.swap.max")"
	everybody=$(execd -T -c /root/limits.conf | sed -n '/^\[limits\]/,$s/^memory-max = \([0-9]*\)M$/\1/p')
	is "$box: who has none sees that of all sessions" \
		"$((everybody << 20)) max 0" \
		"$(run alice sh -c "cd $own && cat memory.max memory.swap.max | xargs")"
done

systemctl stop limits
is "nothing of the groups is left" "" \
	"$(find /sys/fs/cgroup/system.slice/limits.service -mindepth 1 -type d 2>/dev/null)"
finish
