# SPDX-License-Identifier: ISC
"""environmentConfig/read: the keys that are asked for, of configuration files that are there (doc/protocol.md section 13).

tests/codex/test_differential.py compares the same with the reference server.
"""
import json
import os
import shutil
import socket
import tomllib

import pytest
from conftest import ROOT


@pytest.fixture
def home(user):
    """The user's ~/.codex, as it was before afterwards."""
    path = os.path.join(user.pw_dir, ".codex")
    if not ROOT or os.path.exists(path):
        pytest.skip("NOT TESTED: ~/.codex belongs to somebody")
    os.mkdir(path)
    os.chmod(path, 0o755)
    yield path
    shutil.rmtree(path)


def write(home, text):
    with open(os.path.join(home, "config.toml"), "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def read(client, paths, requirements=(), call="call", cwd="file:///"):
    return getattr(client, call)("environmentConfig/read", {
        "cwd": cwd, "configPaths": paths, "requirementsPaths": list(requirements)})


def layer(client, *paths):
    layers = read(client, list(paths))["config"]["layers"]
    assert len(layers) <= 1
    return tomllib.loads(layers[0]["toml"]) if layers else None


def shown(value):
    """Tables in any order; numbers and times with their types."""
    return json.dumps(value, sort_keys=True, default=repr)


TEXT = r'''
model = "x" # a comment
"a key" = 'lit\eral'
multi = """
a
"b" \
   c"""
quotes = """"two""" # one before the end
apostrophes = \'\'\'''two''\'\'\'
a.b.c = 1
a.b.d = { x = 1, "y z" = [ 1, { deep = true } ] }
numbers = [ 1_000, 0xdead_beef, 0o17, 0b101, -5, +7, 1e10, 3.5e-2, inf, -nan, 9223372036854775807 ]
times = [ 07:32:00, 1979-05-27, 1979-05-27T07:32:00, 1979-05-27 07:32:00.123Z, 2024-02-29t00:00:60-23:59 ]
escapes = "\b\t\n\f\r\"\\\u00e9\U0001F600"
umlaut = "grüße"
empty = []
many = [
  1, # one
  2,
]
[tab]
z = 1
[tab.sub]
q = "1"
[[list]]
n = 1
[[list]]
n = 2
[list.inner]
k = true
[[list.inner2]]
[nothing]
'''.replace(r"\'", "'").replace(":60-", ":59-")


def test_every_value(client, home):
    """What comes back means what was written, whole or in part."""
    write(home, TEXT)
    want = tomllib.loads(TEXT)
    assert shown(layer(client, *[[k] for k in want])) == shown(want)
    assert layer(client, ["tab", "z"], ["a", "b", "c"]) == {"tab": {"z": 1}, "a": {"b": {"c": 1}}}
    # A value that is no table ends a path early; a table without the key is there, and empty; what is not there is not.
    assert layer(client, ["model", "deeper"], ["list", "n"]) == {"model": "x", "list": want["list"]}
    assert layer(client, ["tab", "none"]) == {"tab": {}}
    assert layer(client, ["nothing"]) == {"nothing": {}}
    assert layer(client, ["none"], [""]) is None
    assert layer(client, ["tab"], ["tab", "z"]) == {"tab": want["tab"]} == layer(client, ["tab", "z"], ["tab"])


def test_who_is_asked(client, home, user):
    write(home, "model = 1\n")
    r = read(client, [["model"]], [["x"]])
    assert r["userHomeDir"] == f"file://{user.pw_dir}" and r["codexHomeDir"] == f"file://{home}"
    assert r["hostname"] == socket.gethostname()
    assert r["config"] == {"layers": [{"source": f"user ({home}/config.toml)", "baseDir": f"file://{home}",
                                       "toml": "model = 1\n"}], "cloudInsertionIndex": 0}
    assert r["requirements"] == {"layers": [], "cloudInsertionIndex": 0}
    os.unlink(os.path.join(home, "config.toml"))
    assert read(client, [["model"]])["config"]["layers"] == []


@pytest.mark.parametrize("text", [
    "x = \n", "x\n", "a = 1\na = 2\n", "[t]\n[t]\n", "a = 1\n[a]\n", "a.b = 1\n[a]\n", "a = {b = 1}\na.c = 2\n",
    "a = [1]\n[[a]]\n", "[[a]]\n[a]\n", "[a.b]\n[a]\nb.c = 1\n",
    "x = _1\n", "x = .5\n", "x = tru\n", "x = +true\n", "x = 1979-02-01 1\n", "x = -\n",
    'x = "\\q"\n', 'x = "\\ud800"\n', 'x = "a\nb"\n', 'x = "\x01"\n', "x = 'open\n", 'x = """open\n', "# \x01\n",
    b"x = '\xff'\n", "x = [1 2]\n", "x = [1\n", "x = {a = 1\n", "x = {a = 1,\n b = 2}\n", "x = 1 y = 2\n",
    "[x\n", "[[x]\n", "[]\n", "= 1\n", "a = " + "[" * 100, "a." * 100 + "b = 1\n",
    "".join(f"k{i} = 1\n" for i in range(10001)), "x = '''" + "y" * (1 << 20)])
def test_what_is_no_toml_is_told(client, home, text):
    """With its place; nothing of the file is used."""
    write(home, text)
    code, message = read(client, [["x"]], call="error")
    assert code == -32603 and message.startswith("failed to load executor-local config: "), message
    assert f"{home}/config.toml" in message
    assert len(text) < 1 << 19 and f"{home}/config.toml:" in message or "over 524288 bytes" in message


@pytest.mark.parametrize("value", ["01", "1__0", "0x", "1.", "9223372036854775808", "1979-02-29", "25:00:00", "-inf",
                                   "1979-05-27 07:32:00.5-08:00"])
def test_a_number_or_a_date_is_passed_on_as_it_stands(client, home, value):
    """Whoever asked for it judges it, as it does for its own file."""
    write(home, f"x = {value} # a comment\n")
    assert read(client, [["x"]])["config"]["layers"][0]["toml"] == f"x = {value}\n"


def test_parts_that_take_too_much_are_told(client, home):
    """Each table has the names of all around it."""
    write(home, f"[{'x' * 2000}]\n" + "".join(f"k{i}.a = 1\n" for i in range(4000)))
    code, message = read(client, [["x" * 2000]], call="error")
    assert code == -32603 and message.endswith("config.toml takes over 1048576 bytes"), message


def test_what_is_no_file_is_told(client, home, user):
    os.mkdir(os.path.join(home, "config.toml"))
    code, message = read(client, [["x"]], call="error")
    assert (code, message) == (-32603, "failed to load executor-local config: Failed to read config file "
                                       f"{home}/config.toml: path `{home}/config.toml` is not a file")
    os.rmdir(os.path.join(home, "config.toml"))
    os.mkfifo(os.path.join(home, "config.toml"))
    assert "is not a file" in read(client, [["x"]], call="error")[1]
    os.unlink(os.path.join(home, "config.toml"))
    write(home, "x = 1\n")
    os.chmod(os.path.join(home, "config.toml"), 0)
    if os.stat(os.path.join(home, "config.toml")).st_uid != user.pw_uid:
        assert "Permission denied (os error 13)" in read(client, [["x"]], call="error")[1]


@pytest.mark.parametrize("params, message", [
    ({"configPaths": []}, "at least one config or requirements path is required"),
    ({"configPaths": [[]]}, "TOML paths must contain at least one key segment"),
    ({"requirementsPaths": [["a"], []]}, "TOML paths must contain at least one key segment"),
    ({"configPaths": [[1]]}, "invalid type: number, expected a string"),
    ({"configPaths": "a"}, 'invalid type: string "a", expected a sequence'),
    ({"configPaths": None}, "invalid type: null, expected a sequence"),
    ({"cwd": None}, "invalid type: null, expected a string"),
    ({"cwd": "/tmp"}, "invalid URI: relative URL without a base"),
    ({"cwd": "file://host/x"}, "'file://host/x' is invalid on 'linux'")])
def test_params(client, params, message):
    whole = {"cwd": "file:///", "configPaths": [["a"]], "requirementsPaths": [], **params}
    assert client.error("environmentConfig/read", whole) == (-32602, message)
    for missing in whole:
        left = {"cwd": "file:///", "configPaths": [["a"]], "requirementsPaths": []}
        del left[missing]
        assert client.error("environmentConfig/read", left) == (-32602, f"missing field `{missing}`")


def test_a_policy_hides_the_files(configured, home, user, mode, sandboxes):
    """What the operator hides is hidden from this way too."""
    write(home, 'secret = "x"\n')
    s = configured(f"[listener main]\naddress = ws://127.0.0.1:0\nallow-unauthenticated = any\n"
                   f"[identity any]\nuser = {user.pw_name}\n[sandbox]\nmax-profile = workspace-write\nhide = {home}\n")
    c = s.ready()
    code, message = read(c, [["secret"]], call="error")
    assert code == -32603 and message.endswith(f"{home}/config.toml: Permission denied (os error 13)"), message
