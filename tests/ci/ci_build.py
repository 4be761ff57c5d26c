"""A server that answers like GitHub's REST API for the comments of one pull request."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

LIMIT = 65_536
TOKEN = "ghs_a-token-that-must-not-show"


@dataclass
class Answer:
    """What the server says once instead of the truth."""

    status: int
    message: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class FakeGitHub:
    """Comments by id, and the answers that are to be given first."""

    url: str = ""
    comments: dict[int, str] = field(default_factory=dict)
    faults: list[Answer] = field(default_factory=list)
    locked: set[int] = field(default_factory=set)
    requests: list[tuple[str, str]] = field(default_factory=list)
    per_page: int = 100

    def listing(self, query: dict[str, list[str]], path: str) -> tuple[list[Any], dict[str, str]]:
        page = int(query.get("page", ["1"])[0])
        items = [{"id": i, "body": body} for i, body in sorted(self.comments.items())]
        start = (page - 1) * self.per_page
        headers = {}
        if start + self.per_page < len(items):
            headers["Link"] = f'<{self.url}{path}?page={page + 1}>; rel="next"'
        return items[start : start + self.per_page], headers


class _Handler(BaseHTTPRequestHandler):
    server: Any

    def log_message(self, *_: Any) -> None: ...

    def _answer(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _serve(self) -> None:
        hub: FakeGitHub = self.server.hub
        split = urlsplit(self.path)
        hub.requests.append((self.command, split.path))
        length = int(self.headers.get("Content-Length") or 0)
        sent = json.loads(self.rfile.read(length)) if length else {}
        if hub.faults:
            fault = hub.faults.pop(0)
            return self._answer(fault.status, {"message": fault.message}, fault.headers)
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._answer(401, {"message": "Bad credentials"})
        if self.command in ("POST", "PATCH") and len(sent["body"]) > LIMIT:
            return self._answer(422, {"message": "Validation Failed: body is too long"})
        if re.fullmatch(r"/repos/o/r/issues/7/comments", split.path):
            if self.command == "GET":
                items, headers = hub.listing(parse_qs(split.query), split.path)
                return self._answer(200, items, headers)
            new = max(hub.comments, default=0) + 1
            hub.comments[new] = sent["body"]
            return self._answer(201, {"id": new, "html_url": f"https://forge.test/c/{new}"})
        found = re.fullmatch(r"/repos/o/r/issues/comments/(\d+)", split.path)
        if found and self.command == "PATCH" and int(found[1]) in hub.comments:
            if int(found[1]) in hub.locked:
                return self._answer(403, {"message": "Resource not accessible by integration"})
            hub.comments[int(found[1])] = sent["body"]
            return self._answer(200, {"html_url": f"https://forge.test/c/{found[1]}"})
        return self._answer(404, {"message": "Not Found"})

    do_GET = do_POST = do_PATCH = _serve  # noqa: N815, the names that http.server calls


@contextmanager
def fake_github() -> Iterator[FakeGitHub]:
    """The server on a free port of the loopback, for as long as the block runs."""
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.hub = FakeGitHub(url=f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
