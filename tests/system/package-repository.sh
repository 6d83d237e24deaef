#!/bin/bash
# SPDX-License-Identifier: ISC
# state: fresh
# nightly
# What a user does with the repository of a release (scripts/apt-repository): one
# line for apt, then install and upgrade by name.
. ./package.bash

clean
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
list=/etc/apt/sources.list.d/execd.list
mv /root/apt /srv/apt # where apt's own user can read it
echo "deb [trusted=yes] file:/srv/apt $suite main" >"$list"
# Of the other lines none leads anywhere: the machine has no network.
runs "apt reads the repository" apt-get -q update -o Dir::Etc::sourcelist="$list" \
	-o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0
old=$(version_of "$old") new=$(version_of "$new")
has "it offers the newer version" "$(apt-cache policy execd)" "Candidate: $new"
runs "apt installs by name and version" apt-get -q -y install "execd=$old" "execctl=$old"
is "it runs" "active enabled" "$(systemctl is-active execd) $(systemctl is-enabled execd)"
is "in that version" "$old" "$(running_version)"
runs "apt upgrades" apt-get -q -y --only-upgrade install execd execctl
is "to the newer version" "$new" "$(running_version)"
apt_ purge execd execctl >/dev/null 2>&1
runs "apt installs what it is told alone" apt-get -q -y install execd
runs "and the client, which it recommends" command -v execctl
runs "the library is there, too" apt-get -q -y install libexecd-client1
has "and the linker finds it" "$(ldconfig -p)" "libexecd-client.so.1"
runs "all of it is removed" apt_ purge execd execctl libexecd-client1
rm "$list"
finish
