# SPDX-License-Identifier: ISC
# What the scripts about limits share: an execd of their own, in a unit of its
# own, whose configuration is on standard input.

url=ws://127.0.0.1:8799

# serve_limits: starts it; its identities are ci and alice.
serve_limits() {
	local name
	for name in ci alice; do
		(umask 077; openssl rand -hex 32 >"/root/limits-$name.token")
	done
	sed -e "s/TOKEN-ci/$(sum_of ci)/" -e "s/TOKEN-alice/$(sum_of alice)/" \
		>/root/limits.conf
	systemctl stop limits.service 2>/dev/null
	systemctl reset-failed limits.service 2>/dev/null
	systemd-run -q --unit=limits -p Delegate=yes -p TasksMax=infinity \
		execd -c /root/limits.conf
	await 60 curl -sf "http${url#ws}/readyz"
}

sum_of() { tr -d '\n' <"/root/limits-$1.token" | sha256sum | cut -d' ' -f1; }

# by USER COMMAND...: execctl with that identity's token; both its outputs.
by() {
	local user=$1
	shift
	EXECD_TOKEN=$(cat "/root/limits-$user.token") execctl "$@" --url "$url"
}

# status USER ARGUMENT...: the output and the status of execctl run, without what
# execd says of limits (limits-told.sh).
status() {
	local user=$1 out rc
	shift
	out=$(EXECD_TOKEN=$(cat "/root/limits-$user.token") \
		timeout 300 execctl run --url "$url" "$@" 2>&1)
	rc=$?
	echo "$(grep -v '^execd: ' <<<"$out") $rc"
}

# touch_mib N: a Python program that uses so much memory.
touch_mib() {
	echo "x = bytearray($1 << 20)
for i in range(0, $1 << 20, 4096): x[i] = 1
print('touched', flush=True)"
}
