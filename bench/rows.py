# SPDX-License-Identifier: ISC
"""The rows of the table: what is run, what is read off it, and what must and should come out."""
import dataclasses
import socket
import subprocess
import threading
import time
from urllib.parse import urlsplit

import network
import servers
import tree

MB = 1e6
MIB = 1 << 20


@dataclasses.dataclass
class Figure:
    """One line. must and aim bound the ratio execd / peer, or with `absolute` execd's own figure."""
    name: str
    title: str
    unit: str
    must: float
    aim: float
    higher: bool = False  # is more better?
    absolute: bool = False


@dataclasses.dataclass
class Row:
    name: str
    run: object  # function(bench, start, quick) -> {figure name: value}
    figures: list
    peer: str = "codex"
    memory: bool = False  # needs root: only root may read it


def _scaled(quick, value):
    return max(1, value // 10) if quick else value


def _measured(bench, start, args):
    """The client's figures, and the CPU seconds that the server's programs took between begin and end."""
    server = start(bench)
    cpu = {}
    try:
        figures = servers.run_load(server, args, {
            "begin": lambda _: cpu.update(begin=tree.cpu_seconds(server.pid)),
            "end": lambda _: cpu.update(end=tree.cpu_seconds(server.pid))})
    finally:
        server.stop()
    return figures, cpu["end"] - cpu["begin"]


def _spawn(*flags, count):
    def run(bench, start, quick):
        f, _ = _measured(bench, start, ["spawn", "--count", _scaled(quick, count), "--warmup", 3 if quick else 10,
                                        "--path", bench.workspace, *flags])
        return {"p50": f["closed_us"]["p50"], "rate": f["ops"] / f["seconds"]}
    return run


def _transfer(mode, bytes_, *flags):
    def run(bench, start, quick):
        f, cpu = _measured(bench, start, [mode, "--bytes", _scaled(quick, bytes_), *flags])
        return {"rate": f["bytes"] / MB / f["seconds"], "cpu": cpu * 1e6 / (f["bytes"] / MB),
                "wire": f.get("wire", 0) / f["bytes"]}
    return run


def _echo(bench, start, quick):
    f, _ = _measured(bench, start, ["echo", "--count", _scaled(quick, 4000), "--warmup", 50, "--quickack"])
    return {"p50": f["echo_us"]["p50"]}


def _connect(count, *flags):
    def run(bench, start, quick):
        f, _ = _measured(bench, start, ["connect", "--count", _scaled(quick, count), "--warmup", 5, *flags])
        return {"p50": f["connect_us"]["p50"]}
    return run


def _idle(mode, count):
    def run(bench, start, quick):
        server, n, at = start(bench), _scaled(quick, count), {}
        try:
            def sample(name):
                at[name.split()[0]] = tree.settled_pss_kib(server.pid)
            servers.run_load(server, [mode, "--stages", n], {"begin": sample, "stage": sample})
        finally:
            server.stop()
        return {"pss": (at["stage"] - at["begin"]) / n}
    return run


def _slow(bench, start, quick):
    server, at = start(bench), {}
    try:
        def sample(name):
            at[name] = tree.settled_pss_kib(server.pid)
        servers.run_load(server, ["slow", "--connections", 4], {"begin": sample, "stopped": sample})
    finally:
        server.stop()
    return {"growth": (at["stopped"] - at["begin"]) / 4 / 1024}


class _Peak(threading.Thread):
    """The largest PSS until it is stopped."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.peak, self.over = pid, 0, threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(.02):
            self.peak = max(self.peak, tree.pss_kib(self.pid) or 0)

    def stop(self):
        self.over.set()
        self.join()
        return self.peak


def _files(*flags):
    """Twice: the rate undisturbed, then the growth, which is looked at all the time."""
    def run(bench, start, quick):
        args = ["files", "--count", 2 if quick else 12, "--size", 16 * MIB, "--path", bench.workspace, *flags]
        f, _ = _measured(bench, start, args)
        result = {"rate": f["bytes"] / MB / f["seconds"]}
        if servers.ROOT:
            server, at = start(bench), {}
            try:
                servers.run_load(server, args + ["--size", 1], {"end": lambda _: at.update(
                    before=tree.settled_pss_kib(server.pid), peak=_Peak(server.pid))})
                servers.run_load(server, args)
                result["growth"] = (at["peak"].stop() - at["before"]) / 1024
            finally:
                server.stop()
        return result
    return run


def _first_answer(url):
    """The smallest client there is: upgrade, initialize, one answer."""
    at = urlsplit(url)
    with socket.create_connection((at.hostname, at.port)) as s:
        s.sendall((f"GET / HTTP/1.1\r\nHost: {at.netloc}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                   "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n").encode())
        got = b""
        while b"\r\n\r\n" not in got:
            got += s.recv(4096) or _gone()
        text = b'{"id":1,"method":"initialize","params":{"clientName":"bench"}}'
        s.sendall(bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
        got = got.partition(b"\r\n\r\n")[2]
        while b"sessionId" not in got:
            got += s.recv(65536) or _gone()
        yield time.monotonic()


def _gone():
    raise servers.LoadFailed("the server dropped the connection")


def _start(bench, start, quick):
    begin = time.monotonic()
    server = start(bench)
    try:
        for answered in _first_answer(server.url):  # the session is there while its memory is measured
            result = {"ready": (answered - begin) * 1e3}
            if servers.ROOT:
                result["pss"] = tree.settled_pss_kib(server.pid) / 1024
    finally:
        server.stop()
    return result


def _tls(bench, start, quick):
    size = _scaled(quick, 1 << 30)
    server = start(bench)
    try:
        if start is servers.start_execd_tls:
            f = servers.run_load(server, ["output", "--bytes", size, "--size", 0, "--ca", server.certificate])
            return {"rate": f["bytes"] / MB / f["seconds"]}
        begin = time.monotonic()
        subprocess.run([*server.ssh, server.destination, f"exec head -c {size} /dev/zero"],
                       stdout=subprocess.DEVNULL, check=True)
        seconds = time.monotonic() - begin
        subprocess.run([*server.ssh, "-O", "exit", server.destination], capture_output=True)
        return {"rate": size / MB / seconds}
    finally:
        server.stop()


SCOPE = {"scopeId": "bench", "shell": {"name": "bash", "path": "/bin/bash"}}


def _profile(bench, start, quick):
    """One command that logs in, and commands one after the other that take the login's state from the first of them."""
    home = bench.workspace / "home"
    home.mkdir(exist_ok=True)
    (home / ".bash_profile").write_text("sleep .5\n")
    how = {"argv": ["/bin/bash", "-lc", "exit 0"], "env": {"HOME": str(home), "PATH": "/usr/bin:/bin"}}
    server = start(bench)
    try:
        client = network.Client(server.url)
        begin = time.monotonic()
        client.run("login", **how)
        logged_in = time.monotonic()
        for i in range(20):
            client.run(f"p{i}", shellSnapshot=SCOPE, **how)
        total = time.monotonic() - logged_in
        client.close()
    finally:
        server.stop()
    return {"total": total, "share": total / 20 / (logged_in - begin)}


ROWS = [
    Row("spawn", _spawn(count=60), [
        Figure("p50", "`/bin/true`, start to closed, ordinary client, p50", "µs", .025, .02)]),
    Row("spawn-quickack", _spawn("--quickack", count=300), [
        Figure("p50", "the same, client that acknowledges at once, p50", "µs", .22, .16)]),
    Row("spawn-sandboxed", _spawn("--quickack", "--sandbox", count=60), [
        Figure("p50", "the same, sandboxed (workspace-write), p50", "µs", .10, .06)]),
    Row("spawn-many", _spawn("--quickack", "--connections", 8, "--inflight", 4, count=600), [
        Figure("rate", "spawns, 8 connections with 4 each", "1/s", 4, 5, higher=True)]),
    Row("output", _transfer("output", 1 << 30, "--size", 0), [
        Figure("rate", "output, 1 GiB through a pipe", "MB/s", 2, 3, higher=True),
        Figure("cpu", "output, CPU of all programs per MB", "µs", .32, .16),
        Figure("wire", "output, bytes on the wire per byte", "", 1.34, 1.335, absolute=True)]),
    Row("output-tty", _transfer("output", 64 << 20, "--size", 0, "--tty"), [
        Figure("cpu", "output of a terminal, CPU per MB", "µs", 1.0, .55)]),
    Row("stdin", _transfer("stdin", 512 << 20), [
        Figure("rate", "stdin, 64 KiB writes", "MB/s", 1.3, 2, higher=True),
        Figure("cpu", "stdin, CPU per MB", "µs", .6, .35)]),
    Row("echo", _echo, [
        Figure("p50", "echo through a pipe, acknowledged at once, p50", "µs", 1.2, .75)]),
    Row("connect", _connect(200), [
        Figure("p50", "connect and initialize, one right after the other, p50", "µs", 1.2, .8)]),
    Row("connect-apart", _connect(50, "--pause-ms", 100), [
        Figure("p50", "the same, 100 ms after the one before, p50", "µs", 1.2, .8)]),
    Row("sessions", _idle("sessions", 300), [
        Figure("pss", "an idle session, PSS of all programs", "KiB", .7, .3)], memory=True),
    Row("processes", _idle("processes", 300), [
        Figure("pss", "an idle process, PSS of all programs", "KiB", 4, 1, absolute=True)], memory=True),
    Row("slow", _slow, [
        Figure("growth", "a reader that stopped, growth per connection", "MiB", 2, 1.2, absolute=True)], memory=True),
    Row("read", _files(), [
        Figure("rate", "`fs/readFile` of 16 MiB", "MB/s", 3, 5, higher=True),
        Figure("growth", "`fs/readFile` of 16 MiB, growth", "MiB", 8, 1, absolute=True)]),
    Row("write", _files("--writing"), [
        Figure("rate", "`fs/writeFile` of 16 MiB", "MB/s", 2.5, 4, higher=True),
        Figure("growth", "`fs/writeFile` of 16 MiB, growth", "MiB", 8, 1, absolute=True)]),
    Row("start", _start, [
        Figure("ready", "start of the server to its first answer", "ms", 30, 10, absolute=True),
        Figure("pss", "the whole server then, PSS", "MiB", 6, 3, absolute=True)]),
    Row("network", network.stream, [
        Figure("rate", "through the proxy of a list of hosts", "MB/s", 1.0, 2, higher=True),
        Figure("share", "the same beside a connection without a proxy", "", .6, .8, higher=True, absolute=True),
        Figure("first", "its first byte, later than without a proxy", "ms", 1, .5, absolute=True)]),
    Row("network-start", network.starts, [
        Figure("list", "`/bin/true` with a list of hosts, p50", "µs", .5, .2),
        Figure("loopback", "a network of its own, beside the host's", "", 1.15, 1.05, absolute=True),
        Figure("listed", "a list of hosts, beside the host's network", "", 1.3, 1.15, absolute=True)]),
    Row("profile", _profile, [
        Figure("total", "20 commands with `shellSnapshot`, whose login takes half a second", "s", .8, .5),
        Figure("share", "the same beside 20 that log in", "", .1, .07, absolute=True)]),
    Row("tls", _tls, [
        Figure("rate", "output over `wss` (AES-128-GCM) beside ssh (the same)", "MB/s", 1.0, 1.3, higher=True)],
        peer="sshd"),
]
