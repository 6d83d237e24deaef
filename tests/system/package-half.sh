#!/bin/bash
# SPDX-License-Identifier: ISC
# state: fresh
# nightly
# seconds: 3600
# An upgrade by dpkg that is cut off, in each half: while it unpacks, between
# unpacking and configuring, and in the middle of postinst. A session goes on, what
# is asked says what is there, and apt or dpkg mends it.
. ./package.bash

status() { dpkg-query -W -f '${db:Status-Status}' execd; }
doctor() { execd doctor 2>&1; }
counts() { # counts WHEN: the session does, and another one begins
	local before
	before=$(wc -l </root/out)
	more() { [ "$(wc -l </root/out)" -gt "$before" ]; }
	runs "$1: the session goes on" await 60 more
	is "$1: another one runs" ci "$(as ci run id -un 2>&1)"
}
other="is of .*, and execd-broker of "
older="^without  version .* in the execd that runs here"

clean
apt_install "$old" >/dev/null 2>&1
configure
systemctl restart execd
rm -f /root/out /run/stop-counting
as ci run sh -c 'n=0; while [ ! -e /run/stop-counting ]; do n=$((n + 1)); echo $n; sleep 1; done; echo last $n' \
	>/root/out 2>/root/out.err &
client=$!
await 60 test -s /root/out
is "it begins with the old version" "$(version_of "$old")" "$(running_version)"
has "doctor: one version" "$(doctor)" "^ok       the same version of all programs, $(version_of "$old")$"

# --- dpkg is killed while it unpacks: programs of two builds ------------------------

# Each file is unpacked beside its place, and then gets its name: one after the other.
strace -f -qq -o /dev/null -P /usr/libexec/execd/execd-keys.dpkg-new -e trace=rename,renameat,renameat2 \
	-e inject=rename,renameat,renameat2:signal=KILL \
	dpkg --unpack "$new"/execd_*.deb >/dev/null 2>&1
is "killed while unpacking" half-installed "$(status)"
has "unpacking: doctor names programs" "$(doctor)" "^without  the same version of all programs: /usr/.* $other"
is "unpacking: the old version runs" "$(version_of "$old")" "$(running_version)"
counts unpacking
systemctl restart execd 2>/dev/null # whose file has changed, too
counts "unpacking, and another broker"
# What apt has a source of.
mkdir -p /root/repository
cp "$new"/*.deb /root/repository
(cd /root/repository && for f in *.deb; do
	dpkg-deb -f "$f"
	printf 'Filename: ./%s\nSize: %s\nSHA256: %s\n\n' "$f" "$(stat -c %s "$f")" "$(sha256sum "$f" | cut -d' ' -f1)"
done >Packages)
mv /etc/apt/sources.list /root/sources.list
echo 'deb [trusted=yes] file:/root/repository ./' >/etc/apt/sources.list
apt-get -q update >/dev/null 2>&1
has "apt says what comes first" "$(apt-get -q -y -f install 2>&1)" "dpkg --configure -a"
dpkg --configure -a >/dev/null 2>&1
runs "apt-get -f install mends it" apt-get -q -y -f install
is "unpacking: mended" "installed $(version_of "$new")" "$(status) $(running_version)"
has "unpacking: doctor, mended" "$(doctor)" "^ok       the same version of all programs, $(version_of "$new")$"
counts "unpacking, mended"

# --- it ends between unpacking and configuring ---------------------------------------

dpkg --unpack "$old"/execd_*.deb >/dev/null 2>&1
is "not configured" unpacked "$(status)"
is "unpacked: the version before runs" "$(version_of "$new")" "$(running_version)"
out=$(doctor)
has "unpacked: doctor says that another one runs" "$out" "$older"
has "unpacked: doctor: one version of all files" "$out" "^ok       the same version of all programs, $(version_of "$old")$"
counts unpacked
runs "dpkg --configure -a mends it" dpkg --configure -a
is "unpacked: mended" "installed $(version_of "$old")" "$(status) $(running_version)"
is "unpacked: doctor, mended" "" "$(doctor | grep -E "$older")"
counts "unpacked, mended"

# --- postinst is killed in the middle ------------------------------------------------

# deb-systemd-invoke asks it before it starts or reloads something.
mkfifo /run/held
printf '#!/bin/sh\necho $$ >/run/holds\nread x </run/held\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
setsid dpkg -i "$new"/execd_*.deb >/root/dpkg.out 2>&1 &
dpkg=$!
runs "postinst asks" await 600 test -s /run/holds
kill -KILL -- -"$(ps -o pgid= "$(cat /run/holds)" | tr -d ' ')"
wait $dpkg
is "killed while configuring" half-configured "$(status)"
rm -f /usr/sbin/policy-rc.d /run/held /run/holds
is "half-configured: the version before runs" "$(version_of "$old")" "$(running_version)"
has "half-configured: doctor says that another one runs" "$(doctor)" "$older"
counts half-configured
runs "dpkg --configure -a mends it, too" dpkg --configure -a
is "half-configured: mended" "installed $(version_of "$new")" "$(status) $(running_version)"
is "half-configured: doctor, mended" "" "$(doctor | grep -E "$older|$other")"
counts "half-configured, mended"

# --- the whole time -------------------------------------------------------------------

touch /run/stop-counting
wait $client
is "the session ends well" 0 $?
last=$(sed -n 's/^last //p' /root/out)
runs "and lost no byte" cmp /root/out <(seq "$last"; echo "last $last")
mv /root/sources.list /etc/apt/sources.list
finish
