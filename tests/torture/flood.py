#!/usr/bin/python3
# SPDX-License-Identifier: ISC
"""A flood of rubbish from other sources, and honest clients who notice nothing.

	flood.py BUILD [--seconds 30] [--rate 2000] [--honest 200] [--sources 254]

Needs root and iproute2. The server, the honest clients and the flooders each
have a network namespace of their own; a flooder's namespace is a whole network
of sources, IPv4 and IPv6. The last line says what happened; the status is 0 if
every honest client got what it asked for, in time, at the rate that was wanted.
"""
import argparse
import json
import os
import pathlib
import pwd
import random
import selectors
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

INTEGRATION = pathlib.Path(__file__).parents[1] / "integration"
sys.path.insert(0, str(INTEGRATION))
PORT = 8766
FLOODERS = 2
OUTSTANDING = 400       # connections of a flooder at once
TOKEN = "an honest token"


def run(*argv, **how):
    return subprocess.run([str(a) for a in argv], check=True, capture_output=True, text=True, **how).stdout


class Network:
    """Namespace s in the middle; h and a0, a1, ... behind a link each. Behind link
    i lie 10.78.i.0/24 and fd78:i::/32: every address there is answered for."""

    def __init__(self, names):
        self.prefix = f"execd-flood-{os.getpid()}-"
        self.names = ["s", *names]
        self.made = []
        try:
            for name in self.names:
                run("ip", "netns", "add", self.prefix + name)
                self.made.append(name)
                self.ip(name, "link", "set", "lo", "up")
            for i, name in enumerate(names):
                self.link(i, name)
        except BaseException:
            self.close()
            raise

    def ip(self, name, *args):
        return run("ip", "-n", self.prefix + name, *args)

    def link(self, i, name):
        near, far = f"v{i}", "uplink"
        near_mac, far_mac = f"02:00:00:00:{i:02x}:01", f"02:00:00:00:{i:02x}:02"
        run("ip", "-n", self.prefix + "s", "link", "add", near, "address", near_mac, "type", "veth", "peer", "name", far,
            "address", far_mac, "netns", self.prefix + name)
        for where, device, n in (("s", near, 1), (name, far, 2)):
            self.ip(where, "addr", "add", f"10.77.{i}.{n}/24", "dev", device)
            self.ip(where, "-6", "addr", "add", f"fd77:{i}::{n}/64", "dev", device, "nodad")
            self.ip(where, "link", "set", device, "up")
        # Nobody need be asked who has an address: in a flood the answer is lost now and then.
        for where, device, n, mac in (("s", near, 2, far_mac), (name, far, 1, near_mac)):
            for address in (f"10.77.{i}.{n}", f"fd77:{i}::{n}"):
                self.ip(where, "neigh", "replace", address, "lladdr", mac, "dev", device, "nud", "permanent")
        # A socket may then be bound to an address of the network that no device has.
        run(*self.inside(name, ["sh", "-c", "echo 1 > /proc/sys/net/ipv6/ip_nonlocal_bind"]))
        for v, net, hop in (("-4", f"10.78.{i}.0/24", f"10.77.{i}."), ("-6", f"fd78:{i}::/32", f"fd77:{i}::")):
            self.ip("s", v, "route", "add", net, "via", f"{hop}2")
            self.ip(name, v, "route", "add", "local", net, "dev", "lo")

    def inside(self, name, argv):
        return ["ip", "netns", "exec", self.prefix + name, *map(str, argv)]

    def close(self):
        for name in self.made:
            subprocess.run(["ip", "netns", "del", self.prefix + name], capture_output=True)


def server_address(i, v6=False):
    return (f"fd77:{i}::1" if v6 else f"10.77.{i}.1", PORT)


def source(i, n, r):
    """Some address behind link i: one of n of IPv4, or any of n IPv6 networks of 64 bits."""
    if r.random() < 0.5:
        return (f"10.78.{i}.{r.randrange(n) + 1}", 0)
    return (f"fd78:{i}:0:{r.randrange(n):x}::{r.randrange(1, 65535):x}", 0)


# --- the flood ------------------------------------------------------------

HELLO = bytes.fromhex("16030100a5010000a10303") + b"\x55" * 32 + b"\x00"
RUBBISH = [
    lambda r: r.randbytes(60) + b"\r\n\r\n",
    lambda r: b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    lambda r: HELLO[:r.randrange(1, len(HELLO))],
    lambda r: HELLO + r.randbytes(200),
    lambda r: b"\x16\x03\x01\x40\x00" + r.randbytes(1000),
    lambda r: b"",
]


