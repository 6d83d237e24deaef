# SPDX-License-Identifier: ISC
"""Where no control group counts memory, the init of a sandboxed command watches what the command and all it starts have
resident. Who has more than command-memory-max is killed, whole; who only reserves it is not.
"""
import os
import pathlib
import shutil
import time

import pytest
from conftest import ROOT, Configured, Shell, children, name, poll, temporary
from policies import managed, path, workspace_write

LIMIT = 256 << 20       # of more, most time would go into pages

TOUCH = "import mmap\ndef take(mib, flags=mmap.MAP_PRIVATE):\n    m = mmap.mmap(-1, mib << 20, flags | mmap.MAP_ANONYMOUS)\n" \
        "    for i in range(0, mib << 20, 4096): m[i] = 1\n    return m\n"


def python(script):
    return f"exec /usr/bin/python3 -c '{TOUCH}{script}'"


@pytest.fixture(scope="module")
def session(mode, user):
    with temporary(user) as where:
        text = (f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
                f"[identity any]\nuser = {user.pw_name}\ncommand-memory-max = {LIMIT >> 20}M\n")
        server = Configured(mode, user, where / "execd.conf", text, ())
        c = server.ready()
        c.server = server
        yield c
        server.stop()


@pytest.fixture
def shell(session, place):
    return Shell(session, workspace_write(place), place)


@pytest.fixture
def watched(shell):
    """The shell, where the answer to a start says that the memory is watched."""
    id = shell.id()
    m = shell.client.start(id, ["/bin/true"], **shell.params())
    shell.client.finished(id)
    if "memoryBytes" not in m["result"]["sandbox"]["enforced"]["watchedLimits"]:
        pytest.skip("NOT TESTED: a control group counts memory here")
    return shell


def end_of(shell, script, timeout=60):
    id = shell.start(script)
    r = shell.client.finished(id, timeout)
    return r, shell.client.call("process/wait", {"processId": id})


