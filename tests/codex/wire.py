# SPDX-License-Identifier: ISC
"""A WebSocket relay that writes down what passes, so that a failure shows the exchange and not only its effect.

It changes no byte that it is not told to: both directions are copied as they come and decoded beside that.
"""
import json
import socket
import ssl
import struct
import threading
import time
from urllib.parse import urlsplit


class Wire:
    """Listens on loopback, relays every connection to `url`, keeps the messages and writes them to `path`.
    change(data) is what the client gets of the server's bytes, as many as they were."""

    def __init__(self, url, path, authority=None, change=bytes):
        at = urlsplit(url)
        self.tls = ssl.create_default_context(cafile=authority) if at.scheme == "wss" else None
        self.upstream = (at.hostname, at.port)
        self.messages = []        # (connection, "client" or "server", message)
        self.changed = threading.Condition()
        self.change = change
        self.file = open(path, "w", encoding="utf-8")
        self.sockets = []
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.threads = [threading.Thread(target=self._accept, daemon=True)]
        self.threads[0].start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self.upstream)
                if self.tls:
                    server = self.tls.wrap_socket(server, server_hostname=self.upstream[0])
            except OSError:       # a server that is away: the client sees that, as it would without us
                client.close()
                continue
            self.connections += 1
            self.sockets += [client, server]
            for source, sink, name, how in (client, server, "client", bytes), (server, client, "server", self.change):
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                decoder = Decoder(lambda m, n=self.connections, who=name: self._record(n, who, m))
                self.threads.append(threading.Thread(target=relay, args=(source, sink, decoder, how), daemon=True))
                self.threads[-1].start()

    def _record(self, connection, who, text):
        message = json.loads(text)
        with self.changed:
            self.messages.append((connection, who, message))
            self.file.write(json.dumps([round(time.time(), 3), connection, who, message]) + "\n")
            self.file.flush()
            self.changed.notify_all()

    def wait(self, probe, timeout=60, what="a message"):
        """The first truthy value of probe(), asked again at every message."""
        with self.changed:
            value = self.changed.wait_for(probe, timeout)
        assert value, f"no {what} within {timeout} s"
        return value

    def requests(self, method):
        """What the client asked: (connection, params, answer); the answer is None until it is there."""
        with self.changed:
            answers = {(n, m["id"]): m for n, who, m in self.messages
                       if who == "server" and "id" in m and "method" not in m}
            return [(n, m.get("params"), answers.get((n, m["id"]))) for n, who, m in self.messages
                    if who == "client" and m.get("method") == method and "id" in m]

    def errors(self):
        """(method, code, message) of every request that was refused."""
        methods = dict.fromkeys(m["method"] for _, who, m in self.messages if who == "client" and "id" in m and "method" in m)
        return [(method, a["error"]["code"], a["error"]["message"]) for method in methods
                for _, _, a in self.requests(method) if a and "error" in a]

    def stop(self):
        hang_up(self.listener)
        self.threads.pop(0).join()
        for s in self.sockets:
            hang_up(s)
        for thread in self.threads:
            thread.join()
        for s in self.listener, *self.sockets:
            s.close()
        self.file.close()


def relay(source, sink, decoder, change):
    try:
        while data := change(source.recv(1 << 16)):
            decoder.feed(data)
            sink.sendall(data)
    except OSError:
        pass
    hang_up(source)
    hang_up(sink)


def hang_up(s):
    try:
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Decoder:
    """One direction of a WebSocket connection: calls text() with every data message."""

    def __init__(self, text):
        self.text = text
        self.data = bytearray()
        self.message = b""
        self.in_head = True

    def feed(self, data):
        self.data += data
        if self.in_head:
            end = self.data.find(b"\r\n\r\n")
            if end < 0:
                return
            del self.data[:end + 4]
            self.in_head = False
        while self._frame():
            pass

    def _frame(self):
        """Takes one frame off the front; false when it is not there yet."""
        if len(self.data) < 2:
            return False
        size, at = self.data[1] & 0x7f, 2
        if size >= 126:
            form = ">H" if size == 126 else ">Q"
            at += struct.calcsize(form)
            if len(self.data) < at:
                return False
            size, = struct.unpack(form, self.data[2:at])
        mask = self.data[at:at + 4] if self.data[1] & 0x80 else b""
        at += 4 if self.data[1] & 0x80 else 0
        if len(self.data) < at + size:
            return False
        payload = unmask(bytes(self.data[at:at + size]), bytes(mask))
        opcode, last = self.data[0] & 15, self.data[0] & 0x80
        del self.data[:at + size]
        if opcode <= 2:
            self.message += payload
            if last:
                self.text(self.message)
                self.message = b""
        return True


def unmask(data, mask):
    if not mask:
        return data
    key = (mask * (len(data) // 4 + 1))[:len(data)]
    return (int.from_bytes(data, "little") ^ int.from_bytes(key, "little")).to_bytes(len(data), "little")
