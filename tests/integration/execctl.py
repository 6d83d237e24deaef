# SPDX-License-Identifier: ISC
"""execctl for tests: started as a user would, and the networks between it and a
server: proxies that cut, swallow and encrypt. Nothing here sleeps to
synchronise.
"""
import hashlib
import os
import pathlib
import random
import select
import socket
import ssl
import struct
import subprocess
import threading

from conftest import BUILD, as_user
from urllib.parse import urlsplit

EXECCTL = BUILD / "client/execctl"
TIMEOUT = 60


def environment(home, **more):
    """A user's environment, with nothing of the one who runs the tests."""
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8", "TERM": "xterm",
            "EXECD_ENVIRONMENTS": str(pathlib.Path(home) / "environments.conf"),
            **{k: v for k, v in os.environ.items() if k.startswith(("ASAN_", "UBSAN_", "LSAN_"))}, **more}


class Execctl:
    """Runs execctl against one URL, with a home of its own."""

    def __init__(self, home, url, **env):
        self.home = home
        self.url = url
        self.env = environment(home, **({"EXECD_URL": url} if url else {}), **env)

    def popen(self, *args, **kwargs):
        env = {**self.env, **kwargs.pop("env", {})}
        kwargs.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([str(EXECCTL), *map(str, args)], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=env, **kwargs)

    def __call__(self, *args, input=None, timeout=TIMEOUT, **kwargs):
        if input is not None:
            kwargs["stdin"] = subprocess.PIPE
        p = self.popen(*args, **kwargs)
        try:
            out, err = p.communicate(input, timeout=timeout)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
            raise AssertionError(f"execctl {args} hangs; stdout {out[-500:]}, stderr {err[-2000:]}") from None
        return Done(p.returncode, out, err)

    def ok(self, *args, **kwargs):
        r = self(*args, **kwargs)
        assert r.code == 0, r
        return r.out

    def can(self, capability):
        return capability in self.ok("info").decode()


class Done:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err.decode(errors="replace")

    def __repr__(self):
        return f"<exit {self.code}, stdout {self.out[-500:]!r}, stderr {self.err[-2000:]!r}>"


class Proxy:
    """Between a client and a server on loopback. The test cuts connections,
    refuses new ones, or swallows what the server says."""

    def __init__(self, url, tls=None, path=None):
        at = urlsplit(url)
        self.target = (at.hostname, at.port)
        self.tls = tls
        if path is None:
            self.listener = socket.create_server(("127.0.0.1", 0))
            self.url = f"{'wss' if tls else 'ws'}://127.0.0.1:{self.listener.getsockname()[1]}"
        else:
            self.listener = socket.create_server(str(path), family=socket.AF_UNIX)
            self.url = f"unix:{path}"
        self.changed = threading.Condition()
        self.accepted = 0          # connections so far
        self.up = self.down = 0    # bytes to the server and from it
        self.cut_at = None         # cut when so many bytes went up (or down)
        self.cuts = 0
        self.refusing = False
        self.swallowing = False
        self.pairs = []
        self.over = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while not self.over:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                refused = self.refusing
                self.accepted += 1
                self.changed.notify_all()
            if refused:
                reset(client)
            else:
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        try:
            if self.tls:
                client = self.tls.wrap_socket(client, server_side=True)
            server = socket.create_connection(self.target)
        except OSError:
            client.close()
            return
        pair = (client, server)
        with self.changed:
            self.pairs.append(pair)
        try:
            self._forward(client, server)
        except (OSError, ValueError):
            pass
        with self.changed:
            if pair in self.pairs:
                self.pairs.remove(pair)
            self.changed.notify_all()
        for s in pair:
            s.close()

    def _forward(self, client, server):
        while True:
            if self.tls and client.pending():
                ready = [client]
            else:
                ready = select.select([client, server], [], [])[0]
            for s in ready:
                data = s.recv(65536)
                if not data:
                    return
                if s is client:
                    server.sendall(data)
                elif not self.swallowing:
                    client.sendall(data)
                self._count(len(data), s is client)

    def _count(self, n, up):
        with self.changed:
            self.up += n if up else 0
            self.down += 0 if up else n
            self.changed.notify_all()
            due = self.cut_at and self.up + self.down >= self.cut_at[0]
            if due:
                self.cut_at = self.cut_at[1:]
        if due:
            self.cut()

    def wait(self, probe, timeout=30, what="a condition"):
        with self.changed:
            assert self.changed.wait_for(probe, timeout), f"no {what} within {timeout} s"

    def cut(self):
        """Every connection, as if a cable was pulled and a reset came."""
        with self.changed:
            pairs, self.pairs = self.pairs, []
            self.cuts += bool(pairs)
        for pair in pairs:
            for s in pair:
                reset(s)

    def cut_swallowed(self):
        """Cuts the connections whose answers were swallowed, and swallows no more.
        Meanwhile new connections are refused: of one that lost its first bytes
        only, the client would say that it is not HTTP."""
        self.refusing = True
        self.cut()
        self.swallowing = False
        self.refusing = False

    def close(self):
        self.over = True
        self.cut()
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()


def reset(s):
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.shutdown(socket.SHUT_RDWR)
    except (OSError, ValueError):
        pass


def direct(user, argv, home, input=None, **env):
    """The same command without execd between."""
    return subprocess.run(as_user(user, ["env", "--default-signal", f"HOME={home}", *argv]), cwd=home, input=input or b"", capture_output=True,
                          env={"PATH": "/usr/bin:/bin", "HOME": str(home), **env}, timeout=TIMEOUT)


def make_authority(directory, name="127.0.0.1"):
    """A certificate authority, a server's certificate for `name` and a client's.
    Returns the directory with ca.pem, server.pem, client.pem (each with its key)."""
    d = pathlib.Path(directory)

    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=d, check=True, capture_output=True)

    kind = "IP" if name[0].isdigit() else "DNS"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.pem")
    for who, extra in (("server", f"subjectAltName={kind}:{name}"), ("client", "extendedKeyUsage=clientAuth")):
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={who}",
                "-keyout", f"{who}.key", "-out", f"{who}.csr")
        (d / f"{who}.ext").write_text(extra + "\n")
        openssl("x509", "-req", "-in", f"{who}.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                "-days", "2", "-extfile", f"{who}.ext", "-out", f"{who}.crt")
        (d / f"{who}.pem").write_bytes((d / f"{who}.crt").read_bytes() + (d / f"{who}.key").read_bytes())
    return d


def server_context(d, want_client=False):
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(d / "server.pem")
    if want_client:
        tls.load_verify_locations(d / "ca.pem")
        tls.verify_mode = ssl.CERT_REQUIRED
    return tls


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def make_file(path, mib):
    block = random.Random(mib).randbytes(1 << 20)
    with open(path, "wb") as f:
        for i in range(mib):
            f.write(i.to_bytes(8, "big") + block[8:])
        f.write(b"tail")
