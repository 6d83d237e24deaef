#!/bin/bash
# SPDX-License-Identifier: ISC
# The operator's guide and the cookbook: each of their blocks, in the order of the
# pages (book.py). The guide's last section removes what the cookbook needs.
# state: fresh
# machines: 12 13
. ./package.bash

# The gate has the time for one release.
if [ "$NIGHTLY" != yes ] && [ "$(. /etc/os-release && echo "$VERSION_CODENAME")" = trixie ]; then
	skip "the books on Debian 13" "only --nightly runs them there"
	finish
fi

# What a reader has around the machine: its name, issuers of tokens in the
# network, and a job with such a token.
userdel -r ci 2>/dev/null
for name in build.example gitlab.example token.actions.githubusercontent.com; do
	echo "127.0.0.1 $name" >>/etc/hosts
done
mkdir -p /srv/world/oauth/discovery /srv/world/.well-known
chmod 755 /srv/world
cd /srv/world || exit 1
openssl req -x509 -newkey rsa:2048 -noenc -days 9 -keyout tls.key -out tls.pem -subj /CN=world \
	-addext subjectAltName=DNS:gitlab.example,DNS:token.actions.githubusercontent.com 2>/dev/null
openssl genpkey -algorithm ed25519 -out issuer.pem
text() { openssl base64 -A | tr '+/' '-_' | tr -d '='; }
printf '{"keys":[{"kid":"one","use":"sig","alg":"EdDSA","kty":"OKP","crv":"Ed25519","x":"%s"}]}\n' \
	"$(openssl pkey -in issuer.pem -pubout -outform DER | tail -c 32 | text)" |
	tee oauth/discovery/keys >.well-known/jwks
job_token() { # job_token ISSUER SUBJECT
	printf '%s.%s' "$(printf '{"typ":"JWT","alg":"EdDSA","kid":"one"}' | text)" \
		"$(printf '{"iss":"%s","aud":"https://build.example","sub":"%s","exp":%d}' \
			"$1" "$2" $(($(date +%s) + 3600)) | text)" >signed
	echo "$(cat signed).$(openssl pkeyutl -sign -inkey issuer.pem -rawin -in signed | text)"
}
gitlab=$(job_token https://gitlab.example project_path:group/app:ref_type:branch:ref:main)
printf '{"value":"%s"}' "$(job_token https://token.actions.githubusercontent.com \
	repo:octo-org/octo-repo:ref:refs/heads/main)" >job
cat >>/home/alice/.profile <<PROFILE
export GITLAB_JOB_TOKEN=$gitlab ACTIONS_ID_TOKEN_REQUEST_TOKEN=secret
export ACTIONS_ID_TOKEN_REQUEST_URL='https://token.actions.githubusercontent.com/job?of=17'
PROFILE
echo 'cacert = /srv/world/tls.pem' | tee /root/.curlrc >/home/alice/.curlrc
python3 - <<'PYTHON' >/dev/null 2>&1 &
import http.server, ssl
server = http.server.ThreadingHTTPServer(("127.0.0.1", 443), http.server.SimpleHTTPRequestHandler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("tls.pem", "tls.key")
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
PYTHON
world=$!
trap 'kill $world' EXIT
cd "$OLDPWD" || exit 1

page() { # page NAME: as the package has it
	dpkg-deb --fsys-tarfile "$new"/execd_*.deb | tar -xO "./usr/share/man/man7/$1.7.gz" | zcat >"/root/$1.7"
}
page execd-operator
page execd-cookbook
ln -sfn "$new" "$old/new"
book=$PWD/book.py
begin=$SECONDS
cd "$old" || exit 1
python3 "$book" /root/execd-operator.7 --until REMOVE &&
	python3 "$book" /root/execd-cookbook.7 &&
	python3 "$book" /root/execd-operator.7 --from REMOVE || failures=1
echo "# $((SECONDS - begin)) s for the books"
finish
