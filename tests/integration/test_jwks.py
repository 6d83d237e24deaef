# SPDX-License-Identifier: ISC
"""Signed tokens of an issuer with public keys, as GitLab CI and GitHub Actions
have them (execd.conf(5), [signed-tokens])."""
import base64
import hmac
import json
import time

import pytest
from certificates import lend, openssl
from execd_client import Closed
from test_auth import part, status
from test_config import check
from test_identities import ADDRESS, identity

GITLAB = "project_path:group/proj:ref_type:branch:ref:main"
GITHUB = "repo:octo-org/octo-repo:ref:refs/heads/main"
ISSUER, AUDIENCE = "https://issuer.example.org", "https://execd.example.org"


def text(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """A key pair of openssl's: signs tokens, and is an entry of a JWKS."""
    OPTIONS = {"RS256": ["rsa", "-pkeyopt", "rsa_keygen_bits:2048"], "PS256": ["rsa", "-pkeyopt", "rsa_keygen_bits:2048"],
               "ES256": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "ES384": ["ec", "-pkeyopt", "ec_paramgen_curve:P-384"],
               "EdDSA": ["ed25519"]}

    def __init__(self, directory, alg, kid, **more):
        self.alg, self.kid, self.more = alg, kid, more
        self.path = directory / f"{kid}.pem"
        openssl("genpkey", "-algorithm", *self.OPTIONS[alg], "-out", self.path)

    def entry(self):
        der = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        if self.alg in ("RS256", "PS256"):
            n = openssl("rsa", "-in", self.path, "-noout", "-modulus").decode().strip().split("=")[1]
            own = {"kty": "RSA", "n": text(bytes.fromhex(n)), "e": "AQAB"}
        elif self.alg == "EdDSA":
            own = {"kty": "OKP", "crv": "Ed25519", "x": text(der[-32:])}
        else:
            width = 32 if self.alg == "ES256" else 48
            own = {"kty": "EC", "crv": "P-256" if width == 32 else "P-384", "x": text(der[-2 * width:-width]), "y": text(der[-width:])}
        return {"kid": self.kid, "use": "sig", "alg": self.alg, **own, **self.more}

    def sign(self, data):
        file = self.path.with_suffix(".data")
        file.write_bytes(data)
        if self.alg == "EdDSA":
            return openssl("pkeyutl", "-sign", "-inkey", self.path, "-rawin", "-in", file)
        pss = ["-sigopt", "rsa_padding_mode:pss", "-sigopt", "rsa_pss_saltlen:digest"] if self.alg == "PS256" else []
        return openssl("dgst", "-sha384" if self.alg == "ES384" else "-sha256", *pss, "-sign", self.path, file)

    def signature(self, data):
        der = self.sign(data)
        if not self.alg.startswith("ES"):
            return der
        width, at, numbers = 32 if self.alg == "ES256" else 48, 2 if der[1] < 128 else 3, b""
        for _ in range(2):      # an INTEGER each: r and s
            numbers += der[at + 2:at + 2 + der[at + 1]].lstrip(b"\0").rjust(width, b"\0")
            at += 2 + der[at + 1]
        return numbers

    def token(self, header=None, cut=0, **claims):
        """`cut`: the signature lacks so many bytes."""
        claims = {"iss": ISSUER, "aud": AUDIENCE, "exp": int(time.time()) + 60, **claims}
        signed = part(header or {"typ": "JWT", "alg": self.alg, "kid": self.kid}) + b"." + part(claims)
        signature = self.signature(signed)
        return (signed + b"." + part(signature[:len(signature) - cut])).decode()


def write_set(path, *keys):
    new = path.with_suffix(".new")
    new.write_text(json.dumps({"keys": [k.entry() if isinstance(k, Key) else k for k in keys]}))
    new.rename(path)


@pytest.fixture
def issuer(directory):
    keys = {alg: Key(directory, alg, f"key-{alg}") for alg in Key.OPTIONS}
    write_set(directory / "jwks.json", *keys.values())
    return keys


def signed(directory, more=""):
    return f"[signed-tokens]\njwks-file = {directory}/jwks.json\nissuer = {ISSUER}\naudience = {AUDIENCE}\n{more}"


def test_each_algorithm_lets_in(configured, user, directory, issuer):
    s = configured(ADDRESS + identity("a", user, more=f"token-subject = {GITLAB}\n") + signed(directory))
    for alg, key in issuer.items():
        c = s.connect(token=key.token(sub=GITLAB, nbf=int(time.time()) - 5, iat=int(time.time()))).ready()
        assert c.run("x", ["/bin/echo", alg]).stdout == f"{alg}\n"
        assert status(s, "Bearer " + key.token(sub=GITLAB, aud=["x", AUDIENCE])) == (101, "")
        wrong = key.token(sub=GITLAB)
        assert status(s, "Bearer " + wrong[:-8] + "AAAAAAAA") == (401, "invalid websocket jwt"), alg


def test_what_is_wrong_is_logged(configured, user, directory, issuer):
    rsa, ec = issuer["RS256"], issuer["ES256"]
    write_set(directory / "jwks.json", rsa, ec, Key(directory, "RS256", "enc", use="enc"))
    stranger = Key(directory, "RS256", "stranger")
    confused = part({"alg": "HS256", "kid": rsa.kid}) + b"." + part({"exp": 2 ** 40, "sub": GITLAB})
    public = openssl("pkey", "-in", rsa.path, "-pubout")
    confused = (confused + b"." + part(hmac.new(public, confused, "sha256").digest())).decode()
    named = {"alg": "RS256", "kid": rsa.kid}
    rows = [
        (stranger.token(sub=GITLAB), "invalid websocket jwt", "no key has the kid `stranger`"),
        (stranger.token(named, sub=GITLAB), "invalid websocket jwt", "the signature is wrong"),
        (rsa.token({"alg": "RS256"}, sub=GITLAB), "invalid websocket jwt", "its header has no kid"),
        (rsa.token({"alg": "RS256", "kid": "enc"}), "invalid websocket jwt", "the key `enc` is not used: its use is not sig"),
        (rsa.token({"alg": "none", "kid": rsa.kid}), "invalid websocket jwt", "alg `none`: it is not signed"),
        (rsa.token({"alg": "RS512", "kid": rsa.kid}), "invalid websocket jwt", "alg `RS512` is not known"),
        (rsa.token({"alg": "ES256", "kid": rsa.kid}), "invalid websocket jwt", f"alg `ES256` is not for the key `{rsa.kid}`"),
        (rsa.token({**named, "crit": ["exp"]}), "invalid websocket jwt", "its header has a crit"),
        (confused, "invalid websocket jwt", "alg `HS256` needs secret-file"),
        (ec.token(cut=1), "invalid websocket jwt", "its signature has 63 bytes; one of ES256 has 64"),
        (rsa.token(sub=GITLAB, exp=1), "expired websocket jwt", ""),
        (rsa.token(sub=GITLAB, nbf=2 ** 40), "websocket jwt is not valid yet", ""),
        (rsa.token(sub=GITLAB, iss="https://gitlab.com"), "websocket jwt issuer mismatch", f"iss is not `{ISSUER}`"),
        (rsa.token(sub=GITLAB, aud="https://vault"), "websocket jwt audience mismatch", f"aud does not contain `{AUDIENCE}`"),
        (rsa.token(sub=GITHUB), "no identity has the subject of this websocket jwt", f"`{GITHUB}`"),
    ]
    # The log holds ten lines of one kind; more of them are only counted.
    s = configured(ADDRESS + identity("a", user, more=f"token-subject = {GITLAB}\n") + signed(directory))
    s.wait_log("jwks.json: key 3 (kid `enc`) is not used: its use is not sig")
    for token, told, logged in rows:
        seen = len(s.log)
        assert status(s, "Bearer " + token) == (401, told), logged
        s.wait_log(f"refused: {told}" + (f": {logged}" if logged else "\n"))
        assert token.rsplit(".", 1)[1] not in s.log[seen:]
    assert status(s, "Bearer " + rsa.token(sub=GITLAB)) == (101, "")


def test_patterns_of_subjects(configured, user, directory, issuer):
    """A name, then patterns in their order, then `*`; who it was is on record."""
    log = directory / "audit.jsonl"
    s = configured(ADDRESS + identity("late", user, more="token-subject = repo:octo-org/*\n") +
                   identity("main", user, more=f"token-subject = {GITHUB}\n") +
                   identity("tags", user, more="token-subject = [ab]c\n\tproject_path:group/*:ref_type:tag:ref:v?.?\n") +
                   identity("rest", user, more="token-subject = *\n") + signed(directory) + f"[audit]\nfile = {log}\n")
    s.wait_log(f"[identity rest]: token-subject `*` lets in whoever has a token of {ISSUER} for {AUDIENCE}")
    key = issuer["ES256"]
    rows = [(GITHUB, "main"), ("repo:octo-org/octo-repo:pull_request", "late"), ("repo:octo-org/", "late"),
            ("repo:octo-org2/octo-repo:ref:refs/heads/main", "rest"),
            ("project_path:group/proj:ref_type:tag:ref:v1.2", "tags"), ("project_path:group/a/b:ref_type:tag:ref:v1.2", "tags"),
            ("project_path:group/proj:ref_type:tag:ref:v1.23", "rest"), ("bc", "tags"), ("cc", "rest"),
            ("Repo:octo-org/x", "rest"), (None, "rest"), ("x" * 1023, "rest"), ("x" * 1024, "rest")]
    for subject, _ in rows:
        s.connect(token=key.token(sub=subject)).ready().drop()
    granted = [json.loads(line) for line in log.read_text().splitlines() if '"granted"' in line]
    assert [e["identity"] for e in granted] == [name for _, name in rows]
    assert [e.get("subject") for e in granted] == [s if s and len(s) < 1024 else None for s, _ in rows]


def test_another_claim_is_the_subject(configured, user, directory, issuer):
    s = configured(ADDRESS + identity("a", user, more="token-subject = octo-org/octo-repo\n") +
                   signed(directory, "subject-claim = repository\n"))
    s.connect(token=issuer["RS256"].token(sub="x", repository="octo-org/octo-repo")).ready()
    with pytest.raises(Closed, match="401"):
        s.connect(token=issuer["RS256"].token(sub="octo-org/octo-repo", repository="octo-org/other"))


def test_a_secret_beside_the_keys(configured, user, directory, issuer):
    secret = directory / "secret"
    secret.write_bytes(b"k" * 32)
    lend(secret, user.pw_gid)
    s = configured(ADDRESS + identity("a", user, more="token-subject = a\n") + signed(directory, f"secret-file = {secret}\n"))
    claims = part({"alg": "HS256"}) + b"." + part({"exp": 2 ** 40, "sub": "a", "iss": ISSUER, "aud": AUDIENCE})
    assert status(s, f"Bearer {claims.decode()}." + part(hmac.new(b"k" * 32, claims, "sha256").digest()).decode()) == (101, "")
    assert status(s, "Bearer " + issuer["ES256"].token(sub="a")) == (101, "")


def test_keys_are_rotated_by_a_reload(configured, user, directory, issuer):
    old, new = issuer["RS256"], Key(directory, "ES256", "key-new")
    configuration = ADDRESS + identity("a", user, more="token-subject = a\n") + signed(directory)
    s = configured(configuration)
    c = s.connect(token=old.token(sub="a")).ready()
    c.sh("x", "echo one; sleep 1000")
    c.wait_output("x", "one")
    assert "nothing changed" in s.reload(configuration, "nothing changed")
    assert status(s, "Bearer " + new.token(sub="a"))[0] == 401
    write_set(directory / "jwks.json", new)
    s.reload(configuration, "[signed-tokens]: other keys")
    with pytest.raises(Closed, match="401"):
        s.connect(token=old.token(sub="a"))
    s.wait_log(f"no key has the kid `{old.kid}`")
    c.wait_closed()
    again = s.connect(token=new.token(sub="a")).ready(resumeSessionId=c.session_id)
    assert again.terminate("x") is True, "the session goes on"
    (directory / "jwks.json").write_text("{}")
    s.reload(configuration, "the configuration stays as it was")
    assert status(s, "Bearer " + new.token(sub="a")) == (101, "")


GOOD = {"kid": "good", "kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}


@pytest.mark.parametrize("content, mode_bits, words", [
    (None, 0, "jwks.json: No such file or directory"),
    ("", 0o644, "jwks.json: must not be empty"),
    (" \n", 0o644, "jwks.json: must not be empty"),
    ("-----BEGIN PUBLIC KEY-----\n", 0o644, "jwks.json: is not JSON"),
    ("[]", 0o644, "jwks.json: is not a JSON Web Key Set"),
    ({"keys": []}, 0o644, "jwks.json: `keys` is empty"),
    ({"keys": [{"kid": "a", "kty": "oct", "k": "AAAA"}]}, 0o644,
     "jwks.json: none of its 1 keys can be used; the first: it is not a public key"),
    ({"keys": [{**GOOD, "kid": str(i)} for i in range(65)]}, 0o644, "jwks.json: holds 65 keys; at most 64 are possible"),
    ({"keys": [GOOD, GOOD]}, 0o644, "jwks.json: keys 1 and 2 have the same kid `good`"),
    ({"keys": [GOOD], "x": "x" * 65536}, 0o644, "jwks.json: is longer than 65536 bytes"),
    ({"keys": [GOOD]}, 0o666, "jwks.json: can be written by everybody"),
    ({"keys": [GOOD]}, 0o000, "jwks.json: Permission denied"),
    ({"keys": [GOOD]}, 0o644, ""),
])
def test_the_file_is_checked(mode, user, directory, content, mode_bits, words):
    path, keys = directory / "execd.conf", directory / "jwks.json"
    path.write_text(ADDRESS + identity("a", user, more="token-subject = a\n") + signed(directory))
    if content is not None:
        keys.write_text(content if isinstance(content, str) else json.dumps(content))
        keys.chmod(mode_bits)
    if mode_bits == 0 and content is not None and mode == "root":
        pytest.skip("root may read every file")
    code, out, err = check(mode, user, path, "-t")
    assert (code, out) == (3 if words else 0, "") and words in err and bool(words) == bool(err), err


@pytest.mark.parametrize("more", ["issuer = x\n", "audience = x\n", ""])
def test_an_issuer_and_an_audience_are_needed(mode, user, directory, more):
    """Else whoever has any token of the issuer could come in."""
    path = directory / "execd.conf"
    path.write_text(ADDRESS + identity("a", user, more="token-subject = a\n") + f"[signed-tokens]\njwks-file = /x\n{more}")
    code, _, err = check(mode, user, path, "-t")
    assert code == 3 and "jwks-file needs issuer and audience" in err, err
