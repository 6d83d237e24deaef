# SPDX-License-Identifier: ISC
"""Real programs under a list of hosts: each gets what it wants from a registry that this test plays on loopback with a CA of
its own, and is told no by another one."""
import base64
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import tarfile
import tempfile
import threading
import zipfile

import pytest
from execctl import Execctl

PIP = ["/usr/bin/python3", "-m", "pip"]


def need(argv):
    if shutil.which(argv[0], path="/usr/bin:/bin:/usr/lib/apt") is None or \
            subprocess.run(argv, capture_output=True, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}).returncode != 0:
        pytest.skip(f"{' '.join(argv[:3])} IS NOT TESTED: this host does not have it")


# Go knows the variables, but asks no proxy for localhost. Its cache of builds lies in the workspace.
GO = '''package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

func proxy(r *http.Request) (*url.URL, error) {
	if r.URL.Hostname() == "localhost" {
		return url.Parse(os.Getenv("HTTPS_PROXY"))
	}
	return http.ProxyFromEnvironment(r)
}

func main() {
	pem, err := os.ReadFile(os.Args[1])
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		panic("no certificates")
	}
	client := http.Client{Transport: &http.Transport{Proxy: proxy, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	r, err := client.Get(os.Args[2])
	if err != nil || r.StatusCode != 200 {
		panic(fmt.Sprint(err, r))
	}
	io.Copy(os.Stdout, r.Body)
}
'''

# Java knows no variables, and neither execd nor the reference tells it anything: who starts it tells it.
JAVA = '''import java.io.FileInputStream;
import java.net.*;
import java.net.http.*;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.*;

class Fetch {
	public static void main(String[] args) throws Exception {
		URI proxy = new URI(System.getenv("HTTPS_PROXY"));
		KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
		store.load(null, null);
		store.setCertificateEntry("ca",
		    CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(args[0])));
		TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
		trust.init(store);
		SSLContext tls = SSLContext.getInstance("TLS");
		tls.init(null, trust.getTrustManagers(), null);
		HttpResponse<String> r = HttpClient.newBuilder().sslContext(tls)
		    .proxy(ProxySelector.of(new InetSocketAddress(proxy.getHost(), proxy.getPort()))).build()
		    .send(HttpRequest.newBuilder(new URI(args[1])).build(), HttpResponse.BodyHandlers.ofString());
		if (r.statusCode() != 200)
			throw new Exception(r.toString());
		System.out.print(r.body());
	}
}
'''


class Registry(http.server.ThreadingHTTPServer):
    """Serves a directory by HTTPS."""
    daemon_threads = True

    def __init__(self, root, certificate):
        class Handler(http.server.SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def __init__(self, *args):
                super().__init__(*args, directory=str(root))

            def log_message(self, *args):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server_address[1]
        self.url = f"https://localhost:{self.port}"
        threading.Thread(target=self.serve_forever, args=(.02,), daemon=True).start()

    def handle_error(self, request, client_address):
        pass


@pytest.fixture(scope="module")
def world():
    """A registry with a certificate, and what each program is to find there."""
    with tempfile.TemporaryDirectory(prefix="execd-test-") as d:
        # Readable for whoever the commands run as.
        os.chmod(d, 0o755)
        yield from serve(pathlib.Path(d))


def serve(at):
    root = at / "root"
    root.mkdir()
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", at / "key", "-out",
                    at / "ca.pem"], check=True, capture_output=True)
    both = at / "both.pem"
    both.write_bytes((at / "ca.pem").read_bytes() + (at / "key").read_bytes())
    (root / "file").write_text("what was asked for\n")
    (root / "fetch.go").write_text(GO)
    (root / "Fetch.java").write_text(JAVA)
    put_repository(at, root)
    put_wheel(root)
    r = Registry(root, both)
    put_package(root, r.url)
    r.ca = at / "ca.pem"
    subprocess.run(["chmod", "-R", "a+rX", root], check=True)
    (at / "ca.pem").chmod(0o644)
    yield r
    r.shutdown()
    r.server_close()


def put_repository(at, root):
    """As files that any server can serve."""
    work = at / "work"
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@x", "-c", "init.defaultBranch=main"]
    for argv in (["init", "-q", work], ["-C", work, "commit", "-q", "--allow-empty", "-m", "the first one"],
                 ["clone", "-q", "--bare", work, root / "demo.git"], ["-C", root / "demo.git", "update-server-info"]):
        subprocess.run([*git, *argv], check=True, capture_output=True, env={**os.environ, "HOME": str(at)})