class Flooder:
    """Connects at a rate, says something, and leaves when answered, ended, or after a second."""

    def __init__(self, i, rate, seconds, sources, seed):
        self.i, self.rate, self.seconds, self.sources = i, rate, seconds, sources
        self.r = random.Random(seed)
        self.selector = selectors.DefaultSelector()
        self.ends = {}          # by socket: when it leaves
        self.count = {"begun": 0, "connected": 0, "refused": 0, "answered": 0}

    def begin(self, now):
        where = source(self.i, self.sources, self.r)
        v6 = ":" in where[0]
        s = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET, socket.SOCK_STREAM)
        s.setblocking(False)
        s.setsockopt(socket.IPPROTO_IP, 24, 1)          # IP_BIND_ADDRESS_NO_PORT
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        try:
            s.bind(where)
            s.connect_ex(server_address(self.i, v6))
        except OSError:
            self.count["refused"] += 1
            s.close()
            return
        self.count["begun"] += 1
        self.ends[s] = now + 1
        self.selector.register(s, selectors.EVENT_WRITE)

    def leave(self, s):
        self.selector.unregister(s)
        del self.ends[s]
        s.close()

    def ready(self, s, events):
        if events & selectors.EVENT_WRITE:
            if s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self.count["refused"] += 1
                self.leave(s)
                return
            self.count["connected"] += 1
            try:
                s.send(self.r.choice(RUBBISH)(self.r))
            except OSError:
                pass
            self.selector.modify(s, selectors.EVENT_READ)
            return
        try:
            s.recv(4096)
        except OSError:
            pass
        self.count["answered"] += 1
        self.leave(s)

    def run(self):
        began = time.monotonic()
        while (now := time.monotonic()) < began + self.seconds:
            due = (now - began) * self.rate
            while self.count["begun"] + self.count["refused"] < due and len(self.ends) < OUTSTANDING:
                self.begin(now)
            for key, events in self.selector.select(0.002):
                self.ready(key.fileobj, events)
            for s in [s for s, end in self.ends.items() if end < now]:
                self.leave(s)
        for s in list(self.ends):
            self.leave(s)
        return self.count


# --- the honest -----------------------------------------------------------


def one_honest(i, n, tls):
    from execd_client import WebSocket
    v6 = n % 2 == 1
    host = server_address(i, v6)[0]
    where = f"fd78:{i}:{n:x}::1" if v6 else f"10.78.{i}.{n % 250 + 1}"
    began = time.monotonic()
    c = WebSocket(f"wss://[{host}]:{PORT}" if v6 else f"wss://{host}:{PORT}", tls=tls, token=TOKEN, source=where)
    try:
        c.ready()
        r = c.run("x", ["/bin/echo", str(n)], timeout=30)
        assert r.stdout == f"{n}\n" and r.code == 0, r.stdout
    finally:
        c.drop()
    return time.monotonic() - began


