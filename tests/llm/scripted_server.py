"""A chat-completions server on loopback whose replies a test scripts, and which keeps requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]


@dataclass
class Answer:
    """What the server sends back."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


def completion(
    text: str, *, usage: tuple[int, int] | None = (100, 20), finish: str = "stop"
) -> Answer:
    """A reply of that text, with token counts unless `usage` is None."""
    body: Body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": text},
                "finish_reason": finish,
            }
        ],
    }
    if usage is not None:
        body["usage"] = {
            "prompt_tokens": usage[0],
            "completion_tokens": usage[1],
            "total_tokens": sum(usage),
        }
    return Answer(headers={"Content-Type": "application/json"}, body=json.dumps(body).encode())


def error(status: int, message: str = "no", **headers: str) -> Answer:
    """An error as OpenAI words it."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({"error": {"message": message, "type": "scripted"}}).encode()
    return Answer(status, {"Content-Type": "application/json", **named}, body)


@dataclass
class Scripted:
    """The running server: its base URL, and what it was asked."""

    url: str
    requests: list[Body] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def node(self, number: int) -> str:
        """Which agent asked."""
        return node_of(self.requests[number])


def node_of(request: Body) -> str:
    """The agent that a request is of, by its system message's first line."""
    return str(request["messages"][0]["content"]).split("\n", 1)[0]


@contextmanager
def scripted_server(answer: Callable[[Body], Answer]) -> Iterator[Scripted]:
    """A server that answers each request with what `answer` makes of its body."""
    kept = Scripted(url="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            request = json.loads(raw)
            kept.raw.append(raw)
            kept.requests.append(request)
            kept.headers.append({name.lower(): value for name, value in self.headers.items()})
            reply = answer(request)
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    kept.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
