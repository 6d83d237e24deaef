#!/bin/bash
# SPDX-License-Identifier: ISC
# state: fresh
# nightly
# What apt does with execd's package: it is installed, upgraded in each state in
# which the units can be, removed and purged. The .deb files are in /root/debs,
# and those of another version in /root/debs-old or, newer, in /root/debs-new.
. ./package.bash

state() { # state UNIT: active or not, enabled or not
	echo "$(systemctl is-active "$1") $(systemctl is-enabled "$1" 2>&1)"
}

clean
before=$(find /etc /run /var/lib /var/log -path /var/log/journal -prune -o -print | grep -i execd)
is "nothing of execd is there before" "" "$before"

out=$(apt_install "$old" 2>&1)
has "apt installs the package" "$out" "Setting up execd "
has "it says once who may use it" "$out" "adduser NAME execd"
is "it runs" "active enabled" "$(state execd.service)"
is "sessions wait for it" "active enabled" "$(state execd-sessions.socket)"
is "the optional socket is left alone" "inactive disabled" "$(state execd.socket)"
runs "who is a member from now on" adduser alice execd
runs "is let in by a reload" execd ctl reload
is "and runs commands as himself" alice "$(su - alice -c 'execctl run id -un' 2>&1)"
has "nobody else does" "$(su - ci -c 'execctl run true' 2>&1)" "for the members of a group"
has "nor does root" "$(env -u EXECD_URL execctl run true 2>&1)" "the client is not known here"
deluser alice execd >/dev/null 2>&1
is "nothing has failed" "" "$(systemctl list-units --failed --no-legend 'execd*')"
runs "the users are there" id _execd _execd-broker
has "the .deb has execd-broker as 0711" "$(dpkg-deb -c "$new"/execd_*.deb)" \
	"^-rwx--x--x root/root .* ./usr/libexec/execd/execd-broker$"
is "the programs may be executed and not read" "root 711" \
	"$(stat -c '%U %a' /usr/sbin/execd /usr/libexec/execd/* | sort -u)"
is "execd-launch(8) is not there" "" "$(find /usr/share/man -name 'execd-launch*')"
is "an ordinary user finds execd and execctl" 0 \
	"$(su - alice -c 'command -v execd && command -v execctl' >/dev/null; echo $?)"
for page in execctl.1 execd.8 execd-ctl.8 execd-runner.8 execd.conf.5 execd-audit.5 \
	execd-protocol.7 execd-fleet.7 execd-operator.7 execd-cookbook.7; do
	runs "there is $page" test -f "/usr/share/man/man${page##*.}/$page.gz"
done
runs "the example is there" test -f /usr/share/doc/execd/execd.conf.example
runs "completions are there" test -f /usr/share/bash-completion/completions/execctl.bash \
	-a -f /usr/share/zsh/site-functions/_execctl -a -f /usr/share/fish/vendor_completions.d/execctl.fish
runs "logrotate takes the file" logrotate -d /etc/logrotate.d/execd
out=$(apt_install "$old" --reinstall 2>&1)
is "it says it once" 0 "$(grep -c 'adduser NAME' <<<"$out")"
is "installed again, it still runs" "active enabled" "$(state execd.service)"
systemctl -q disable --now execd
systemctl stop execd-sessions.socket execd-sessions.service

# An upgrade changes nothing in what is stopped, disabled or masked.
apt_install "$new" >/dev/null 2>&1
is "an upgrade starts nothing" "inactive disabled" "$(state execd.service)"
configure
apt_install "$old" >/dev/null 2>&1
is "nor with a configuration" "inactive disabled" "$(state execd.service)"
systemctl -q enable execd
apt_install "$new" >/dev/null 2>&1
is "enabled and stopped stays so" "inactive enabled" "$(state execd.service)"
systemctl -q disable execd
systemctl -q mask execd
out=$(apt_install "$old" 2>&1)
is "masked stays so, and apt succeeds" "0 inactive masked" "$? $(state execd.service)"
systemctl -q unmask execd

systemctl start execd
is "what runs is the old version" "$(version_of "$old")" "$(running_version)"
is "a command runs" ci "$(as ci run id -un 2>&1)"
out=$(apt_install "$new" 2>&1)
is "disabled and running is upgraded" "0 active disabled" "$? $(state execd.service)"
is "by the new version" "$(version_of "$new")" "$(running_version)"
is "a command still runs" ci "$(as ci run id -un 2>&1)"

# A configuration that is wrong now: the upgrade says so and does not fail.
cp /etc/execd/execd.conf /root/execd.conf
echo "nonsense = 1" >>/etc/execd/execd.conf
out=$(apt_install "$old" 2>&1)
is "an upgrade with a wrong configuration succeeds" 0 $?
has "and says what is wrong" "$out" "does not name version $(version_of "$old")"
cp /root/execd.conf /etc/execd/execd.conf
systemctl reset-failed execd.service 2>/dev/null
systemctl restart execd
is "a command runs with the right one" ci "$(as ci run id -un 2>&1)"

systemctl -q enable execd
mkdir -p /var/log/execd
touch /var/log/execd/audit.jsonl
runs "apt removes the package" apt_ remove execd
is "nothing runs" "" "$(pgrep -a execd)"
is "no socket is left" "" "$(ls -d /run/execd-sessions 2>/dev/null)"
is "no unit is known" "" "$(systemctl list-units --all --no-legend 'execd*' | grep -v 'not-found')"
runs "the configuration stays" test -f /etc/execd/execd.conf
apt_install "$new" >/dev/null 2>&1
is "installed again, it runs" "active enabled" "$(state execd.service)"
apt_ remove execd >/dev/null 2>&1
printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
apt_install "$new" >/dev/null 2>&1
is "policy-rc.d forbids that" "0 inactive enabled" "$? $(state execd.service)"
rm /usr/sbin/policy-rc.d
apt_ remove execd >/dev/null 2>&1
systemctl -q mask execd
apt_install "$new" >/dev/null 2>&1
is "what the operator has masked is not started either" "0 inactive masked" "$? $(state execd.service)"
systemctl -q unmask execd
runs "apt purges the packages" apt_ purge execd execctl
is "nothing is left" "" \
	"$(find /etc /run /usr /var/lib /var/log -path /var/log/journal -prune -o -name '*execd*' -print |
		grep -v '/var/lib/apt/\|/var/log/apt/')"
is "the units are gone" "not-found" "$(systemctl show -P LoadState execd.service)"
runs "the users stay" id _execd _execd-broker
finish