def honest(i, clients, seconds, ca):
    """Evenly over the time, so that each has the flood around it."""
    tls = ssl.create_default_context(cafile=ca)
    tls.check_hostname = False
    times, failures, threads = [], [], []

    def client(n):
        try:
            times.append(one_honest(i, n, tls))
        except Exception as e:      # whatever it is, it is a failure and is told
            failures.append(f"{n}: {type(e).__name__}: {str(e)[:200]}")

    began = time.monotonic()
    for n in range(clients):
        threads.append(threading.Thread(target=client, args=(n,), daemon=True))
        time.sleep(max(0, began + seconds * n / clients - time.monotonic()))     # the schedule, not a wait
        threads[-1].start()
    for t in threads:
        t.join(60)
    times.sort()
    return {"succeeded": len(times), "failures": failures[:5], "failed": clients - len(times),
            "median_s": round(times[len(times) // 2], 3) if times else None,
            "slowest_s": round(times[-1], 3) if times else None}


# --- one at a time --------------------------------------------------------


def try_one(i, address, token, ca):
    """A client at that address: its HTTP status, or None if it was not even heard."""
    from execd_client import dial, upgrade
    tls = ssl.create_default_context(cafile=ca)
    tls.check_hostname = False
    v6 = ":" in address
    host = server_address(i, v6)[0]
    try:
        s = dial(f"wss://[{host}]:{PORT}" if v6 else f"wss://{host}:{PORT}", tls, source=address)
        s.sendall(upgrade(f"Authorization: Bearer {token}\r\n"))
        head = s.recv(4096)
        s.close()
    except OSError:
        return None
    return int(head.split()[1]) if head else None


def probe(i, tries, ca):
    return [try_one(i, address, token, ca) for address, token in tries]


# --- all of it ------------------------------------------------------------


def configuration(base, user, limits=""):
    import hashlib
    return (f"[listener four]\naddress = wss://0.0.0.0:{PORT}\ncertificate = {base}.pem\ncertificate-key = {base}.key\n"
            f"[listener six]\naddress = wss://[::]:{PORT}\nipv6-only = yes\ncertificate = {base}.pem\ncertificate-key = {base}.key\n"
            f"[identity a]\nuser = {user}\nsandbox-allow-unsandboxed = yes\n"
            f"token-sha256 = {hashlib.sha256(TOKEN.encode()).hexdigest()}\n[limits]\nexempt = none\n{limits}")


def start_server(network, build, where, limits=""):
    from certificates import Authority
    authority = Authority(where, "root")
    base = authority.issue("server")
    path = where / "execd.conf"
    path.write_text(configuration(base, "nobody", limits))
    log = open(where / "log", "w+", encoding="utf-8")
    child = subprocess.Popen(network.inside("s", [build / "daemon/root/execd", "-c", path]), stdout=subprocess.PIPE,
                             stderr=log, text=True)
    for _ in range(2):
        line = child.stdout.readline()
        assert line.startswith("wss://"), (line, (where / "log").read_text())
    return child, authority


def stop(child):
    child.terminate()
    try:
        return child.wait(30)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


def part(network, name, role, **values):
    """This program again, in that namespace."""
    return subprocess.Popen(network.inside(name, ["/usr/bin/python3", __file__, "--part", role, json.dumps(values)]),
                            stdout=subprocess.PIPE, text=True)


def result(child, timeout):
    out, _ = child.communicate(timeout=timeout)
    return json.loads(out)


def flood(build, seconds, rate, clients, sources):
    where = pathlib.Path(tempfile.mkdtemp(prefix="execd-flood-"))
    os.chmod(where, 0o755)
    network = Network(["h"] + [f"a{i}" for i in range(FLOODERS)])
    child = None
    parts = []
    try:
        child, authority = start_server(network, build, where)
        parts = [part(network, f"a{i}", "flooder", i=i + 1, rate=rate / FLOODERS, seconds=seconds, sources=sources,
                      seed=i)
                 for i in range(FLOODERS)]
        parts.append(part(network, "h", "honest", i=0, clients=clients, seconds=seconds * 0.9, ca=str(authority.cert)))
        results = [result(p, seconds + 90) for p in parts]
        status = stop(child)
        child = None
        log = (where / "log").read_text()
        connected = sum(r["connected"] for r in results[:-1])
        return {"seconds": seconds, "rate": round(connected / seconds), "flood": results[:-1], "honest": results[-1],
                "penalised": log.count("too many failures from there"),
                "left_out": log.count("lines about failed connections were left out"), "status": status,
                "deaths": log.count("killed by signal"), "log_lines": log.count("\n")}
    finally:
        for p in parts:
            if p.poll() is None:
                p.kill()
                p.wait()
        if child is not None:
            stop(child)
        network.close()
        subprocess.run(["rm", "-rf", where])


def verdict(r, rate, clients):
    """What is wrong with the result, or nothing."""
    wrong = []
    if r["honest"]["succeeded"] != clients:
        wrong.append(f"{r['honest']['failed']} honest clients failed: {r['honest']['failures']}")
    if r["rate"] < rate * 0.9:
        wrong.append(f"the flood reached {r['rate']} connections a second, not {rate}")
    if r["log_lines"] > (r["seconds"] + 40) * 60 + 5 * clients:
        wrong.append(f"the log has {r['log_lines']} lines")
    # The line about a penalty may be among those that a flood leaves out.
    if r["penalised"] + r["left_out"] == 0 or r["deaths"] or r["status"] != 0:
        wrong.append(f"{r['penalised']} sources penalised, {r['deaths']} deaths, status {r['status']}")
    return wrong


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    p.add_argument("build", nargs="?", type=pathlib.Path)
    p.add_argument("--seconds", type=float, default=30)
    p.add_argument("--rate", type=int, default=2000)
    p.add_argument("--honest", type=int, default=200)
    p.add_argument("--sources", type=int, default=254, help="of each family, for each of the flooders")
    p.add_argument("--part", nargs=2, help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.part:
        values = json.loads(a.part[1])
        parts = {"flooder": lambda **v: Flooder(**v).run(), "honest": honest, "probe": probe}
        print(json.dumps(parts[a.part[0]](**values)))
        return 0
    if a.build is None or os.geteuid() != 0:
        p.error("BUILD is missing" if a.build is None else "namespaces need root")
    pwd.getpwnam("_execd")      # or say so now
    r = flood(a.build.resolve(), a.seconds, a.rate, a.honest, a.sources)
    wrong = verdict(r, a.rate, a.honest)
    print(json.dumps(r, indent=1))
    print("flood: " + ("; ".join(wrong) or f"{a.honest} honest clients among {r['rate']} connections a second, slowest "
                       f"{r['honest']['slowest_s']} s"))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