# Each takes more than the limit, in another way, and does not end by itself: on a fast machine it would have ended
# before anybody looked.
BOMBS = {
    "alone": "import time\nkept = [take(16) for i in range(24)]\ntime.sleep(100)",
    # 40 times 8 MiB: nobody has much
    "many": "import os, time\nfor i in range(40):\n    if os.fork() == 0:\n        kept = take(8); time.sleep(100)\ntime.sleep(100)",
    # what a child shares with its parent is counted once, until it writes to it
    "written": "import os, time\nkept = take(100)\nfor i in range(6):\n    if os.fork() == 0:\n"
               "        for at in range(0, 100 << 20, 4096): kept[at] = 2\n        time.sleep(100)\ntime.sleep(100)",
    "shared": "import time\nkept = [take(16, mmap.MAP_SHARED) for i in range(24)]\ntime.sleep(100)",
    # the first thread has ended, and with it what /proc says of the process
    "thread": "import ctypes, threading, time\ndef work():\n    time.sleep(0.3); kept = [take(16) for i in range(24)]; time.sleep(100)\n"
              "threading.Thread(target=work).start()\nctypes.CDLL(None).pthread_exit(None)",
    # nobody may look into the process
    "hidden": "import ctypes, time\nctypes.CDLL(None).prctl(4, 0)\nkept = [take(16) for i in range(24)]\ntime.sleep(100)",
    # its parents are gone
    "orphan": "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork(): os._exit(0)\n    kept = [take(16) for i in range(24)]; time.sleep(100)\n"
              "time.sleep(100)",
    # it slept for so long that looks are rare
    "later": "import time\ntime.sleep(4)\nkept = [take(16) for i in range(24)]\ntime.sleep(100)",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_who_has_too_much_is_killed(watched, bomb):
    r, end = end_of(watched, python(BOMBS[bomb]))
    assert (r.code, end["signal"], end["oomKilled"], end["killedBy"]) == (137, "KILL", True, "memory"), (r.stderr, end)


def test_a_part_that_has_too_much_takes_all_along(watched):
    """Also the command that only waits for it, as a control group would have it."""
    r, end = end_of(watched, f"sleep 100 & ({python(BOMBS['alone'])}); echo survived")
    assert (r.code, r.stdout, end["oomKilled"]) == (137, "", True)


HONEST = {
    "reserved": "print(len([mmap.mmap(-1, 1 << 30, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for i in range(64)]))",
    # eight children that share what their parent has
    "shared": "import os, time\nkept = take(125)\nfor i in range(8):\n    if os.fork() == 0:\n        time.sleep(1); os._exit(0)\n"
              "for i in range(8): os.wait()\nprint(64)",
    "children": "import subprocess\nkept = take(175)\nfor i in range(100): subprocess.run([\"/bin/true\"])\nprint(64)",
    "one after the other": "import os\nfor i in range(6):\n    if os.fork() == 0:\n        take(150); os._exit(0)\n    os.wait()\nprint(64)",
    "file": "f = open(\"f\", \"w+b\"); f.truncate(375 << 20)\nm = mmap.mmap(f.fileno(), 0, mmap.MAP_SHARED, mmap.PROT_READ)\n"
            "for i in range(0, len(m), 4096): m[i]\nprint(64)",
}


@pytest.mark.parametrize("work", HONEST)
def test_who_has_less_is_left_alone(watched, work):
    r, end = end_of(watched, python(HONEST[work]))
    assert (r.code, r.stdout, end["oomKilled"]) == (0, "64\n", False), (r.stderr, end)


def test_what_is_killed_by_others_is_not_said_to_be_memory(watched):
    r, end = end_of(watched, "kill -9 $$")
    assert (end["signal"], end["oomKilled"]) == ("KILL", False)
    id = watched.start("sleep 100")
    watched.client.terminate(id)
    watched.client.finished(id)
    assert watched.client.call("process/wait", {"processId": id})["oomKilled"] is False


def init_of(server, client):
    def find():
        found = [p for p in children(server.runner(client)) if name(p) == "execd-init"]
        return len(found) == 1 and found[0]

    return poll(find, what="the init of the command")


@pytest.mark.skipif(not ROOT, reason="NOT TESTED: only root may look at an init")
def test_the_init_sees_its_processes_and_nothing_else(watched):
    """It has no capability, a filter, no file system but a /proc of the command's, and nothing open but what it needs."""
    id = watched.start("read line", pipeStdin=True)
    init = pathlib.Path(f"/proc/{init_of(watched.client.server, watched.client)}")
    poll(lambda: "Seccomp:\t2\n" in (init / "status").read_text(), what="its filter")
    status = dict(line.split(":\t", 1) for line in (init / "status").read_text().splitlines() if ":\t" in line)
    assert {status[f"Cap{x}"].strip("0") for x in ("Inh", "Prm", "Eff", "Amb")} == {""} and status["NoNewPrivs"] == "1"
    seen = {p.name for p in (init / "root").iterdir()}
    assert {p for p in seen if not p.isdigit()} <= {"self", "thread-self"} and seen >= {"1"} and len(seen) < 10, seen
    assert sorted(os.readlink(p) for p in (init / "fd").iterdir()) == ["/", "anon_inode:[eventfd]"]
    assert os.path.samefile(init / "cwd", init / "root")
    watched.client.terminate(id)
    watched.client.finished(id)


def waits(pid):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def test_who_sleeps_is_hardly_looked_at(watched):
    """Once a second: in ten seconds of an idle shell the init wakes up about ten times, and takes no time for it."""
    id = watched.start("read line", pipeStdin=True)
    init = init_of(watched.client.server, watched.client)
    # The first pauses are as short as the limit asks for, and each is twice the one before.
    first = waits(init)
    poll(lambda: waits(init) >= first + 6, timeout=30, what="six looks")
    before = waits(init)
    began = time.monotonic()
    poll(lambda: waits(init) >= before + 6, timeout=30, what="six more looks")
    took = time.monotonic() - began
    cpu = sum(map(int, pathlib.Path(f"/proc/{init}/stat").read_text().rsplit(")", 1)[1].split()[11:13]))
    assert took > 4, "it looks too often"
    assert cpu <= 1, "in hundredths of a second"
    watched.client.terminate(id)
    watched.client.finished(id)


def test_without_a_proc_each_process_is_held(session, place, watched):
    """An init sees nobody there, and the answer says so. A sanitizer needs /proc anyway."""
    shell = Shell(session, managed(*[path(p, "read") for p in ("/usr", "/lib", "/lib64", "/bin")], path(place, "write")), place)
    id = shell.id()
    m = session.start(id, ["/bin/bash", "-c", "ulimit -d"], **shell.params())
    enforced = m["result"]["sandbox"]["enforced"]
    assert "ownProc" not in enforced["layers"] and enforced["watchedLimits"] == []
    assert session.finished(id).stdout == f"{LIMIT >> 10}\n"


@pytest.mark.skipif(not shutil.which("gcc"), reason="NOT TESTED: gcc is not installed")
@pytest.mark.parametrize("sanitizer, code, said", [
    ("address", "char *p = malloc(4); p[n + 3] = 1; return p[0];", "heap-buffer-overflow"),
    ("address", "char *volatile p = malloc(77); p = 0; return p != 0;", "detected memory leaks"),
    ("thread", "pthread_t t; pthread_create(&t, 0, f, 0); x++; pthread_join(t, 0); return 0;", "data race"),
])
def test_sanitizers_work(shell, sanitizer, code, said):
    source = "#include <pthread.h>\\n#include <stdlib.h>\\nint x; void *f(void *p) { x++; return p; }\\n" \
             f"int main(int n, char **v) {{ {code} }}\\n"
    r = shell.run(f"printf '{source}' > p.c && gcc -g -fsanitize={sanitizer} -pthread -o p p.c && ./p", timeout=60)
    assert r.code != 0 and said in r.stderr, r.stderr
