#!/bin/bash
# SPDX-License-Identifier: ISC
# The two units under systemd: wrong configurations, reloads, restarts, a broker
# that hangs, and the end.
# machines: 12 13
# state: serving
. ./lib.bash
conf=/etc/execd/execd.conf
cp $conf good.conf

# Connects again and again until the file `over' is there; prints who was refused.
cat >connect.py <<'PYTHON'
import os, socket
refused = tries = 0
while not os.path.exists("over"):
    tries += 1
    try:
        socket.create_connection(("127.0.0.1", 8766), timeout=60).close()
    except ConnectionRefusedError:
        refused += 1
print(refused, "refused" if tries > 5 else "refused of too few")
PYTHON

connecting() { rm -f over; python3 connect.py >connected & }
connected() { touch over; wait; cat connected; }
state() { systemctl show -P ActiveState execd; }
listens() { (: </dev/tcp/127.0.0.1/8766) 2>/dev/null; }
refused() { ! listens; }

# --- a reload ---------------------------------------------------------------

as ci run sh -c 'echo begin; for i in $(seq 200); do echo $i; sleep 0.05; done; echo end' >long.out 2>long.err &
long=$!
await 60 grep -q begin long.out
connecting
sleep 1
before=$(pgrep -n -x execd-broker)
printf '[limits]\ndetached-ttl = 7m\n' >>$conf
runs "a reload succeeds" systemctl reload execd
is "another broker serves when it ends" yes "$([ "$(pgrep -n -x execd-broker)" != "$before" ] && echo yes || echo no)"
has "the log names what changed" "$(journalctl -q -u execd -o cat)" "detached-ttl: 7m, was"
out=$(execd ctl reload 2>&1)
is "ctl reload says what changed" "reload: nothing changed" "$out"
echo 'colour = red' >>$conf
out=$(systemctl reload execd 2>&1)
is "a reload with a wrong file fails" 1 "$?"
has "its reason is in the status" "$(systemctl status execd --no-pager)" "unknown key .colour."
out=$(execd ctl reload 2>&1)
is "ctl reload: status 3" 3 $?
has "ctl reload: the line that is wrong" "$out" "execd.conf:[0-9]+: unknown key .colour."
is "and what runs goes on" active "$(state)"
cp good.conf $conf
systemctl reload execd
connected=$(connected)
is "nobody was refused meanwhile" "0 refused" "$connected"
wait $long
is "the command was not lost" "end" "$(tail -n 1 long.out)"
is "every line came once" 202 "$(wc -l <long.out)"

# --- what status says ---------------------------------------------------------

status=$(execd ctl --json status)
root=$(systemctl show -P MainPID execd-sessions)
is "status has root's pid" "$root" "$(jq -r .result.programs.execd <<<"$status")"
is "the socket has root's pid in its name" "ctl.$root" "$(ls /run/execd)"

# --- a restart, and a broker that hangs ---------------------------------------

connecting
sleep 1
systemctl restart execd
is "a restart refuses nobody" "0 refused" "$(connected)"
broker=$(pgrep -n -x execd-broker)
kill -STOP "$broker"
gone() { ! kill -0 "$broker" 2>/dev/null; }
SECONDS=0
await 60 gone
is "a broker that hangs is killed" yes "$(gone && echo yes || echo no)"
is "and a command runs" ci "$(as ci run id -un 2>&1)"

# --- a wrong file at the start ------------------------------------------------

systemctl stop execd
echo 'colour = red' >>$conf
systemctl start execd 2>/dev/null
is "a wrong file: failed at once" "failed" "$(state)"
is "it was tried once" 0 "$(systemctl show -P NRestarts execd)"
has "the reason is in systemctl status" "$(systemctl status execd --no-pager)" "execd.conf:[0-9]+: unknown key .colour."
cp good.conf $conf
systemctl reset-failed execd
systemctl start execd
is "mended, it starts" active "$(state)"
is "the lines of an identity are logged once" 1 \
	"$(journalctl -q -u execd -o cat "_SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID execd)" | grep -c 'identity ci.: commands run')"

# --- the end --------------------------------------------------------------------

systemctl stop execd
is "who connects waits" yes "$(listens && echo yes || echo no)"
await 30 refused
is "after ten seconds nobody listens" yes "$(refused && echo yes || echo no)"
systemctl start execd
is "and again with a broker" ci "$(as ci run id -un 2>&1)"

as ci run sh -c 'echo begin; sleep 1000' >last.out 2>last.err &
last=$!
await 60 grep -q begin last.out
SECONDS=0
systemctl stop execd execd-sessions
wait $last
# SIGTERM reached the command, or the end of its session came first.
rc=$?
is "both are stopped: the client hears that it is over" yes \
	"$([ $rc -eq 143 ] || [ $rc -eq 254 ] && echo yes || echo "no: $rc")"
is "nothing runs" "" "$(pgrep -a execd)"
finish
