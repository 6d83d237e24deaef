# SPDX-License-Identifier: ISC
"""The command line: errors in words, exit codes, signals (execd(8))."""
import os
import subprocess

import pytest
from conftest import EXECD, ROOT, VERSION, as_user, poll
from execd_client import WebSocket


def run(user, *args, root=False, timeout=15):
    argv = [str(EXECD), *args]
    if not root:
        argv = as_user(user, argv)
    p = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
    return p.returncode, p.stdout, p.stderr


@pytest.mark.parametrize("args, code, text", [
    (["--listen", "http://127.0.0.1:1"], 2,
     "unsupported --listen URL `http://127.0.0.1:1`; expected `ws://IP:PORT` or `stdio`"),
    (["--listen", "ws://localhost:0"], 2,
     "invalid websocket --listen URL `ws://localhost:0`; expected `ws://IP:PORT`"),
    (["--listen", "ws://127.0.0.1"], 2, "invalid websocket --listen URL"),
    (["--listen", "ws://127.0.0.1:0/"], 2, "invalid websocket --listen URL"),
    (["--listen", "ws://127.0.0.1:65536"], 2, "invalid websocket --listen URL"),
    (["--listen", "ws://::1:0"], 2, "invalid websocket --listen URL"),
    (["--listen", "ws://[::1:0"], 2, "invalid websocket --listen URL"),
    (["--listen", "ws://1.2.3.4:0"], 1, "Cannot assign requested address"),
    (["--listen", "ws://0.0.0.0:0"], 2, "--allow-unauthenticated"),
    (["--listen", "stdio", "--listen", "ws://127.0.0.1:0"], 2, "stdio"),
    (["--concurrent-requests", "0"], 2, "is not a number from 1"),
    (["--concurrent-requests", "x"], 2, "is not a number from 1"),
    (["--detached-ttl", "80"], 2, "is not a duration"),
    (["--detached-ttl", "99999999h"], 2, "is not a duration"),
    (["--retention", "0"], 2, "`0` is not a number of bytes like 4096, 64K, 16M or 1G"),
    (["--retention", "257M"], 2, "`257M` is more than 256M"),
    (["--retention", "1G"], 2, "`1G` is more than 256M"),
    (["--retention", "-1"], 2, "is not a number of bytes"),
    (["--max-connections", "-1"], 2, "is not a number"),
    (["--bogus"], 2, "--bogus"),
    (["extra"], 2, "unexpected argument `extra`"),
    (["--listen"], 2, "requires an argument"),
    (["--user", "root"], 4, "--user needs root"),
    # What codex exec-server has beside, and execd does not.
    (["exec-server", "--remote", "x"], 2, "--remote: execd registers nowhere"),
    (["--environment-id", "x"], 2, "--environment-id: execd registers nowhere"),
    (["exec-server", "forward"], 2, "unexpected argument `forward`"),
    (["exec-server", "exec-server"], 2, "unexpected argument `exec-server`"),
    (["--tcp-upstream-proxy", "a:1"], 2, "--tcp-upstream-proxy: execd does not have it"),
    (["--linux-sandbox-transparent-tcp"], 2, "--linux-sandbox-transparent-tcp: execd does not have it"),
    (["--linux-sandbox-pid-namespace", "inherit"], 2, "--linux-sandbox-pid-namespace inherit: each sandboxed command"),
    (["-c", "./a=b"], 3, "./a=b: No such file or directory"),
    (["-c", "/nonexistent/a=b"], 3, "/nonexistent/a=b: No such file or directory"),
    (["--exit-on-stdin-close"], 1, "--exit-on-stdin-close: standard input is no pipe, socket or terminal"),
])
def test_errors(user, args, code, text):
    got = run(user, *args)
    assert got[0] == code and text in got[2], got
    assert got[1] == ""


