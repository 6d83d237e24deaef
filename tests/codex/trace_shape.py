# SPDX-License-Identifier: ISC
"""What a trace keeps of a session with the real CLI: the client's frames, and the shape of what it was sent."""
import json
import pathlib
import re

TRACES = pathlib.Path(__file__).parent / "traces"
# Ids that the client makes for itself.
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


class Places:
    """Directories of the machine, each under a name; a longer one is looked for before a shorter one."""

    def __init__(self, **named):
        self.named = sorted(((str(p), name) for name, p in named.items()), reverse=True)

    def hide(self, message):
        text = json.dumps(message)
        for path, name in self.named:
            text = text.replace(path, f"@{name}@")
        return json.loads(text)

    def fill(self, message):
        text = json.dumps(message)
        for path, name in self.named:
            text = text.replace(f"@{name}@", path)
        return json.loads(text)


def shape(value):
    """The members and their types, without what they are; of a list what its first member is."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    if isinstance(value, list):
        return [shape(v) for v in value[:1]]
    return None if value is None else type(value).__name__


def fits(kept, value, at=""):
    """None, or what a client that was sent the kept shape would miss in this value. More members than it had are no loss,
    and what is null or an empty list says nothing."""
    if kept is None or value is None:
        return None
    if isinstance(kept, dict) and isinstance(value, dict):
        return next((f for k in kept if (f := fits(kept[k], value[k], f"{at}.{k}") if k in value else f"{at}.{k} is missing")),
                    None)
    if isinstance(kept, list) and isinstance(value, list):
        return next((f for v in value if kept and (f := fits(kept[0], v, f"{at}[]"))), None)
    return None if not isinstance(kept, (dict, list)) and kept == type(value).__name__ else f"{at} is {value!r}, not {kept}"


def answer_shape(message):
    """An error is its code and its data; its words may change."""
    if "error" in message:
        return {"code": message["error"]["code"], "data": message["error"].get("data")}
    return {"result": shape(message["result"])}


def recorded(messages, places):
    """The frames in their order: what the client sent, and of the server each answer, and of notifications the first of its
    kind about a process."""
    frames, seen, ids = [], set(), {}
    for _, who, message in messages:
        if who == "client":
            text = ID.sub(lambda m: ids.setdefault(m[0], f"{len(ids):08x}-0000-4000-8000-000000000000"),
                          json.dumps(places.hide(message)))
            frames.append({"client": json.loads(text)})
        elif "method" not in message:
            frames.append({"id": message["id"], **answer_shape(message)})
        else:
            process = ID.sub(lambda m: ids.get(m[0], m[0]), message["params"].get("processId", ""))
            if (message["method"], process) not in seen:
                seen.add((message["method"], process))
                frames.append({"method": message["method"], "process": process, "params": shape(message["params"])})
    return frames
