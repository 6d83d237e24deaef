#!/bin/bash
# SPDX-License-Identifier: ISC
# README's lines for a build from source, and the recipe for Codex over TLS, word
# for word. There is no compiler here, so what meson has said that it would install
# is copied in place of the first line.
# machines: 12 13
# state: fresh
# nightly
# tree
. ./lib.bash
export PATH=/usr/local/sbin:/usr/local/bin:$PATH # of a login

# block N SECTION FILE: the Nth block of lines of that section.
block() {
	awk -v want="$1" -v section="$2" '/^##/ { here = $0 ~ section "$" }
		!here { next }
		/^    / { n += !inside; inside = 1 }
		/^[^ ]/ { inside = 0 }
		inside && n == want { print substr($0, 5) }' "/srv/execd/$3"
}

id _execd >/dev/null 2>&1 && userdel _execd
id _execd-broker >/dev/null 2>&1 && userdel _execd-broker
cat >install.py <<'PYTHON'
import json, os, pathlib, shutil
build = pathlib.Path("/srv/execd/build-system")
plan = json.loads((build / "meson-info/intro-installed.json").read_text())
there = next(k for k in plan if k.endswith("/build-system/client/execctl")).removesuffix("/build-system/client/execctl")
for source, to in plan.items():
    os.makedirs(os.path.dirname(to), exist_ok=True)
    if not source.startswith("/"):  # a link, whose target the plan does not have
        if "/bin/" in to:
            os.symlink("../sbin/" + source, to)
        continue
    shutil.copy(source.replace(there, "/srv/execd", 1), to)
    os.chmod(to, 0o711 if "/libexec/" in to or "/sbin/" in to else 0o755 if "/bin/" in to else 0o644)
PYTHON
runs "what the build installs is there" python3 install.py
block 3 Install README.md >lines
has "the first line builds and installs" "$(head -n 1 lines)" "^meson setup .* meson install -C build$"
sed -i 1d lines
runs "README's other lines" sh -ex lines
is "the users are there, without a login" "/ /usr/sbin/nologin
/ /usr/sbin/nologin" "$(getent passwd _execd _execd-broker | cut -d: -f6- | tr : ' ')"
is "the directories are there" "root 755 /etc/execd
root 700 /etc/execd/environments
root 750 /var/log/execd" "$(stat -c '%U %a %n' /etc/execd /etc/execd/environments /var/log/execd)"
is "systemd knows the units" "loaded loaded loaded" \
	"$(systemctl show -P LoadState execd.service execd-sessions.socket execd-environment@x.service | xargs)"
is "nothing was started" inactive "$(systemctl is-active execd)"

# --- Codex over TLS -----------------------------------------------------------------

mkdir -p /root/tls
block 1 "Codex over TLS" doc/recipes.md >/root/tls/lines
sum=$(cd /root/tls && sh -e ./lines 2>lines.err)
has "the recipe's lines make a certificate and a token" "$sum" "^[0-9a-f]{64}$"
block 2 "Codex over TLS" doc/recipes.md | sed "s/SHA256$/$sum/" >/etc/execd/execd.conf
runs "the recipe's configuration is right" execd -t
block 4 Install README.md >lines
runs "README's line starts it" sh -ex lines
echo '127.0.0.1 build.example.org' >>/etc/hosts
over() { # over HOST COMMAND...
	local host=$1
	shift
	SSL_CERT_FILE=/etc/execd/cert.pem EXECD_TOKEN=$(cat /root/tls/token) \
		execctl --url "wss://$host:8766" run "$@" 2>&1
}
is "a command runs" ci "$(over build.example.org id -un)"
is "in a sandbox, too" ci "$(over build.example.org -s workspace-write -C /home/ci id -un)"
runs "doctor finds all that it needs" execd doctor
is "nothing failed" 0 "$(systemctl list-units --failed --no-legend | wc -l)"
finish
