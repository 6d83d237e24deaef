#!/bin/bash
# SPDX-License-Identifier: ISC
# Limits on version 2: of all sessions of an identity together, of each command,
# and who is told which of them killed.
# machines: 12 13
# state: serving
. ./lib.bash

hog() { # hog MEGABYTES: has them until the file `over' is there
	# In steps: while the kernel frees what it has killed, who takes all at once is killed, too.
	echo "import os, time; x = [(bytearray(10 << 20), time.sleep(0.02)) for _ in range($1 // 10)]; print('has it', flush=True)
while not os.path.exists('/run/over'): time.sleep(0.1)"
}
conf=/etc/execd/execd.conf
cp $conf good.conf
with() { # with LINES: of the identity alice
	{ cat good.conf; printf '%b' "$1"; } >$conf
	systemctl reload execd
}

has "a root shell's doctor asks the execd that runs" "$(execd doctor 2>&1)" \
	"^ok +a limit on the memory of a command, in the execd that runs here$"

# --- nobody set one -----------------------------------------------------------

is "without a limit 1.2 GiB are there" 1258291200 \
	"$(as alice run python3 -c 'print(len(bytearray(1200 << 20)))' 2>&1)"
is "and 700 threads" 700 "$(as alice run python3 -c '
import threading
e = threading.Event()
t = [threading.Thread(target=e.wait) for _ in range(700)]
[x.start() for x in t]; e.set(); [x.join() for x in t]; print(len(t))' 2>&1)"
is "also in a sandbox" 700 "$(as alice run -s workspace-write -C /home/alice python3 -c '
import threading
e = threading.Event()
t = [threading.Thread(target=e.wait) for _ in range(700)]
[x.start() for x in t]; e.set(); [x.join() for x in t]; print(len(t))' 2>&1)"

# --- of each command ------------------------------------------------------------

with 'command-memory-max = 128M\ncommand-tasks-max = 40\n'
out=$(as alice run python3 -c "$(hog 400)" 2>&1)
is "a command has its own limit: 137" 137 $?
has "and it is told" "$out" "^execd: killed: command-memory-max = 128M of identity alice"
is "what is set is visible inside" 134217728 \
	"$(as alice run -s workspace-write -C /home/alice cat /sys/fs/cgroup/memory.max 2>&1)"
out=$(as alice run bash -c 'for i in $(seq 80); do sleep 2 & done; wait' 2>&1)
has "refused forks are told" "$out" "^execd: limit: command-tasks-max = 40 of identity alice: [0-9]+ forks"

# --- of all sessions together -----------------------------------------------------

with 'memory-max = 512M\n'
rm -f /run/over
as alice run python3 -c "$(hog 300)" >first.out 2>&1 &
first=$!
await 300 grep -q 'has it' first.out
as alice run python3 -c "$(hog 300)" >second.out 2>&1 &
second=$!
await 300 grep -q 'killed' first.out second.out
touch /run/over
wait $first
first_rc=$?
wait $second
second_rc=$?
is "two sessions pass their limit together: one is killed" "0 137" \
	"$(printf '%s\n' $first_rc $second_rc | sort -n | xargs)"
has "and knows by which limit" "$(cat first.out second.out)" \
	"^execd: killed: memory-max = 512M of identity alice"
has "the log names it, too" "$(journal -u execd-sessions -u execd)" \
	"killed: memory-max = 512M of identity alice"
is "another identity has nothing to do with it" 400 \
	"$(as ci run python3 -c 'print(len(bytearray(400 << 20)) >> 20)' 2>&1)"
as alice run python3 -c "$(hog 700)" >alone.out 2>&1
is "one command alone passes it" 137 $?
has "and knows by which" "$(cat alone.out)" "^execd: killed: memory-max = 512M of identity alice"
cp good.conf $conf
systemctl reload execd
is "a reload takes the limit away" 600 \
	"$(as alice run python3 -c 'print(len(bytearray(600 << 20)) >> 20)' 2>&1)"
finish
