# SPDX-License-Identifier: ISC
"""What people run works in a sandbox: programs.py has a row for each program, and doc/programs.md the table beside the
reference server."""
import pathlib
import re
import shutil

import pytest
from conftest import Shell, temporary
from policies import workspace_write
from programs import NETWORK, OTHERS

# What is known not to work, and what stands in its way (doc/programs.md).
KNOWN = {
    "go-build": "it takes the placeholder .git for a repository, as on the reference server (doc/sandbox.md C3.4)",
}


def test_the_table_has_every_row():
    """And those that do not work with execd are the known ones."""
    text = (pathlib.Path(__file__).parents[2] / "doc/programs.md").read_text()
    table = dict(re.findall(r"^\| (\S+) \| (works|fails) \| (?:works|fails) \| ", text, re.M))
    lists = re.findall(r"^All three run[^\n]*:\n(.*?)\.\n\n", text, re.M | re.S)
    rest = [name for names in lists for name in re.split(r",\s+", names)]
    assert sorted([*table, *rest]) == sorted([*NETWORK, *OTHERS])
    assert {name for name, works in table.items() if works == "fails"} == set(KNOWN)


@pytest.mark.nightly
@pytest.mark.parametrize("name", [*NETWORK, *OTHERS])
def test_it_works(session, user, name, request):
    needs, script, expected = NETWORK.get(name) or OTHERS[name]
    if shutil.which(needs, path="/usr/bin:/bin:/usr/sbin:/sbin") is None:
        pytest.skip(f"{name} IS NOT TESTED: {needs} is not installed")
    if name in KNOWN:
        request.applymarker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    network = "enabled" if name in NETWORK else "restricted"
    with temporary(user) as place:
        shell = Shell(session, workspace_write(place, network=network), place,
                      {"HOME": user.pw_dir, "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "dumb"})
        r = shell.run(script, 120)
    assert r.code == 0 and expected in r.stdout, (r.code, r.stdout[-2000:], r.stderr[-2000:])
