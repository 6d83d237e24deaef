# SPDX-License-Identifier: ISC
"""Where something is mounted over parts of /proc, as in a pod, no sandbox has a /proc of its own: all are refused,
or Landlock and seccomp hold what they can alone, if the operator says so.
"""
import subprocess
import sys

from conftest import EXECD, as_user
from landlock_only import KEYS, REFUSED, WITHOUT, abi_3, bare, numbered, policy, run, uri, where  # noqa: F401

pytestmark = numbered

REQUIRED = {"mode": "require", "policy": {"type": "read-only"}, "networkPolicy": "restricted", "fileSystemPolicy": {
    "kind": "restricted", "entries": policy()["permissions"]["file_system"]["entries"]}}


def test_without_the_key_it_is_refused_as_before(bare, where):
    c = bare(KEYS.replace("landlock-only = yes\n", ""), unshare="masked")
    m = c.start("a", ["/usr/bin/touch", str(where / "work/ran")], cwd=uri(where), env={},
                sandbox=policy((where / "work", "write")))
    assert m.get("error") == REFUSED and not (where / "work/ran").exists(), m
    c.server.wait_log("mounting its own /proc")
    assert "landlock-only" not in c.server.log


@abi_3
def test_with_the_key_it_works_and_is_told(bare, where):
    c = bare(unshare="masked")
    sandbox = policy((where / "work", "write"))
    r = run(c, "echo in > work/made; echo out > out/made; cat work/made; ls /proc/$PPID >/dev/null && echo seen", where,
            sandbox)
    assert r.stdout == "in\nseen\n" and "Permission denied" in r.stderr, r
    assert not (where / "out/made").exists()
    assert run.answer["sandbox"]["enforced"]["layers"] == ["noCapabilities", "noNewPrivs", "landlock", "seccomp"]
    c.server.wait_log("landlock-only: no new /proc can be mounted here")
    m = c.request("fs/writeFile", {"path": uri(where / "out/made"), "dataBase64": "eA==", "sandbox": sandbox})
    assert "error" in m and not (where / "out/made").exists(), m
    assert "error" not in c.request("fs/writeFile", {"path": uri(where / "work/by-name"), "dataBase64": "eA==",
                                                     "sandbox": sandbox})


def test_a_policy_that_needs_a_view_is_refused_with_both_reasons(bare, where):
    c = bare(unshare="masked")
    m = c.start("a", ["/bin/true"], cwd=uri(where), env={}, sandbox=policy((where / "out/file", "deny")))
    assert m.get("error") == REFUSED, m
    c.server.wait_log("sandbox: mounting its own /proc: ")
    c.server.wait_log(f"sandbox: landlock-only: the policy denies reading {where}/out/file")


@abi_3
def test_whoever_requires_every_layer_first_does_not_take_it_from_others(bare, where):
    """One plan is one sandbox: the first to ask must not leave one that can start nothing."""
    c = bare(KEYS + "compat-launch-config = yes\n", unshare="masked")
    for again in range(2):
        m = c.start(f"a{again}", ["/bin/true"], cwd=uri(where), env={},
                    sandbox={**REQUIRED, "sandboxPolicyCwd": str(where)})
        assert "error" in m, m
        c.server.wait_log("sandbox: landlock-only: the request requires every layer")
        assert run(c, "true", where, policy()).code == 0


@abi_3
def test_what_doctor_says(user, where):
    argv = as_user(user, [sys.executable, "-c", WITHOUT, "", "masked", str(EXECD), "doctor"])
    r = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd="/")
    assert r.returncode not in (0, 1), r
    said = {line[9:].split(":")[0]: line for line in r.stdout.splitlines()}
    proc = said["pid namespace and its /proc"]
    assert proc.startswith("MISSING") and "procMount: Unmasked" in proc and "unmask=ALL" in proc, r.stdout
    assert said["user namespace"].startswith("ok"), r.stdout
    only = [line for line in r.stdout.splitlines() if "landlock-only = yes" in line]
    assert len(only) == 1 and "see the processes of their user" in only[0], r.stdout
