# SPDX-License-Identifier: ISC
"""What environments.sh has set up, with the real Codex: execd-environment@.service runs it as forwarder, a model of the
service is between, and `codex exec` is what an agent has."""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, "/srv/execd/tests/codex")
import driver
from rendezvous import Rendezvous

PATIENCE_S = 600  # Codex has 315 MB, and the processor is emulated
driver.TIMEOUT = PATIENCE_S
NAMES = ("web", "two")


def told(right, what, said):
    print(f"ok {what}" if right else f"not ok {what}: {said!r}", flush=True)


service = Rendezvous()
for name in NAMES:
    pathlib.Path(f"/etc/execd/environments/{name}.conf").write_text(
        f"REMOTE={service.url}\nENVIRONMENT_ID=env_{name}\nCONNECT=ws://127.0.0.1:8767\n")
    subprocess.run(["systemctl", "restart", f"execd-environment@{name}"], check=True)
for name in NAMES:
    service.wait_executor(f"env_{name}", timeout=PATIENCE_S)
told(sorted(service.bearers) == ["Bearer sk-of-two", "Bearer sk-of-web"], "Codex has the keys of LoadCredential=", service.bearers)
for name, other in (NAMES, NAMES[::-1]):
    at = pathlib.Path(tempfile.mkdtemp())
    codex = driver.Codex("/usr/local/bin/codex", at, at, f"/home/{name}", env={
        "CODEX_EXEC_SERVER_NOISE_REGISTRY_URL": service.url, "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN": "tok",
        "CODEX_EXEC_SERVER_NOISE_ENVIRONMENT_ID": f"env_{name}"})
    said = codex.run(f"id -un; cat /home/{name}/secret; cat /home/{other}/secret 2>&1").end()
    told(said[:3] == [name, "of", name] and "Permission" in said, f"an agent's command of {name}", said)
    ctl = subprocess.run(["execd", "ctl", "list"], capture_output=True, text=True).stdout
    told(f"of execd-{name}, listener agents" in ctl, f"ctl list shows {name}", ctl)
    codex.finish()
    codex.stop()
service.stop()
