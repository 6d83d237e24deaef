#!/bin/bash
# SPDX-License-Identifier: ISC
# The units in a start as the boot has it: one transaction that starts all that
# the default target wants. A wrong configuration, and sessions that do not start.
# machines: 12 13
# state: serving
# nightly
. ./lib.bash
conf=/etc/execd/execd.conf
cp $conf good.conf

state() { systemctl show -P ActiveState execd; }
settled() { state | grep -qx 'active\|failed'; }

# boot: nothing of execd runs, and what a boot starts is started.
boot() {
	systemctl stop execd.service execd-sessions.socket execd-sessions.service
	systemctl reset-failed 'execd*' 2>/dev/null
	systemctl isolate default.target
	await 120 settled
}

boot
is "a boot starts it, and a command runs" ci "$(as ci run id -un 2>/dev/null)"

echo 'colour = red' >>$conf
boot
is "a wrong file at boot: failed at once" "failed 0" "$(state) $(systemctl show -P NRestarts execd)"
has "the reason is in systemctl status" "$(report execd)" "execd.conf:[0-9]+: unknown key .colour."
cp good.conf $conf

# The sessions alone: systemd tries them so often, and gives up.
mkdir -p /run/systemd/system/execd-sessions.service.d
printf '[Unit]\nStartLimitIntervalSec=1h\nStartLimitBurst=2\n[Service]\nExecStart=\nExecStart=/bin/false\n' \
	>/run/systemd/system/execd-sessions.service.d/fails.conf
systemctl daemon-reload
boot
is "sessions that do not start: failed at once" "failed 0" "$(state) $(systemctl show -P NRestarts execd)"
has "whose fault it is is in systemctl status" "$(report execd)" "execd-sessions.service does not start"
has "and there is the reason" "$(report execd-sessions)" "ExecStart=/bin/false .code=exited, status=1"
rm -r /run/systemd/system/execd-sessions.service.d
systemctl daemon-reload
boot
is "mended, a boot starts it" ci "$(as ci run id -un 2>/dev/null)"
finish