def test_flags_of_codex(user):
    """Its first word, and flags that change nothing, are taken; the end of standard input is as SIGTERM."""
    argv = ["-c", "model=\"o3\"", "exec-server", "--listen", "ws://127.0.0.1:0", "--strict-config", "--enable", "a_feature",
            "--disable", "another", "--linux-sandbox-pid-namespace", "isolate", "--exit-on-stdin-close"]
    p = subprocess.Popen(as_user(user, [str(EXECD), *argv]), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    try:
        url = p.stdout.readline().strip()
        p.stdin.write("what comes there means nothing\n")
        p.stdin.flush()
        c = WebSocket(url).ready()
        assert c.run("x", ["/bin/echo", "in"]).stdout == "in\n"
        c.drop()
        _, err = p.communicate(timeout=15)      # closes it
    finally:
        p.kill()
    assert p.returncode == 0 and "standard input has ended: stopping" in err, err
    for text in ("-c model=\"o3\": Codex's configuration has no effect here", "--strict-config has no effect here",
                 "--enable a_feature has no effect here", "--disable another has no effect here"):
        assert text in err, err


@pytest.mark.skipif(not ROOT, reason="ROOT'S COMMAND LINE IS NOT TESTED: this needs root")
@pytest.mark.parametrize("args, code, text", [
    ([], 2, "--user NAME"),
    (["--user", "root", "--allow-unauthenticated"], 3, "this is root"),
    (["--user", "no-such-user-here"], 3, "no such user"),
    (["--user", "nobody"], 2, "--allow-unauthenticated"),
])
def test_errors_of_root(user, args, code, text):
    got = run(user, *args, root=True)
    assert got[0] == code and text in got[2], got
    assert got[1] == ""


def test_help_and_version(user):
    assert run(user, "--help")[0] == 0 and "--listen" in run(user, "--help")[1]
    assert run(user, "--version") == (0, f"execd {VERSION}\n", "")


def test_a_port_in_use(server, user, mode):
    args = ["--listen", server.url]
    if mode == "root":
        args += ["--user", user.pw_name, "--allow-unauthenticated"]
    code, out, err = run(user, *args, root=mode == "root")
    assert (code, out) == (1, "") and "Address already in use" in err


def test_ipv6_and_several_listeners(spawn):
    s = spawn(listen="ws://[::1]:0")
    assert s.url.startswith("ws://[::1]:")
    c = s.ready()
    c.send_text(b"x")
    assert "exec-server websocket [::1]:" in c.answer(-1)["error"]["message"]


def test_reload_changes_nothing_and_the_log_has_one_line_per_event(spawn):
    import signal
    s = spawn()
    c = s.ready()
    s.child.send_signal(signal.SIGHUP)
    s.wait_log("reload: there is no configuration file")
    assert c.call("environment/status") == {"status": "ready"}
    for line in s.log.splitlines():
        assert line.startswith(("execd[", "execd-broker[", "execd-frontend[", "execd-runner[")), line


def test_installed_programs_find_each_other(user, tmp_path_factory):
    """meson install puts them under the prefix, and they run from there."""
    build = os.environ.get("EXECD_BUILD", "build")
    root = tmp_path_factory.mktemp("install")
    for p in [root, *root.parents]:
        if p != p.parent and p.owner() != "root" or p == root:
            p.chmod(0o755)
    r = subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", str(root)],
                       capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    execd = next(root.rglob("sbin/execd"))
    assert next(root.rglob("libexec/execd/execd-frontend")) and next(root.rglob("libexec/execd/execd-runner"))
    # The library is found where pkg-config looks without being told.
    found = next(root.rglob("execd-client.pc")).parent
    looked = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"], capture_output=True, text=True)
    assert looked.returncode != 0 or f"/{found.relative_to(root)}" in looked.stdout.strip().split(":"), (found, looked)
    p = subprocess.Popen([str(execd), "--listen", "stdio", *(["--user", user.pw_name] if ROOT else [])],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if ROOT:
        # The runner must be reachable for its user.
        for d in root.parents:
            if d.stat().st_mode & 0o005 != 0o005:
                p.kill()
                p.wait()
                pytest.skip(f"{d} cannot be entered by others")
    out, err = p.communicate(b'{"id":1,"method":"initialize","params":{"clientName":"x"}}\n', 15)
    assert p.returncode == 0 and b'"sessionId"' in out, err


def test_nothing_of_a_stopped_server_is_left(spawn):
    s = spawn()
    c = s.ready()
    c.sh("a", "sleep 4711.25")
    runner, frontend = s.runner(c), s.frontend()
    s.stop()
    poll(lambda: not os.path.exists(f"/proc/{runner}") and not os.path.exists(f"/proc/{frontend}"))
