# SPDX-License-Identifier: ISC
"""A client's network that loses what one of its addresses sends and gets, as when a laptop changes from one Wi-Fi to
another: no packet says that the connections of that address are over. Needs root and iproute2."""
import contextlib
import ctypes
import os
import subprocess

CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def run(*argv):
    subprocess.run([str(a) for a in argv], check=True, capture_output=True)


class LossyNetwork:
    """Here is the server, at `server`. Behind a router there is a client, with the addresses `old` and `new`; it connects
    from `old` until cut() is called."""

    made = 0

    def __init__(self):
        LossyNetwork.made += 1
        tag = os.urandom(3).hex()
        self.router, self.client = f"execd-r{tag}", f"execd-c{tag}"
        net = f"10.{150 + LossyNetwork.made % 50}.{os.getpid() % 250}"
        self.server, self.old, self.new = f"{net}.1", f"{net}.130", f"{net}.131"
        self.devices = f"er{tag}h", f"er{tag}r", f"er{tag}d", f"er{tag}c"
        here, up, down, there = self.devices
        self.spaces = []
        try:
            for space in (self.router, self.client):
                run("ip", "netns", "add", space)
                self.spaces.append(space)
                run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "link", "add", here, "type", "veth", "peer", up, "netns", self.router)
            run("ip", "-n", self.router, "link", "add", down, "type", "veth", "peer", there, "netns", self.client)
            run("ip", "addr", "add", f"{self.server}/25", "dev", here)
            self.ip(self.router, "addr", "add", f"{net}.2/25", "dev", up)
            self.ip(self.router, "addr", "add", f"{net}.129/25", "dev", down)
            for address in (self.old, self.new):
                self.ip(self.client, "addr", "add", f"{address}/25", "dev", there)
            run("ip", "link", "set", here, "up")
            for space, device in ((self.router, up), (self.router, down), (self.client, there)):
                self.ip(space, "link", "set", device, "up")
            run("ip", "route", "add", f"{net}.128/25", "via", f"{net}.2")
            self.ip(self.client, "route", "add", "default", "via", f"{net}.129", "src", self.old)
            run("ip", "netns", "exec", self.router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
            self.hop = f"{net}.129"
        except BaseException:
            self.close()
            raise

    def ip(self, space, *args):
        run("ip", "-n", space, *args)

    def cut(self):
        """What belongs to `old` is dropped on the way, in both directions; what connects from now on comes from `new`."""
        for which in ("from", "to"):
            self.ip(self.router, "rule", "add", which, self.old, "blackhole", "pref", "1")
        self.ip(self.client, "route", "replace", "default", "via", self.hop, "src", self.new)

    def mend(self):
        for which in ("from", "to"):
            self.ip(self.router, "rule", "del", which, self.old, "blackhole", "pref", "1")

    def slow(self, up=None, down=None):
        """The client's way up and down, as a rate of tc-tbf(8)."""
        for device, rate in ((self.devices[1], up), (self.devices[2], down)):
            if rate:
                run("tc", "-n", self.router, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", "16kb",
                    "latency", "300ms")

    @contextlib.contextmanager
    def inside(self):
        """A socket that is made here belongs to the client's network."""
        with open("/proc/self/ns/net") as own, open(f"/run/netns/{self.client}") as there:
            assert libc.setns(there.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                assert libc.setns(own.fileno(), CLONE_NEWNET) == 0

    def argv(self, argv):
        """Runs a program there, in this file system."""
        return ["nsenter", f"--net=/run/netns/{self.client}", *map(str, argv)]

    def close(self):
        for space in self.spaces:
            subprocess.run(["ip", "netns", "del", space], capture_output=True)
        subprocess.run(["ip", "link", "del", self.devices[0]], capture_output=True)
