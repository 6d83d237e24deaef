#!/bin/bash
# SPDX-License-Identifier: ISC
# The timer that fetches an issuer's keys, with the lines of execd.conf(5), and
# the two units: a token of a new key is taken after the timer, and what runs
# goes on.
# machines: 12 13
# state: serving
# nightly
. ./lib.bash
conf=/etc/execd/execd.conf

text() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }

# key NAME: makes it. entry NAME: what a key set has of it.
key() { openssl genpkey -algorithm ed25519 -out "$1.pem"; }
entry() {
	printf '{"kid":"%s","use":"sig","alg":"EdDSA","kty":"OKP","crv":"Ed25519","x":"%s"}' "$1" \
		"$(openssl pkey -in "$1.pem" -pubout -outform DER | tail -c 32 | text)"
}

# token NAME: signed by that key.
token() {
	local signed
	signed=$(printf '{"typ":"JWT","alg":"EdDSA","kid":"%s"}' "$1" | text).$(
		printf '{"iss":"https://gitlab.example.org","aud":"https://build.example.org","sub":"project_path:group/app:ref_type:branch:ref:main","exp":%d}' \
			$(($(date +%s) + 3600)) | text)
	printf %s "$signed" >signed
	echo "$signed.$(openssl pkeyutl -sign -inkey "$1.pem" -rawin -in signed | text)"
}

run_by() { # run_by KEY: who a token of that key is
	EXECD_TOKEN=$(token "$1") execctl run id -un 2>&1
}

# The issuer, which is on loopback here.
mkdir -p issuer/oauth/discovery
key old
key new
publish() { echo "{\"keys\":[$1]}" >issuer/oauth/discovery/keys; }
publish "$(entry old)"
python3 -m http.server --bind 127.0.0.1 --directory issuer 9000 >/dev/null 2>&1 &
issuer=$!
cp issuer/oauth/discovery/keys /etc/execd/jwks.json
man=/usr/share/man/man5/execd.conf.5.gz
zcat $man | sed -n '/^\[signed-tokens\]$/,/^token-subject = /p' | sed 's/^user = .*/user = alice/' >signed.conf
has "the manual has an example" "$(xargs <signed.conf)" "jwks-file = /etc/execd/jwks.json issuer = .* token-subject = project_path:group/app"
cat signed.conf >>$conf
runs "it is right" systemctl reload execd
is "a token of the key that there is" alice "$(run_by old)"
has "none of a key that there is not" "$(run_by new)" "401"

zcat $man | sed -n '/^cd \/etc\/execd$/,/^fi$/p' | sed 's|https://gitlab.example.org/|http://127.0.0.1:9000/|' >/usr/local/sbin/fetch-keys
has "the manual has the lines of a timer" "$(cat /usr/local/sbin/fetch-keys)" "execd ctl reload"
cat >/etc/systemd/system/fetch-keys.service <<UNIT
[Service]
Type=oneshot
ExecStart=/bin/sh /usr/local/sbin/fetch-keys
UNIT
printf '[Timer]\nOnActiveSec=1s\nOnUnitInactiveSec=1s\nAccuracySec=100ms\n' >/etc/systemd/system/fetch-keys.timer
systemctl daemon-reload

sudo -u ci mkfifo /home/ci/gate
as ci run sh -c 'exec 3<>/home/ci/gate; echo begin; read x <&3; echo end' >long.out 2>/dev/null &
long=$!
await 60 grep -q begin long.out
publish "$(entry old),$(entry new)"
systemctl start fetch-keys.timer
taken() { [ "$(run_by new)" = alice ]; }
runs "a token of a new key is taken after the timer" await 120 taken
has "the log says what changed" "$(journal -u execd)" "reload: .signed-tokens.: other keys"
publish "$(entry new)"
refused() { grep -q 401 <<<"$(run_by old)"; }
runs "and none of a key that is gone" await 120 refused
echo 'not found' >issuer/oauth/discovery/keys
wrong() { journal -u fetch-keys | grep "jwks.json.*is not JSON"; }
runs "an answer that is no key set is refused" await 120 wrong
runs "and is not there at the next start" execd -t
runs "and the keys before it stay" await 120 taken
publish "$(entry old),$(entry new)"
again() { [ "$(run_by old)" = alice ]; }
runs "the next right answer is taken" await 120 again
systemctl stop fetch-keys.timer
echo >/home/ci/gate
wait $long
is "what ran went on" "begin end" "$(xargs <long.out)"
kill $issuer
finish
