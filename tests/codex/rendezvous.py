# SPDX-License-Identifier: ISC
"""What OpenAI's Agents API is to `codex exec-server forward` and to the Codex that wants its environment: a registry,
and a place where the two meet. Keys and frames are passed on unread: the two speak Noise with each other."""
import asyncio
import http.server
import json
import threading

import websockets


class Rendezvous:
    def __init__(self):
        self.keys = {}            # the executor's, by environment
        self.ends = {}            # connections, by environment and side
        self.changed = threading.Condition()
        self.bearers = []         # of each registration
        self.loop = asyncio.new_event_loop()
        self.meeting = self._run(self._serve())
        self.port = self.meeting.sockets[0].getsockname()[1]
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def _run(self, coroutine):
        if not self.loop.is_running():
            threading.Thread(target=self.loop.run_forever, daemon=True).start()
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(30)

    async def _serve(self):
        return await websockets.serve(self._meet, "127.0.0.1", 0, max_size=None, ping_interval=None)

    def _answer(self, path, headers, body):
        environment, what = path.rsplit("/", 2)[1:]
        base = {"environment_id": environment, "security_profile": "noise_hybrid_ik_v1",
                "executor_registration_id": "registration-" + environment}
        at = f"ws://127.0.0.1:{self.port}/{environment}/"
        if what == "register":
            self.keys[environment] = body["executor_public_key"]
            self.bearers.append(headers["authorization"])
            return {**base, "url": at + "executor"}
        if what == "connect" and environment in self.keys:
            return {**base, "url": at + "harness", "executor_public_key": self.keys[environment],
                    "harness_key_authorization": "authorization-" + environment}
        return {"valid": environment in self.keys}

    def _handler(self):
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                answer = json.dumps(service._answer(self.path, self.headers, body)).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_):
                pass

        return Handler

    async def _meet(self, ws, *_):
        path = ws.path if hasattr(ws, "path") else ws.request.path
        environment, side = path.strip("/").split("?")[0].split("/")
        mine = self.ends.setdefault((environment, side), set())
        others = self.ends.setdefault((environment, "harness" if side == "executor" else "executor"), set())
        with self.changed:
            mine.add(ws)
            self.changed.notify_all()
        try:
            async for message in ws:
                for other in list(others):
                    await other.send(message)
        except websockets.ConnectionClosed:
            pass
        with self.changed:
            mine.discard(ws)
            self.changed.notify_all()
        if side == "executor":
            # The harness does not notice by itself that the executor has left.
            for other in list(others):
                await other.close()

    def wait_executor(self, environment, there=True, timeout=60):
        with self.changed:
            assert self.changed.wait_for(lambda: bool(self.ends.get((environment, "executor"))) == there, timeout)

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
        self.loop.call_soon_threadsafe(self.loop.stop)
