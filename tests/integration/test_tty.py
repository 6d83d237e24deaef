# SPDX-License-Identifier: ISC
"""Terminals (doc/protocol.md section 7.3): the real kernel's, with a real bash."""
import pathlib

from conftest import poll, pids_with


def wait_foreground(marker):
    """Until a command runs and has the terminal: only then ^C and ^Z reach it."""
    def is_foreground(pid):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[2] == fields[5]       # pgrp == tpgid

    poll(lambda: any(is_foreground(p) for p in pids_with(marker)), what=f"{marker} in the foreground")


def test_size_streams_and_controlling_terminal(client):
    r = client.run_sh("a", "stty size; for f in 0 1 2; do [ -t $f ] && echo tty$f; done; echo hi >/dev/tty; "
                      "read pid comm state ppid pgrp sid tty tpgid rest < /proc/$$/stat; "
                      "echo $((pid == sid)) $((pid == pgrp)) $((pid == tpgid))", tty=True)
    assert r.pty == "24 80\r\ntty0\r\ntty1\r\ntty2\r\nhi\r\n1 1 1\r\n"
    assert {m["params"]["stream"] for m in r.events if "stream" in m["params"]} == {"pty"}
    assert r.code == 0


def test_interrupt_and_end_of_file(client):
    client.start("a", ["/bin/cat"], tty=True)
    client.write("a", "hello\n")
    client.wait_output("a", "hello\r\nhello\r\n")
    client.write("a", b"\x04")
    assert client.finished("a").code == 0
    client.sh("b", 'trap "echo got int; exit 9" INT; echo ready; while :; do sleep 0.1; done', tty=True)
    client.wait_output("b", "ready")
    client.write("b", b"\x03")
    assert client.finished("b").code == 9
    assert client.output("b").endswith(b"^Cgot int\r\n")


def test_bash_with_job_control(client):
    """A person's session: prompt, ^C, ^Z, jobs, fg, kill, exit code."""
    client.start("sh", ["/bin/bash", "--norc", "--noprofile", "-i"], tty=True,
                 env={"PATH": "/usr/bin:/bin", "PS1": "ready> ", "TERM": "dumb", "HISTFILE": ""})
    client.wait_output("sh", "ready> ")

    def type(text, expect):
        before = len(client.output("sh"))
        client.write("sh", text)
        client.wait(lambda: expect.encode() in client.output("sh")[before:], what=f"{expect!r}")
        return client.output("sh")[before:].decode()

    assert "no job control" not in client.output("sh").decode()
    type("echo $((6*7))\n", "42\r\n")
    type("sleep 1000.25\n", "sleep 1000.25\r\n")
    wait_foreground("1000.25")
    type(b"\x1a", "Stopped")
    type("jobs\n", "Stopped                 sleep 1000.25")
    type("fg\n", "sleep 1000.25\r\n")
    wait_foreground("1000.25")
    type(b"\x03", "ready> ")
    type("echo code $?\n", "code 130\r\n")
    type("sleep 2000 &\n", "ready> ")
    type("kill %1; wait %1; echo gone $?\n", "gone 143")
    client.write("sh", "exit 7\n")
    assert client.finished("sh").code == 7


def test_hangup_ends_background_jobs(client):
    client.sh("a", "sleep 1000 & echo started", tty=True)
    r = client.finished("a")
    assert r.pty == "started\r\n"


def test_large_output_of_a_terminal_is_whole(client):
    r = client.run_sh("a", "stty -opost; seq 1 100000", tty=True)
    assert r.pty == "".join(f"{i}\n" for i in range(1, 100001))


def test_output_right_before_the_end(client):
    """EIO is the end of file, and nothing before it is lost."""
    for i in range(50):
        r = client.run_sh(f"p{i}", "printf %5000d 7", tty=True)
        assert len(r.pty) == 5000, i


def test_pipe_stdin_does_not_matter_and_terminate_works(client):
    client.sh("a", 'trap "exit 7" TERM HUP INT; echo ready; while :; do sleep 0.1; done', tty=True, pipeStdin=False)
    client.wait_output("a", "ready")
    assert client.write("a", "x\n") == {"status": "accepted"}
    assert client.terminate("a") is True
    assert client.finished("a").code == 137
