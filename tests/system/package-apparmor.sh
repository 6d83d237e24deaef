#!/bin/bash
# SPDX-License-Identifier: ISC
# state: fresh
# machines: 13
# The AppArmor profiles of execd's package. A profile without `userns,' plays
# Ubuntu's rule that an ordinary user may make user namespaces only in a program
# with a profile of its own: Debian's kernel has no such rule.
. ./package.bash

profile=/etc/apparmor.d/execd
loaded() {
	grep -o '^execd[^ ]*' /sys/kernel/security/apparmor/profiles | sort | tr '\n' ' '
}
as_on_ubuntu() { # as_on_ubuntu SCRIPT: as alice
	su - alice -c "export PATH=/usr/sbin:/usr/bin; aa-exec -p as-on-ubuntu -- sh -c '$1'" 2>&1
}

began=@$(date +%s)
clean
apt_install "$new" >/dev/null 2>&1
if [ ! -e /etc/apparmor.d/abi/4.0 ]; then
	runs "where AppArmor knows no abi 4.0, there is no profile" test ! -e "$profile"
	runs "and nothing has failed" test -z "$(systemctl list-units --failed --no-legend)"
	clean
	finish
fi

runs "the parser takes the profiles" apparmor_parser -Q -K "$profile"
is "the package loads them" "execd-broker execd-command execd-frontend execd-sandbox " "$(loaded)"
apparmor_parser -r -K <<'END'
abi <abi/4.0>,
profile as-on-ubuntu flags=(attach_disconnected,mediate_deleted) {
  capability, network, unix, signal, ptrace, mqueue, io_uring, dbus,
  mount, umount, pivot_root, change_profile,
  /{,**} mrwlk,
  /** pix,
}
END
trap 'rm -f /home/alice/*.so /home/alice/nested.conf; printf "profile as-on-ubuntu {}" | apparmor_parser -R 2>/dev/null' EXIT

ordinary='unshare --user --map-current-user true'
label='cat /proc/self/attr/apparmor/current'
run='execctl --url "stdio:execd --listen stdio" run'
has "an ordinary program may make none" "$(as_on_ubuntu "$ordinary")" "Permission denied|Operation not permitted"
is "a sandboxed command runs" "hello 0000000000000000" \
	"$(as_on_ubuntu "$run -s workspace-write -C /home/alice sh -c \"echo hello \\\$(sed -n s/CapEff:.//p /proc/self/status)\" 2>/dev/null")"
out=$(as_on_ubuntu "$run -s workspace-write -C /home/alice $label")
has "it is in execd-command too" "$out" "execd-command"
has "it may make no user namespace" \
	"$(as_on_ubuntu "$run -s workspace-write -C /home/alice $ordinary")" "Permission denied|Operation not permitted"
out=$(as_on_ubuntu "$run $label")
has "a command without a sandbox is what it would be without execd" "$out" "^as-on-ubuntu"
has "it may make no user namespace either" "$(as_on_ubuntu "$run $ordinary")" \
	"Permission denied|Operation not permitted"

# The same with the filter of system calls out of the way: the profile holds.
cat >/home/alice/nested.conf <<'END'
[listener local]
address = unix:/home/alice/execd.sock
allow-unauthenticated = alice

[identity alice]

[sandbox]
allow-nested-userns = yes
END
chown alice: /home/alice/nested.conf
su - alice -c 'PATH=/usr/sbin:$PATH aa-exec -p as-on-ubuntu -- execd -c nested.conf >nested.log 2>&1 & echo $! >nested.pid'
runs "an execd that permits nested user namespaces starts" await 60 test -S /home/alice/execd.sock
nested='execctl --url unix:/home/alice/execd.sock run -s workspace-write -C /home/alice'
is "a command runs in its sandbox" yes "$(as_on_ubuntu "$nested echo yes")"
has "AppArmor alone refuses a nested user namespace" "$(as_on_ubuntu "$nested $ordinary")" "Permission denied"
pkill -u alice -x execd
await 30 test ! -S /home/alice/execd.sock

# What lends itself to nobody.
cp "$(ldconfig -p | sed -n 's/.*libz.so.1 .* => //p' | head -n 1)" /home/alice/mine.so
chmod 644 /home/alice/mine.so
for p in broker frontend; do
	has "execd-$p takes no library of a user's" \
		"$(as_on_ubuntu "LD_PRELOAD=/home/alice/mine.so timeout 20 /usr/libexec/execd/execd-$p --version 3</dev/null")" \
		"mine.so.*cannot be preloaded"
done
has "execd-sandbox gives nobody a user namespace" \
	"$(as_on_ubuntu '/usr/libexec/execd/execd-sandbox --user-namespace 1001:1001; echo $?')" "^2$"

has "doctor says that they are loaded" "$(as_on_ubuntu 'execd doctor')" "^ok .*AppArmor profile of execd"
runs "doctor finds nothing missing" as_on_ubuntu 'execd doctor >/dev/null'

# Without them.
apparmor_parser -R "$profile"
has "without them no sandbox starts" "$(as_on_ubuntu "$run -s workspace-write -C /home/alice true; echo \$?")" "^[1-9]"
out=$(as_on_ubuntu 'execd doctor')
has "and doctor says what to do" "$out" "AppArmor profile of execd.*apparmor_parser -r $profile"
has "and what is missing" "$out" "^MISSING.*user namespace"
apparmor_parser -r "$profile"

# As root all is as without profiles, and the two units run.
configure
systemctl restart execd
is "a sandboxed command of root's execd runs" ci "$(as ci run -s workspace-write -C /home/ci id -un 2>&1)"
is "one without a sandbox is in no profile" unconfined "$(as ci run $label 2>&1)"
is "AppArmor refused nothing that execd needs" "" \
	"$(journalctl -k --since "$began" --no-pager | grep 'apparmor="DENIED"' | grep 'profile="execd-\(broker\|frontend\|sandbox\)"' |
		grep -v 'mine.so\|class="namespace"' | head -n 3)"
apt_ remove execd >/dev/null 2>&1
is "they are removed with the package" "" "$(loaded)"
clean
runs "purge leaves none" test ! -e "$profile" -a ! -e /etc/apparmor.d/local/execd
finish
