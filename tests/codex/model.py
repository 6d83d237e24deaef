# SPDX-License-Identifier: ISC
"""A model that says what the test tells it to: enough of the OpenAI Responses API for Codex, on loopback.

The test is the model. Codex's request waits at the server until the test has looked at it and answers, so a test
reads from top to bottom like the conversation it is.
"""
import http.server
import json
import pathlib
import queue
import threading

TIMEOUT = 60


class Model:
    """The server. Every request and every answer is written to a file of its own in `log`."""

    def __init__(self, log):
        self.log = pathlib.Path(log)
        self.requests = queue.Queue()
        self.answers = queue.Queue()
        self.made = 0
        self.written = 0
        self.lock = threading.Lock()
        self.reviews = []         # what Codex's own reviewer was asked
        self.outcome = "deny"     # what it says
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler_of(self))
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    def write_log(self, what, value):
        with self.lock:
            self.written += 1
            (self.log / f"{self.written:03}-{what}.json").write_text(json.dumps(value, indent=1))

    def exchange(self, request):
        """In the server's thread: hands a request to the test, waits for what the test says to it. With
        `approvals_reviewer = "auto_review"` a second thread of Codex asks the same model whether to approve."""
        if (request.get("client_metadata") or {}).get("x-openai-subagent") == "guardian":
            self.write_log("review", request)
            self.reviews.append(request)
            return [message("review", json.dumps({"outcome": self.outcome, "rationale": "The test says so."}))]
        self.write_log("request", request)
        self.requests.put(request)
        items = self.answers.get()
        if items is not None:
            self.write_log("response", items)
        return items

    def request(self, timeout=TIMEOUT):
        """The next request; None when there will be none because close() was called."""
        try:
            return self.requests.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no request from codex within {timeout} s") from None

    def close(self):
        """Whoever asks has ended."""
        self.requests.put(None)

    def answer(self, *items):
        self.answers.put(list(items))

    def call(self, name, arguments):
        self.made += 1
        call = {"type": "function_call", "id": f"fc_{self.made}", "call_id": f"call_{self.made}", "name": name,
                "arguments": json.dumps(arguments)}
        self.answer(call)
        return call["call_id"]

    def custom(self, name, text):
        """A call of a tool whose input is text, not JSON (apply_patch)."""
        self.made += 1
        call = {"type": "custom_tool_call", "id": f"ctc_{self.made}", "call_id": f"call_{self.made}", "name": name,
                "input": text}
        self.answer(call)
        return call["call_id"]

    def say(self, text):
        self.made += 1
        self.answer(message(self.made, text))

    def stop(self):
        self.answers.put(None)
        self.http.shutdown()
        self.http.server_close()


def message(number, text):
    return {"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [{"type": "output_text", "text": text}]}


def events(items):
    """The event stream of one response."""
    usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None,
             "total_tokens": 2}
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    for item in items:
        yield {"type": "response.output_item.done", "item": item}
    yield {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}}


def handler_of(model):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/responses":
                self.send_error(404)
                return
            items = model.exchange(body)
            if items is None:  # the test is over
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            for event in events(items):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())

        def log_message(self, *_):
            pass

    return Handler
