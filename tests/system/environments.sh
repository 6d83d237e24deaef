#!/bin/bash
# SPDX-License-Identifier: ISC
# execd-environment@.service, set up by the lines of doc/recipes.md: two environments with
# a user and a forwarder each. The forwarder is a program that passes bytes on, and
# then, with CODEX_BIN, the real Codex.
# state: serving
# nightly
# seconds: 3600
# tree
. ./package.bash

# lines N NAME PORT: the Nth block of the section, for an environment of
# another name whose service is on that port.
lines() {
	awk -v want="$1" '/^##/ { here = /Agents API$/ }
		!here { next }
		/^    / { n += !inside; inside = 1 }
		/^[^ ]/ { inside = 0 }
		inside && n == want { print substr($0, 5) }' /usr/share/doc/execd/doc/recipes.md |
		sed "s/\bweb\b/$2/g; s|REMOTE=URL|REMOTE=http://127.0.0.1:$3|; s/=ID\b/=env_$2/"
}

# begin NAME PORT: an environment.
begin() {
	lines 1 "$1" "$2" >"begin-$1"
	runs "$1: its lines make it" sh -e "begin-$1" <<<"sk-of-$1"
	lines 2 "$1" "$2" >>/etc/execd/execd.conf
	# The listener is there already.
	[ "$(grep -c '^\[listener agents\]' /etc/execd/execd.conf)" -eq 1 ] ||
		sed -i "$(grep -n '^\[listener agents\]' /etc/execd/execd.conf | tail -n 1 | cut -d: -f1),+2d" /etc/execd/execd.conf
}

cat >/usr/local/bin/codex <<'PYTHON'
#!/usr/bin/python3
import os, re, socket, sys, threading
words = sys.argv[1:]
option = dict(zip(words[2::2], words[3::2]))
assert words[:2] == ["exec-server", "forward"] and words[-1] == "--registration-bearer-stdin", words
name = option["--environment-id"].removeprefix("env_")
assert sys.stdin.read() == f"sk-of-{name}\n", "the key"
assert "sk-of" not in str(os.environ) and os.access(os.environ["CODEX_HOME"], os.W_OK), os.environ
port, to = (int(re.search(r":(\d+)$", option[o])[1]) for o in ("--remote", "--connect"))
def copy(a, b):
    while data := a.recv(65536): b.sendall(data)
    b.shutdown(socket.SHUT_WR)
at = socket.create_server(("127.0.0.1", port))
print("forwards for", name, flush=True)
while True:
    client, _ = at.accept()
    server = socket.create_connection(("127.0.0.1", to))
    for pair in (client, server), (server, client):
        threading.Thread(target=copy, args=pair, daemon=True).start()
PYTHON
chmod 755 /usr/local/bin/codex

begin web 9001
begin two 9002
runs "the configuration is right" execd -t
systemctl restart execd
runs "the environments are enabled and started" \
	systemctl enable --now execd-environment@web execd-environment@two
listening() { (: </dev/tcp/127.0.0.1/9001) && (: </dev/tcp/127.0.0.1/9002); }
runs "they have their keys, and forward" await 120 listening
through() { # through PORT COMMAND...: what the service would let an agent run
	local port=$1
	shift
	env -u EXECD_TOKEN timeout 120 execctl --url "ws://127.0.0.1:$port" run "$@" 2>&1
}
is "web's commands run as web" web "$(through 9001 id -un)"
is "two's commands run as two" two "$(through 9002 id -un)"
is "the forwarder runs as a user of its own" execd-web \
	"$(ps -o user:32= -p "$(systemctl show -P MainPID execd-environment@web)")"

# --- what is whose ------------------------------------------------------------------

for name in web two; do
	install -o $name -g $name -m 0600 /dev/null /home/$name/secret
	echo "of $name" >/home/$name/secret
done
is "web reads its own file" "of web" "$(through 9001 cat /home/web/secret)"
has "and not the other's" "$(through 9001 cat /home/two/secret)" "Permission denied"
has "nor a key, in /etc" "$(through 9001 cat /etc/execd/environments/web.key)" "Permission denied"
pid=$(systemctl show -P MainPID execd-environment@web)
keys="/run/credentials/execd-environment@web.service/key /proc/$pid/root/run/credentials/execd-environment@web.service/key /proc/$pid/environ"
for file in $keys; do
	has "nor in $file" "$(through 9001 cat "$file")" "Permission denied|No such file"
done
for url in ws://127.0.0.1:8767 ws://127.0.0.1:8766; do
	has "a command of web comes in nowhere: $url" \
		"$(through 9001 execctl --url $url run id -un)" "401"
done
through 9001 -d sh -c 'echo begun >/home/web/begun; sleep 1000' >/dev/null 2>&1
through 9002 -d sleep 1000 >/dev/null 2>&1
list=$(execd ctl list)
for name in web two; do
	has "ctl list shows $name's" "$list" "$name.* of execd-$name, listener agents"
done
is "a list through the other forwarder lacks it" "" \
	"$(execctl --url ws://127.0.0.1:9002 ps 2>&1 | grep begun)"

# --- what apt does -----------------------------------------------------------------

what_runs() {
	systemctl show -P MainPID execd-environment@web execd-environment@two | xargs
	pgrep -u web,two -x sleep | xargs
}
before=$(what_runs)
out=$(apt_install "$new" 2>&1)
is "an upgrade succeeds, and has nothing to say" "0 " "$? $(grep '^execd: ' <<<"$out")"
is "and leaves the environments and their commands as they are" "$before" "$(what_runs)"
is "another command comes through" web "$(through 9001 id -un)"
runs "apt removes the packages" apt_ remove execd
is "nothing runs" "" "$(pgrep -a execd; pgrep -af 'codex exec-server')"
is "no unit is known" "" "$(systemctl list-units --all --no-legend 'execd*' | grep -v 'not-found')"
runs "the keys stay" test -s /etc/execd/environments/web.key
apt_install "$new" >/dev/null 2>&1
is "installed again, they are enabled and stopped" "enabled inactive" \
	"$(systemctl is-enabled execd-environment@web) $(systemctl is-active execd-environment@web)"
systemctl start execd execd-environment@web execd-environment@two
await 120 listening
is "and one start later they serve" web "$(through 9001 id -un)"

# The real one, which must be there for it.
if [ -x /root/codex ]; then
	mv /root/codex /usr/local/bin/codex
	python3 environments.py >codex.out 2>&1 || not_ok "Codex as forwarder and as harness" "$(cat codex.out)"
	cat codex.out
	failures=$((failures + $(grep -c '^not ok' codex.out)))
else
	skip "Codex as forwarder and as harness" "CODEX_BIN does not name it"
fi

runs "apt purges the packages" apt_ purge execd execctl
is "nothing is left" "" "$(find /etc /run /usr /var/lib /var/log \
	\( -path /var/log/journal -o -path /var/lib/apt -o -path /var/lib/dpkg \) -prune \
	-o -name '*execd*' -print)"
finish