def put_wheel(root):
    name = "demo-1.0-py3-none-any.whl"
    (root / "simple/demo").mkdir(parents=True)
    with zipfile.ZipFile(root / "simple/demo" / name, "w") as z:
        z.writestr("demo.py", "")
        z.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        z.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr("demo-1.0.dist-info/RECORD", "")
    (root / "simple/demo/index.html").write_text(f'<!DOCTYPE html><a href="{name}">{name}</a>')


def put_package(root, url):
    where = root / "demo-1.0.0.tgz"
    manifest = {"name": "demo", "version": "1.0.0"}
    text = json.dumps(manifest).encode()
    with tarfile.open(where, "w:gz") as t:
        info = tarfile.TarInfo("package/package.json")
        info.size = len(text)
        t.addfile(info, io.BytesIO(text))
    digest = base64.b64encode(hashlib.sha512(where.read_bytes()).digest()).decode()
    manifest["dist"] = {"tarball": f"{url}/demo-1.0.0.tgz", "integrity": f"sha512-{digest}"}
    (root / "demo").write_text(json.dumps({"name": "demo", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": manifest}}))


PROGRAMS = {
    "curl": (["curl", "--version"], lambda u, ca: ["curl", "-sSf", "--cacert", ca, f"{u}/file"], "out"),
    "wget": (["wget", "--version"], lambda u, ca: ["wget", "-q", "--tries=1", f"--ca-certificate={ca}", "-O-", f"{u}/file"], "out"),
    "git": (["git", "--version"], lambda u, ca: ["git", "-c", f"http.sslCAInfo={ca}", "clone", "-q", f"{u}/demo.git", "got"],
            "got/.git/HEAD"),
    "python": (["python3", "-V"], lambda u, ca: [
        "python3", "-c", f"import ssl, urllib.request as r; print(r.urlopen('{u}/file', context=ssl.create_default_context("
        f"cafile='{ca}')).read().decode())"], "out"),
    "apt": (["apt-get", "--version"], lambda u, ca: [
        "/usr/lib/apt/apt-helper", "-o", f"Acquire::https::CAInfo={ca}", "-o", "APT::Sandbox::User=", "-o",
        "Acquire::Retries=0", "download-file", f"{u}/file", "got"], "got"),
    "pip": ([*PIP, "--version"], lambda u, ca: [
        *PIP, "download", "-q", "--no-deps", "--no-cache-dir", "--retries", "0", "--disable-pip-version-check", "--cert", ca,
        "--index-url", f"{u}/simple", "-d", ".", "demo"], "demo-1.0-py3-none-any.whl"),
    "npm": (["npm", "--version"], lambda u, ca: [
        "npm", "install", "--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0", "--cache=./cache",
        f"--cafile={ca}", f"--registry={u}/", "demo"], "node_modules/demo/package.json"),
    "go": (["go", "version"], lambda u, ca: ["go", "run", f"{ca.parent}/root/fetch.go", ca, f"{u}/file"], "out"),
    "java": (["java", "-version"], lambda u, ca: ["java", f"{ca.parent}/root/Fetch.java", ca, f"{u}/file"], "out"),
}
SLOW = ("pip", "npm", "go", "java")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.nightly if n in SLOW else ()) for n in PROGRAMS])
def test_programs(server, directory, world, sandboxes, name):
    """They find the proxy by their variables. The other registry is the same one under a name that is not listed."""
    version, argv, leaves = PROGRAMS[name]
    need(version)
    ctl = Execctl(directory, server.url)
    run = ["run", "-s", "workspace-write", "-C", directory, "-E", f"HOME={directory}", "--allow-host", f"localhost:{world.port}"]
    r = ctl(*run, *argv(world.url, world.ca))
    assert r.code == 0, r
    if leaves == "out":
        assert r.out.startswith(b"what was asked for"), r
    else:
        assert os.path.exists(os.path.join(directory, leaves)), r
    shutil.rmtree(os.path.join(directory, "got"), ignore_errors=True)
    other = world.url.replace("localhost", "registry.example")
    r = ctl(*run, *argv(other, world.ca))
    assert r.code != 0 and f"the command may not reach registry.example:{world.port}: not_allowed" in r.err, r
