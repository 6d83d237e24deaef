# SPDX-License-Identifier: ISC
"""/metrics on the operator's listener: what it counts, and that a scraper can
read it (Prometheus' text format, version 0.0.4)."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from conftest import EXECD, digest, poll
from execd_client import Closed
from test_listeners import get

VALUE = r'"(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)(\{[a-z]+=%s(?:,[a-z]+=%s)*\})? (\S+)' % (VALUE, VALUE))


def lint(text):
    """What `promtool check metrics` minds, and more: the families by name."""
    families, family, last = {}, None, None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, help = line[7:].split(" ", 1)
            assert name not in families and help.strip() == help and help.endswith("."), line
            family = families[name] = {"help": help, "samples": {}}
            last = name
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name == last and "type" not in family and not family["samples"], line
            family["type"] = kind
        else:
            m = SAMPLE.fullmatch(line)
            assert m, line
            name, labels, value = m[1], m[2] or "", float(m[3])
            base = re.sub("_(bucket|sum|count)$", "", name) if family["type"] == "histogram" else name
            assert base == last, f"{line}: outside of its family"
            assert (name, labels) not in family["samples"], f"{line}: twice"
            family["samples"][name, labels] = value
    for name, f in families.items():
        assert f["samples"], f"{name}: nothing"
        assert re.fullmatch(r"execd_[a-z_]+", name)
        assert (f["type"] == "counter") == name.endswith("_total"), name
        assert f["type"] in ("counter", "gauge", "histogram"), name
        assert not re.search(r"_(ms|us|milliseconds|microseconds|kib|kb|mb|kilobytes)(_|$)", name), "base units"
        if f["type"] != "histogram":
            assert len({re.sub("=" + VALUE, "", labels) for _, labels in f["samples"]}) == 1, f"{name}: the same labels"
        if f["type"] == "histogram":
            check_histogram(name, f["samples"])
        else:
            whole = "_seconds" not in name
            assert all(v >= 0 and (v == int(v) or not whole) for v in f["samples"].values()), name
    return families


def check_histogram(name, samples):
    buckets = [(float(re.search('le="(.*)"', labels)[1]), v) for (n, labels), v in samples.items() if n == f"{name}_bucket"]
    assert buckets == sorted(buckets) and buckets[-1][0] == float("inf")
    assert [v for _, v in buckets] == sorted(v for _, v in buckets), "each holds all below it"
    assert buckets[-1][1] == samples[f"{name}_count", ""] and samples[f"{name}_sum", ""] >= 0


class Scraper:
    def __init__(self, url):
        self.url = url

    def __call__(self, name, labels=""):
        try:
            status, text = get(self.url, "/metrics")
        except ConnectionError:
            # A front-end that is replaced meanwhile ends its connections. The next one answers.
            status, text = get(self.url, "/metrics")
        assert status == 200
        families = lint(text)
        return next(f["samples"][name, labels] for f in families.values() if (name, labels) in f["samples"])


@pytest.fixture
def served(configured, user, directory):
    def start(*more, address="ws://127.0.0.1:0"):
        s = configured("\n".join([
            "[listener all]", f"address = {address}", "[listener op]", f"address = unix:{directory}/op", "operate = yes",
            "[identity a]", f"user = {user.pw_name}", "sandbox-allow-unsandboxed = yes", f"token-sha256 = {digest('t')}",
            *more, ""]))
        return s, Scraper(s.urls[1])
    return start


@pytest.mark.parametrize("audit", [True, False])
def test_what_is_counted(served, directory, audit):
    s, metric = served("command-deadline = 400ms", *(["[audit]", f"file = {directory}/log"] if audit else []))
    assert lint(get(s.urls[1], "/metrics")[1]) and get(s.urls[1], "/metrics", "HEAD") == (200, "")
    c = s.connect(token="t").ready()
    other = s.connect(token="t").ready()
    other.drop()
    s.wait_log("detached")
    assert (metric("execd_open_sessions", '{state="attached"}'), metric("execd_open_sessions", '{state="detached"}')) == (1, 1)
    c.run_sh("a", "head -c 12345 /dev/zero")
    c.sh("b", "sleep 1000")
    poll(lambda: metric("execd_processes") == 1, what="one that runs")
    c.finished("b")
    poll(lambda: metric("execd_processes") == 0, what="none")
    assert metric("execd_processes_started_total") == 2 == metric("execd_process_start_seconds_count")
    assert 0 < metric("execd_process_start_seconds_sum") < 10
    assert metric("execd_processes_exited_total", '{by="itself"}') == 1
    assert metric("execd_processes_exited_total", '{by="command-deadline"}') == 1
    # What a limit did is told in the command's output.
    assert metric("execd_output_bytes_total") == 12345 + len("execd: killed: command-deadline of identity a\n")
    assert metric("execd_initialize_seconds_count") == 2
    assert metric("execd_audit_records_total") == (10 if audit else 0) and metric("execd_audit_failing") == 0
    with pytest.raises(Closed):
        s.connect(token="wrong")
    assert metric("execd_credentials_refused_total", '{reason="invalid websocket bearer token"}') == 1


def test_commands_of_a_killed_runner_have_ended(served):
    s, metric = served()
    c = s.connect(token="t").ready()
    for id in "a", "b":
        c.sh(id, "echo up; exec sleep 1000")
        c.wait_output(id, "up")
    poll(lambda: metric("execd_processes") == 2, what="both")
    os.kill(s.runner(c), signal.SIGKILL)
    c.wait_closed()
    poll(lambda: metric("execd_processes") == 0, what="none")
    assert metric("execd_processes_exited_total", '{by="session-end"}') == 2


RULES = pathlib.Path(__file__).parents[2] / "contrib/prometheus"


def test_what_alerts_need(served):
    before = time.time()
    s, metric = served()
    version = subprocess.run([EXECD, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    assert metric("execd_build_info", f'{{version="{version}"}}') == 1
    assert before - 1 <= metric("execd_start_time_seconds") <= time.time()
    assert (metric("execd_drained"), metric("execd_programs_replaced_total", '{program="execd-frontend"}')) == (0, 0)
    os.kill(s.frontend(), signal.SIGKILL)
    poll(lambda: s.log.count("serving; ") == 2, what="the next front-end")
    assert metric("execd_programs_replaced_total", '{program="execd-frontend"}') == 1
    s.child.send_signal(signal.SIGUSR1)
    poll(lambda: metric("execd_drained") == 1, what="drained")


def test_rules_name_what_there_is(served):
    """execd_certificate_expiry_timestamp_seconds is there where a certificate is."""
    s, _ = served()
    there = lint(get(s.urls[1], "/metrics")[1]).keys()
    named = set(re.findall(r"execd_\w+", "".join(re.findall("expr: (.*)", (RULES / "execd.rules.yml").read_text()))))
    assert len(named) >= 7 and named - there == {"execd_certificate_expiry_timestamp_seconds"}


def test_each_rule_fires():
    if not shutil.which("promtool"):
        pytest.skip("THE RULES FOR PROMETHEUS ARE NOT TRIED: there is no promtool")
    for what in ("check", "execd.rules.yml"), ("test", "execd.test.yml"):
        r = subprocess.run(["promtool", what[0], "rules", what[1]], capture_output=True, text=True, cwd=RULES, timeout=60)
        assert r.returncode == 0, r


def test_memory_of_each_program(served):
    s, metric = served()
    clients = [s.connect(token="t").ready() for _ in range(3)]
    page = os.sysconf("SC_PAGESIZE")

    def resident(pids):
        return sum(int(open(f"/proc/{p}/statm", encoding="ascii").read().split()[1]) * page for p in pids)

    for program, pids in (("execd", [s.pid]), ("execd-broker", [s.broker]), ("execd-frontend", [s.frontend()]),
                          ("execd-runner", [s.runner(c) for c in clients])):
        label = f'{{program="{program}"}}'
        assert metric("execd_programs", label) == len(pids)
        assert abs(metric("execd_resident_memory_bytes", label) / resident(pids) - 1) < 0.3, program
    assert metric("execd_programs", '{program="execd-keys"}') == 0


OTHER, OTHER_LABEL = "b.c_d-e", '{identity="b.c_d-e"}'


def with_other(user, more=0):
    names = [*(f"i{n}" for n in range(more)), OTHER]
    return [f"[identity {name}]\nuser = {user.pw_name}" for name in names] + [f"token-sha256 = {digest('o')}"]


def test_what_each_identity_uses(served, user):
    """Processor time is there when its session has ended, and is counted once: a reload begins at zero."""
    s, metric = served(*with_other(user))
    a, seconds = '{identity="a"}', "ulimit -t 2; while :; do :; done"

    def sessions():
        return metric("execd_identity_sessions", a), metric("execd_identity_sessions", OTHER_LABEL)

    def cpu(label=a):
        return metric("execd_identity_cpu_seconds_total", label)

    assert sessions() == (0, 0) and metric("execd_identity_memory_bytes", a) == cpu() == cpu(OTHER_LABEL) == 0
    c, other = s.connect(token="t").ready(), s.connect(token="o").ready()
    if f"execd_identity_cpu_seconds_total{a}" not in get(s.urls[1], "/metrics")[1]:
        pytest.skip("WHAT SESSIONS USE IS NOT TESTED: no control group counts processor time here")
    c.run_sh("a", seconds)
    os.kill(s.runner(c), signal.SIGKILL)
    c.wait_closed()
    # Nothing was read before the end.
    poll(lambda: sessions() == (0, 1), what="its end")
    # Two seconds by ticks; what was used may be less.
    assert 1 < cpu() < 10 and metric("execd_identity_memory_bytes", a) == 0
    assert cpu(OTHER_LABEL) < 1 and metric("execd_identity_memory_bytes", OTHER_LABEL) > 100_000
    before = cpu()
    other.run_sh("a", seconds)
    assert cpu(OTHER_LABEL) > 1 and cpu() == before
    broker = s.broker
    s.reload(s.path.read_text() + "# changed\n", "adopted")
    assert s.broker != broker and sessions() == (0, 1) and cpu(OTHER_LABEL) < 1 and cpu() == 0


def test_identities_that_are_left_out(served, user):
    """There are 64 places. Who has a session is there, though others come first in the file."""
    s, metric = served(*with_other(user, 64))
    assert metric("execd_identities_left_out") == 2
    with pytest.raises(StopIteration):
        metric("execd_identity_sessions", OTHER_LABEL)
    s.connect(token="o").ready()
    assert metric("execd_identity_sessions", OTHER_LABEL) == 1 and metric("execd_identities_left_out") == 2
    families = lint(get(s.urls[1], "/metrics")[1])
    samples = {name: len(f["samples"]) for name, f in families.items() if "_identity_" in name}
    assert samples["execd_identity_sessions"] == 64
    # Of who has a session it is known only where a control group counts.
    assert {samples["execd_identity_cpu_seconds_total"], samples["execd_identity_memory_bytes"]} <= {63, 64}


def test_what_each_identity_is_denied(served, user):
    """A session that it does not get, and a listener that does not let it in."""
    s, metric = served(*with_other(user), f"[listener closed]\naddress = ws://127.0.0.1:0\nidentities = {OTHER}", "[limits]", "max-sessions = 1")
    a = '{identity="a"}'
    assert metric("execd_identity_denials_total", a) == metric("execd_identity_denials_total", OTHER_LABEL) == 0
    s.connect(token="o").ready()
    with pytest.raises(AssertionError, match="limit of 1 sessions reached"):
        s.connect(token="t").ready()
    with pytest.raises(Closed, match="401"):
        s.connect(url=s.urls[2], token="t")
    assert (metric("execd_identity_denials_total", a), metric("execd_identity_denials_total", OTHER_LABEL)) == (2, 0)


def test_penalties(served):
    s, metric = served("[limits]", "exempt = none")
    for _ in range(2):
        with pytest.raises(Closed):
            s.connect(token="wrong")
    assert metric("execd_penalties_total", '{offence="authentication"}') == 2 and metric("execd_sources") == 1


def test_it_goes_on_after_another_frontend(served):
    """The broker's counters are not the front-end's."""
    s, metric = served()
    c = s.connect(token="t").ready()
    c.run("a", ["/bin/true"])
    poll(lambda: metric("execd_processes_exited_total", '{by="itself"}') == 1, what="its end")
    frontend = s.frontend()
    os.kill(frontend, 9)
    poll(lambda: s.frontend() != frontend, what="another front-end")
    assert metric("execd_processes_started_total") == 1 and metric("execd_initialize_seconds_count") == 0


def test_records_that_are_lost(served):
    s, metric = served("[audit]", "file = /dev/full", "required = no")
    c = s.connect(token="t").ready()
    c.run("a", ["/bin/true"])
    poll(lambda: metric("execd_audit_records_lost_total") == 4, what="four losses")
    assert metric("execd_audit_failing") == 1 and metric("execd_audit_records_total") == 0


def test_who_asks_and_leaves(served):
    """Between the question and the broker's answer."""
    import socket
    s, metric = served()
    for _ in range(50):
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(s.urls[1][len("unix:"):])
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        sock.close()
    assert metric("execd_programs", '{program="execd"}') == 1
