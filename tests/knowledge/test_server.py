"""A real Chroma server on loopback, started by the test; skipped where it cannot start."""

from __future__ import annotations

import http.server
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from prompts_agent.errors import InputError, RecipeError
from prompts_agent.knowledge.base import KnowledgeBase
from prompts_agent.knowledge.library import load_recipes
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.retrieve import open_base
from prompts_agent.knowledge.server import ServerBase, _close, publish
from prompts_agent.knowledge.store import build

ASKED = Query.model_validate(
    {
        "phase": "pretrain",
        "chip": "v5p",
        "architecture": ("dense", "kv_heads"),
        "findings": ("exposed_collective",),
        "axes": ("fsdp",),
        "devices": 64,
        "sequence": 4096,
        "text": "all-gather over fsdp",
    }
)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def answers(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/heartbeat", timeout=1).close()
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(load_recipes(), tmp_path_factory.mktemp("kb")) / "chroma"


@contextmanager
def chroma(path: Path) -> Iterator[str]:
    """The address of `chroma run --path`; skips where it does not start."""
    command = shutil.which("chroma") or str(Path(sys.executable).with_name("chroma"))
    if not Path(command).exists():
        pytest.skip("the chroma command is not installed")
    port = free_port()
    server = subprocess.Popen(
        [command, "run", "--path", str(path), "--host", "127.0.0.1", "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "ANONYMIZED_TELEMETRY": "False"},
    )
    try:
        for _ in range(300):
            if answers(port) or server.poll() is not None:
                break
            time.sleep(0.1)
        if not answers(port):
            pytest.skip(f"`chroma run` did not start (exit code {server.poll()})")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)


@pytest.fixture(scope="module")
def url(built: Path) -> Iterator[str]:
    with chroma(built) as address:
        yield address


def test_a_server_on_a_built_index_answers_as_the_memory_does(url: str) -> None:
    with ServerBase(url) as remote, KnowledgeBase(load_recipes()) as local:
        assert remote.recipes == local.recipes
        assert remote.retrieve(ASKED) == local.retrieve(ASKED)
        assert remote.dense(ASKED) == pytest.approx(local.dense(ASKED), abs=1e-5)


def test_publishing_replaces_and_leaves_the_team_at_home(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Path(load_recipes.__code__.co_filename).parents[2] / "knowledge_base"
    text = (source / "straggler-is-not-sharding.md").read_text(encoding="utf-8")
    ours = text.replace("id: straggler-is-not-sharding", "id: our-secret").replace(
        "\ntitle: ", "\ntitle: Ours, "
    )
    (tmp_path / "our-secret.md").write_text(ours, encoding="utf-8")
    monkeypatch.setenv("PROMPTS_KB", str(tmp_path))
    count = publish(url)
    with ServerBase(url) as remote:
        ids = {recipe.id for recipe in remote.recipes}
        assert "our-secret" in ids  # searched together …
        assert len(ids) == count + 1
        asked = Query(findings=("straggler",), devices=64, phase="pretrain")
        assert "our-secret" in {item.recipe_id for item in remote.retrieve(asked)}
    monkeypatch.delenv("PROMPTS_KB")
    with ServerBase(url) as remote:
        assert "our-secret" not in {recipe.id for recipe in remote.recipes}  # … and not sent
    changed = text.replace("\ntitle: ", "\ntitle: Changed, ")
    (tmp_path / "straggler-is-not-sharding.md").write_text(changed, encoding="utf-8")
    with pytest.raises(RecipeError, match=r"straggler.*already\. Rename straggler"):
        ServerBase(url, extra=tmp_path)


@pytest.mark.filterwarnings("ignore:legacy embedding function:DeprecationWarning")
def test_a_recipe_that_a_server_changed_is_refused(url: str) -> None:
    import chromadb
    from chromadb.config import Settings

    port = int(url.rsplit(":", 1)[1])
    client = chromadb.HttpClient("127.0.0.1", port, settings=Settings(anonymized_telemetry=False))
    collection = client.get_collection("prompts-recipes", None)
    key = "straggler-is-not-sharding"
    was = collection.get(ids=[key], include=["documents"])["documents"]
    vector = [[0.1] * 512]
    odd = json.loads(was[0]) | {"costs": "\x1b[2J"}
    collection.update(ids=[key], documents=[json.dumps(odd)], embeddings=vector)
    try:
        with pytest.raises(RecipeError, match=r"straggler.*control"):
            ServerBase(url)
    finally:
        collection.update(ids=[key], documents=was, embeddings=vector)
        _close(client)


def test_nobody_there() -> None:
    with pytest.raises(InputError, match=r"no server answers there .*refused.*chroma run"):
        ServerBase(f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize("url", ["host:8000", "ftp://host", "http://me:pw@host:1", "http://"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InputError, match=r"a server is http://host:port"):
        ServerBase(url)


class Proxy(http.server.BaseHTTPRequestHandler):
    """Lets requests with the right token through to a Chroma server, as a team's proxy does."""

    target = ""
    seen: ClassVar[list[tuple[str, str | None]]] = []

    def answer(self) -> None:
        token = self.headers.get("Authorization")
        self.seen.append((self.path, token))
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if token != "Bearer s3cret":
            self.send_error(401)
            return
        kind = {"Content-Type": self.headers.get("Content-Type", "application/json")}
        asked = urllib.request.Request(
            self.target + self.path, data=body or None, headers=kind, method=self.command
        )
        with urllib.request.urlopen(asked, timeout=30) as reply:
            data = reply.read()
            self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = answer  # noqa: N815  (the names that http.server calls)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def guarded(url: str) -> Iterator[str]:
    """A server that asks for a token, in front of `chroma run`."""
    Proxy.target, Proxy.seen = url, []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{proxy.server_port}"
        proxy.shutdown()
        thread.join()


def test_the_right_token_opens_the_server(guarded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMPTS_KB_TOKEN", "s3cret")
    with open_base(server=guarded) as base, KnowledgeBase(load_recipes()) as local:
        assert base.retrieve(ASKED) == local.retrieve(ASKED)
    assert Proxy.seen
    assert all(header == "Bearer s3cret" and "s3cret" not in path for path, header in Proxy.seen)


@pytest.mark.parametrize("token", [None, "wrong"])
def test_a_wrong_token_is_said_to_be_wrong_and_never_shown(
    guarded: str, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    monkeypatch.delenv("PROMPTS_KB_TOKEN", raising=False)
    if token is not None:
        monkeypatch.setenv("PROMPTS_KB_TOKEN", token)
    with pytest.raises(InputError, match=r"refuses the token \(HTTP 401\).*PROMPTS_KB_TOKEN") as no:
        ServerBase(guarded)
    assert "wrong" not in str(no.value)


def test_something_else_than_chroma_answers() -> None:
    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Other) as other:
        thread = threading.Thread(target=other.serve_forever, daemon=True)
        thread.start()
        with pytest.raises(InputError, match=r"is no Chroma server.*404"):
            ServerBase(f"http://127.0.0.1:{other.server_port}")
        other.shutdown()
        thread.join()


def test_a_diagnosis_asks_the_server(url: str) -> None:
    from prompts_agent.agents.graph import run_plan
    from prompts_agent.agents.request import DiagnoseRequest

    asked = DiagnoseRequest(model="llama3.1-8b", target="v5e:4x4", global_batch=32, sequence=2048)
    here = run_plan(asked)
    assert here.evidence
    assert run_plan(asked.model_copy(update={"kb": url})).evidence == here.evidence


def test_an_empty_server_is_said_to_be_empty(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with chroma(tmp_path) as empty:
        with pytest.raises(InputError, match=r"holds no collection.*prompts kb build --kb"):
            ServerBase(empty)
        assert publish(empty) == len(load_recipes())
        with ServerBase(empty) as remote:
            assert remote.recipes == load_recipes()


ASK = """
import sys
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.retrieve import open_base
with open_base(server=sys.argv[1]) as base:
    found = base.retrieve(Query(phase="pretrain", chip="v5p", devices=64, text="fsdp"))
print([(item.recipe_id, round(item.score, 9)) for item in found])
"""


def test_eight_processes_ask_one_server_at_once(url: str) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-c", ASK, url],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]
    try:
        done = [process.communicate(timeout=240)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0] * 8
    assert len(set(done)) == 1
    assert done[0].startswith("[('")
