#!/bin/bash
# SPDX-License-Identifier: ISC
# Policies with and without something for Landlock, on the ABI of this kernel.
# machines: 12 13 12-no-landlock
# state: serving
. ./lib.bash

doctor=$(execd doctor --user ci)
has "doctor: a command in a sandbox" "$doctor" "^ok +a command in a sandbox$"
has "doctor: one that may write everywhere" "$doctor" "^ok +a command in a sandbox that may write everywhere"
case $(cat /proc/cmdline) in
*lsm=*) has "doctor: no Landlock, and what to change" "$doctor" "^without +Landlock: .*lsm=" ;;
*) has "doctor: the ABI" "$doctor" "^ok +Landlock, ABI [0-9]" ;;
esac
is "its workspace is its own" written \
	"$(as ci run -s workspace-write -C /home/ci sh -c 'echo written >f; cat f' 2>&1)"
is "nothing else is" 1 \
	"$(as ci run -s workspace-write -C /home/ci sh -c 'touch /var/tmp/x 2>/dev/null && echo 0 || echo 1' 2>&1)"
# With / as its workspace no file is restricted, and nothing is left for Landlock.
is "a workspace that is everything" written \
	"$(as ci run -s workspace-write -C / sh -c 'echo written >/var/tmp/y; cat /var/tmp/y' 2>&1)"
is "and its network is restricted all the same" refused \
	"$(as ci run -s workspace-write -C / bash -c '(echo >/dev/tcp/10.0.2.2/22) 2>/dev/null || echo refused' 2>&1)"
is "a read-only policy" 1 \
	"$(as ci run -s read-only -C /home/ci sh -c 'touch g 2>/dev/null && echo 0 || echo 1' 2>&1)"

# What the operator demands is the kernel's ABI, and not a ruleset for each policy.
printf '[sandbox]\nlandlock-min-abi = 1\n' >>/etc/execd/execd.conf
systemctl restart execd
case $(cat /proc/cmdline) in
*lsm=*) wanted=no ;;
*) wanted=yes ;;
esac
for place in / /home/ci; do
	is "landlock-min-abi = 1, workspace $place" $wanted \
		"$(as ci run -s workspace-write -C $place true >/dev/null 2>&1 && echo yes || echo no)"
done
finish
