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
import os, pathlib, socket, time
refused = tries = 0
while not os.path.exists("over") and os.getppid() != 1:
    tries += 1
    try:
        socket.create_connection(("127.0.0.1", 8766), timeout=300).close()
    except ConnectionRefusedError:
        refused += 1
    if tries == 5:
        pathlib.Path("begun").touch()
    time.sleep(0.01)  # the emulated processors are for what is tested
print(refused, "refused" if tries > 5 else "refused of too few")
PYTHON

connecting() {
	rm -f over begun
	python3 connect.py >connected &
	connecting=$!
	await 300 test -e begun
}
nobody_was_refused() { # nobody_was_refused NAME: since `connecting'
	touch over
	wait $connecting
	is "$1" "0 refused" "$(cat connected)"
}
state() { systemctl show -P ActiveState execd; }
broker() { execd ctl --json status | jq -r '.result.programs["execd-broker"]'; }
listens() { (: </dev/tcp/127.0.0.1/8766) 2>/dev/null; }
refused() { ! listens; }
runs_a_command() { # runs_a_command NAME; a client may have to say that it tries again
	is "$1" ci "$(as ci run id -un 2>run.err)"
}

# --- a reload ---------------------------------------------------------------

rm -f /run/stop-counting
as ci run sh -c 'n=0; until [ -e /run/stop-counting ]; do n=$((n + 1)); echo $n; sleep 0.1; done; echo last $n' \
	>long.out 2>long.err &
long=$!
await 300 test -s long.out
connecting
before=$(broker)
printf '[limits]\ndetached-ttl = 7m\n' >>$conf
runs "a reload succeeds" systemctl reload execd
is "another broker serves when it ends" yes "$([ "$(broker)" != "$before" ] && echo yes || echo no)"
has "the log names what changed" "$(journal -u execd)" "detached-ttl: 7m, was"
out=$(execd ctl reload 2>&1)
is "ctl reload says what changed" "reload: nothing changed" "$out"
echo 'colour = red' >>$conf
out=$(systemctl reload execd 2>&1)
is "a reload with a wrong file fails" 1 "$?"
has "its reason is in the status" "$(report execd)" "unknown key .colour."
out=$(execd ctl reload 2>&1)
is "ctl reload: status 3" 3 $?
has "ctl reload: the line that is wrong" "$out" "execd.conf:[0-9]+: unknown key .colour."
is "and what runs goes on" active "$(state)"
cp good.conf $conf
runs "and a reload with the right file succeeds" systemctl reload execd
nobody_was_refused "nobody was refused meanwhile"
touch /run/stop-counting
wait $long
is "the command was not lost" 0 $?
last=$(sed -n 's/^last //p' long.out)
runs "every line came once" cmp long.out <(seq "$last"; echo "last $last")

# --- what status says ---------------------------------------------------------

status=$(execd ctl --json status)
root=$(systemctl show -P MainPID execd-sessions)
is "status has root's pid" "$root" "$(jq -r .result.programs.execd <<<"$status")"
is "the socket has root's pid in its name" "ctl.$root" "$(ls /run/execd)"

# --- a restart, and a broker that hangs ---------------------------------------

connecting
systemctl restart execd
nobody_was_refused "a restart refuses nobody"
hangs=$(broker)
kill -STOP "$hangs"
gone() { ! kill -0 "$hangs" 2>/dev/null; }
runs "a broker that hangs is killed" await 300 gone
runs_a_command "and a command runs"

# --- a wrong file at the start ------------------------------------------------

systemctl stop execd
echo 'colour = red' >>$conf
systemctl start execd 2>/dev/null
is "a wrong file: failed at once" "failed" "$(state)"
is "it was tried once" 0 "$(systemctl show -P NRestarts execd)"
has "the reason is in systemctl status" "$(report execd)" "execd.conf:[0-9]+: unknown key .colour."
cp good.conf $conf
systemctl reset-failed execd
systemctl start execd
is "mended, it starts" active "$(state)"
is "the lines of an identity are logged once" 1 \
	"$(journal -u execd "_SYSTEMD_INVOCATION_ID=$(systemctl show -P InvocationID execd)" | grep -c 'identity ci.: commands run')"

# --- the end --------------------------------------------------------------------

systemctl stop execd
is "who connects waits" yes "$(listens && echo yes || echo no)"
runs "after ten seconds nobody listens" await 300 refused
systemctl start execd
runs_a_command "and again with a broker"

as ci run sh -c 'echo begin; sleep 1000' >last.out 2>last.err &
last=$!
await 300 grep -q begin last.out
systemctl stop execd execd-sessions
wait $last
# SIGTERM reached the command, or the end of its session came first.
rc=$?
is "both are stopped: the client hears that it is over" yes \
	"$([ $rc -eq 143 ] || [ $rc -eq 254 ] && echo yes || echo "no: $rc")"
is "nothing runs" "" "$(pgrep -a execd)"
finish
