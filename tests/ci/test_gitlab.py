"""The GitLab job: a note, found again by its marker; its script names commands that exist."""

from __future__ import annotations

import json
import shlex
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from prompts_agent.ci.comment import GitLab, post
from prompts_agent.cli.app import app

TEMPLATE = Path(__file__).resolve().parents[2] / "docs" / "ci" / "gitlab.yml"
BODY = "<!-- prompts:sharding -->\n\n### fsdp 16\n"


class _Notes(BaseHTTPRequestHandler):
    server: Any

    def log_message(self, *_: Any) -> None: ...

    def _serve(self) -> None:
        notes: dict[int, str] = self.server.notes
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length))["body"] if length else ""
        self.server.seen.append((self.command, self.path, self.headers["PRIVATE-TOKEN"]))
        if self.command == "POST":
            notes[len(notes) + 1] = body
        elif self.command == "PUT":
            notes[int(self.path.rpartition("/")[2])] = body
        data = json.dumps([{"id": i, "body": text} for i, text in notes.items()]).encode()
        self.send_response(201 if self.command == "POST" else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = _serve  # noqa: N815, the names that http.server calls


@pytest.fixture
def server() -> Iterator[Any]:
    served: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Notes)
    served.notes, served.seen = {}, []
    thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield served
    served.shutdown()
    thread.join()
    served.server_close()


def test_a_note_is_created_and_then_kept_up_to_date(server: Any) -> None:
    forge = GitLab("17", 4, "t", f"http://127.0.0.1:{server.server_port}/api/v4")
    assert post(BODY, forge).action == "created"
    assert post(BODY + "new\n", forge).action == "updated"
    assert server.notes == {1: BODY + "new\n"}
    path = "/api/v4/projects/17/merge_requests/4/notes"
    assert server.seen[1:] == [
        ("POST", path, "t"),
        ("GET", f"{path}?per_page=100", "t"),
        ("PUT", f"{path}/1", "t"),
    ]


def test_the_command_reads_gitlab_s_environment(
    server: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "comment.md").write_text(BODY)
    for name, value in {
        "CI_API_V4_URL": f"http://127.0.0.1:{server.server_port}/api/v4",
        "CI_PROJECT_ID": "17",
        "CI_MERGE_REQUEST_IID": "4",
        "PROMPTS_GITLAB_TOKEN": "t",
    }.items():
        monkeypatch.setenv(name, value)
    arguments = ["ci", "comment", str(tmp_path / "comment.md"), "--forge", "gitlab"]
    assert CliRunner().invoke(app, arguments).stdout == "comment created\n"
    monkeypatch.delenv("PROMPTS_GITLAB_TOKEN")
    missing = CliRunner().invoke(app, arguments)
    assert missing.exit_code == 2
    assert "PROMPTS_GITLAB_TOKEN" in missing.stderr


def test_every_command_of_the_template_exists() -> None:
    job = yaml.safe_load(TEMPLATE.read_text())[".prompts"]
    lines = [line.strip() for step in job["script"] for line in step.splitlines()]
    commands = [line[line.index("prompts ") :] for line in lines if "prompts " in line]
    assert len(commands) == 5
    for command in commands:
        words = shlex.split(command.split(";")[0].split("||")[0])[1:]
        name = words[: 2 if words[0] == "ci" else 1]
        shown = CliRunner().invoke(app, [*name, "--help"])
        assert shown.exit_code == 0
        for option in (word for word in words if word.startswith("--") and word != "--"):
            assert option in shown.stdout
