# SPDX-License-Identifier: ISC
"""What the programs of a server cost at a moment: /proc of everything below one pid."""
import os
import pathlib
import re
import time

PROC = pathlib.Path("/proc")
OWN = ("execd", "codex", "sshd")  # how the names of a server's own programs begin; the rest is its workload
CPU_CLOCK = 2  # clock_getcpuclockid(3): of a process, in ns


def _stat(pid):
    """(comm, fields behind it) of /proc/PID/stat, which may be gone."""
    text = (PROC / str(pid) / "stat").read_text()
    return text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()


def below(root):
    """{pid: (comm, fields)} of the root and its descendants."""
    found = {}
    for name in os.listdir(PROC):
        if name.isdigit():
            try:
                found[int(name)] = _stat(name)
            except OSError:
                continue
    children = {}
    for pid, (_, fields) in found.items():
        children.setdefault(int(fields[1]), []).append(pid)
    todo, tree = [root], {}
    while todo:
        pid = todo.pop()
        if pid in found:
            tree[pid] = found[pid]
            todo += children.get(pid, [])
    return tree


def own_programs(root):
    return {pid: of for pid, of in below(root).items() if pid == root or of[0].startswith(OWN)}


def cpu_seconds(root):
    """Of the server's own programs that live. What they have reaped is workload."""
    total = 0
    for pid in own_programs(root):
        try:
            total += time.clock_gettime((~pid << 3) | CPU_CLOCK)
        except OSError:
            continue
    return total


def _number(text, name):
    found = re.search(rf"^{name}:\s+(\d+)", text, re.M)
    return int(found[1]) if found else 0


def pss_kib(root):
    """Proportional set size of the server's own programs. None: it may not be read (only root may)."""
    total = 0
    for pid in own_programs(root):
        try:
            total += _number((PROC / str(pid) / "smaps_rollup").read_text(), "Pss")
        except PermissionError:
            return None
        except OSError:
            continue
    return total


def settled_pss_kib(root, seconds=8):
    """The same when it has stopped to change."""
    last, end = pss_kib(root), time.monotonic() + seconds
    while last is not None and time.monotonic() < end:
        time.sleep(.5)
        now = pss_kib(root)
        if abs(now - last) <= max(32, last / 200):
            return now
        last = now
    return last


def faults_and_switches(root):
    """Page faults of the own programs and of what they have reaped; voluntary context switches of the former."""
    faults = switches = 0
    for pid, (_, fields) in own_programs(root).items():
        faults += sum(map(int, fields[7:11]))  # minflt, cminflt, majflt, cmajflt
        for task in (PROC / str(pid) / "task").glob("*/status"):
            try:
                switches += _number(task.read_text(), "voluntary_ctxt_switches")
            except OSError:
                continue
    return faults, switches


def kernel(root):
    """Descriptors and page tables (KiB) of the own programs, their number, and the host's kernel memory in KiB."""
    descriptors = tables = 0
    programs = own_programs(root)
    for pid in programs:
        try:
            descriptors += len(os.listdir(PROC / str(pid) / "fd"))
            tables += _number((PROC / str(pid) / "status").read_text(), "VmPTE")
        except OSError:
            continue
    host = (PROC / "meminfo").read_text()
    used = sum(_number(host, name) for name in ("Slab", "KernelStack", "PageTables", "Percpu"))
    return {"programs": len(programs), "descriptors": descriptors, "page_tables_kib": tables, "kernel_kib": used}
