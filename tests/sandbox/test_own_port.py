# SPDX-License-Identifier: ISC
"""A sandboxed command with network access does not get out through execd's own
port, set up as scripts/quickstart does it: a token below ~/.config/execd.
"""
import hashlib
import os
import pathlib
import secrets

import pytest
from conftest import Shell, as_test_user, direct
from policies import workspace_write

PYTHON = "/usr/bin/python3 -c '%s'"
UPGRADE = ("import socket\ns = socket.create_connection((\"127.0.0.1\", %d))\n"
           "s.sendall(b\"GET / HTTP/1.1\\r\\nHost: h\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\n\"\n"
           "  b\"Sec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\\r\\n%s\\r\\n\")\n"
           "print(s.makefile().readline())")


@pytest.fixture
def token(user):
    """A file as the quickstart makes it, of the user that commands run as."""
    file = pathlib.Path(user.pw_dir, f".config/execd/test-{os.getpid()}.token")
    text = secrets.token_hex(32)
    as_test_user(user, f"umask 077; mkdir -p {file.parent}; printf %s {text} >{file}", "/")
    yield file, text
    as_test_user(user, f"rm {file}", "/")


def status(port, header=""):
    return PYTHON % (UPGRADE % (port, header))


def test_the_own_port_is_no_way_out(spawn, user, place, token):
    file, text = token
    server = spawn("--ws-auth", "capability-token", "--ws-token-sha256", hashlib.sha256(text.encode()).hexdigest())
    port = int(server.url.rsplit(":", 1)[1])
    client = server.connect(token=text).ready()
    shell = Shell(client, workspace_write(place, network="enabled"), place)
    # The command reaches the port, and has nothing to show there.
    assert "401" in shell(status(port))
    r = shell.run(f"cat {file}")
    assert r.code == 1 and text not in r.stdout + r.stderr
    assert shell(f"ls -A {file.parent} 2>/dev/null || true") == ""
    # The user himself gets in with what is in that file.
    assert direct(user, ["cat", str(file)], "/").stdout.decode() == text
    shown = f"Authorization: Bearer {text}\\\\r\\\\n".replace("\\\\", "\\")
    assert b"101" in direct(user, ["/bin/sh", "-c", status(port, shown)], "/").stdout


def test_a_listener_without_authentication_is_told(spawn, user):
    server = spawn()
    server.wait_log("a sandboxed command with network access that connects leaves its sandbox: use a token")
