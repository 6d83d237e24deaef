#!/bin/bash
# SPDX-License-Identifier: ISC
# Control groups version 2: what execd hands down for each set of controllers,
# alone in its group and beside others, and after an execd that was killed.
# machines: 12 13
. ./lib.bash

top=/sys/fs/cgroup/test.groups
log=/root/groups.log

# place CONTROLLER...: an empty group that has just these.
place() {
	local c words=()
	find $top -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null
	rmdir $top 2>/dev/null
	mkdir -p $top
	for c in "$@"; do words+=("+$c"); done
	echo "${words[*]}" >$top/cgroup.subtree_control
	mkdir $top/here
}

# begin: starts execd in that group; $pid is its own, $url where it listens.
begin() {
	(
		echo "$BASHPID" >$top/here/cgroup.procs
		exec execd --listen ws://127.0.0.1:0 --user alice \
			--allow-unauthenticated
	) >/root/groups.out 2>$log </dev/null &
	pid=$!
	await 60 grep -q '^ws://' /root/groups.out
	url=$(head -n 1 /root/groups.out)
}

end() {
	kill "$1" "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
}

command_in_it() { execctl run --url "$url" -- "$@" 2>&1; }

for n in 0 1 2 3 4 5 6 7; do
	set --
	[ $((n & 1)) -eq 0 ] || set -- "$@" pids
	[ $((n & 2)) -eq 0 ] || set -- "$@" memory
	[ $((n & 4)) -eq 0 ] || set -- "$@" cpu
	name="{$*}"
	place "$@"
	begin
	is "$name: a session opens" hello "$(command_in_it echo hello)"
	is "$name: the group stays a domain" domain "$(cat $top/here/cgroup.type)"
	handed=$(tr ' ' '\n' <"$top/here/execd/cgroup.subtree_control" | sort | xargs)
	is "$name: all that there is is handed down" "$(printf '%s\n' "$@" | sort | xargs)" "$handed"
	for c in pids memory cpu; do
		[[ " $* " == *" $c "* ]] ||
			has "$name: the log names what is missing" "$(cat $log)" "without.* $c"
	done
	end -TERM
	is "$name: nothing is left" "" "$(find $top/here -mindepth 1 -type d)"

	# Another's process: nothing is changed, and a session opens all the same.
	sleep 1000 &
	other=$!
	echo $other >$top/here/cgroup.procs
	begin
	is "$name, beside another: a session opens" hello "$(command_in_it echo hello)"
	is "$name, beside another: nothing is changed" "domain" \
		"$(cat $top/here/cgroup.type $top/here/cgroup.subtree_control | xargs)"
	has "$name, beside another: the log says who" "$(cat $log)" "process $other is in it"
	end -TERM
	kill $other
	wait $other 2>/dev/null
done

# What an execd of before left: a threaded group with groups in it.
place pids memory cpu
mkdir -p $top/here/execd/left
sleep 1000 &
other=$!
echo $other >$top/here/cgroup.procs
echo +pids >$top/here/cgroup.subtree_control
is "the group is threaded" "domain threaded" "$(cat $top/here/cgroup.type)"
kill $other
wait $other 2>/dev/null
begin
is "after a threaded group: a session opens" hello "$(command_in_it echo hello)"
is "after a threaded group: it is a domain again" domain "$(cat $top/here/cgroup.type)"
is "after a threaded group: what was left is removed" "" "$(find $top/here -name left)"

end -TERM

# kill -9 leaves groups; systemd starts the next execd in the same place.
export_url=ws://127.0.0.1:18766
systemd-run -q --unit=again -p Delegate=yes -p Restart=always -p RestartSec=100ms \
	execd --listen $export_url --user alice --allow-unauthenticated
url=$export_url
answers() { command_in_it true; }
is_new() { answers && [ "$(systemctl show -P MainPID again)" != "$before" ]; }
await 60 answers
before=$(systemctl show -P MainPID again)
kill -KILL "$before"
await 60 is_new
is "after kill -9: a session opens" hello "$(command_in_it echo hello)"
left=$(ls -d /sys/fs/cgroup/system.slice/again.service/execd*)
is "after kill -9: the groups of before are gone" \
	/sys/fs/cgroup/system.slice/again.service/execd "$left"
has "after kill -9: memory is handed down" "$(cat "$left/cgroup.subtree_control")" memory
systemctl stop again

# What systemd delegated to a user, and a unit of a user.
systemd-run -q --unit=delegated -p Delegate=yes -p User=alice execd --listen $export_url \
	--allow-unauthenticated
await 60 answers
is "User= with Delegate=yes: a session opens" alice "$(command_in_it id -un)"
has "User= with Delegate=yes: memory is handed down" \
	"$(cat /sys/fs/cgroup/system.slice/delegated.service/execd/cgroup.subtree_control)" memory
systemctl stop delegated
systemd-run -q --unit=plain -p User=alice execd --listen $export_url --allow-unauthenticated
await 60 answers
is "User= alone: a session opens" alice "$(command_in_it id -un)"
has "User= alone: the log says why there are no limits" "$(journal -u plain)" \
	"sessions have none.*Delegate=yes"
systemctl stop plain
loginctl enable-linger alice
await 60 test -S /run/user/1001/bus
su - alice -c "XDG_RUNTIME_DIR=/run/user/1001 systemd-run -q --user --scope -p Delegate=yes --unit=mine \
	$(command -v execd) --listen $export_url" >/root/scope.out 2>&1 &
await 60 answers
is "a user's scope with Delegate=yes: a session opens" alice "$(command_in_it id -un)"
has "a user's scope: what systemd delegated is handed down" \
	"$(cat /sys/fs/cgroup/user.slice/user-1001.slice/user@1001.service/app.slice/mine.scope/execd/cgroup.subtree_control)" \
	"memory pids"
su - alice -c "XDG_RUNTIME_DIR=/run/user/1001 systemctl --user stop mine.scope"
wait

# doctor does what a session does, where it is started.
has "doctor in a shell: there are none, and why" "$(execd doctor)" \
	"^without +control groups, where doctor was started: .*process [0-9]+ is in it"
out=$(systemd-run -q --wait --pipe -p Delegate=yes execd doctor)
for limit in processes memory "processor time"; do
	has "doctor in a unit: a limit on $limit was seen to hold" "$out" \
		"^ok +a limit on the $limit of a command"
done
place pids memory cpu
begin
# A second one, in a group below the same place.
first=$url first_pid=$pid
mkdir $top/second
(
	echo "$BASHPID" >$top/second/cgroup.procs
	exec execd --listen ws://127.0.0.1:0 --user ci --allow-unauthenticated
) >/root/second.out 2>/root/second.log </dev/null &
second_pid=$!
await 60 grep -q '^ws://' /root/second.out
url=$(head -n 1 /root/second.out)
is "a second one: a session opens" ci "$(command_in_it id -un)"
url=$first
is "a second one: the first goes on" alice "$(command_in_it id -un)"
kill $second_pid $first_pid
wait $second_pid $first_pid 2>/dev/null

# A shell's group is systemd's and the shell's.
execd --listen ws://127.0.0.1:0 --user alice --allow-unauthenticated \
	>/root/groups.out 2>$log </dev/null &
pid=$!
await 60 grep -q '^ws://' /root/groups.out
url=$(head -n 1 /root/groups.out)
is "from a shell: a session opens" alice "$(command_in_it id -un)"
has "from a shell: the log says why there are no limits" "$(cat $log)" "not execd's alone.*Delegate=yes"
kill $pid
wait $pid 2>/dev/null
finish
