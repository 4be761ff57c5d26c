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
from pathlib import Path

import pytest
from recipe_build import make_recipe

from prompts_agent.errors import InputError, RecipeError
from prompts_agent.knowledge.base import KnowledgeBase
from prompts_agent.knowledge.library import load_recipes
from prompts_agent.knowledge.query import Query
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


@pytest.fixture(scope="module")
def url(built: Path) -> Iterator[str]:
    command = shutil.which("chroma") or str(Path(sys.executable).with_name("chroma"))
    if not Path(command).exists():
        pytest.skip("the chroma command is not installed")
    port = free_port()
    server = subprocess.Popen(
        [command, "run", "--path", str(built), "--host", "127.0.0.1", "--port", str(port)],
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
    assert publish(url, team=tmp_path) == count + 1
    with ServerBase(url) as remote:
        assert "our-secret" in {recipe.id for recipe in remote.recipes}
    with pytest.raises(RecipeError, match=r"'our-secret'.*already\. Rename our-secret\.md"):
        ServerBase(url, extra=tmp_path)
    publish(url)


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
    with pytest.raises(InputError, match="gave no answer that can be used"):
        ServerBase(f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize("url", ["host:8000", "ftp://host", "http://me:pw@host:1", "http://"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InputError, match=r"a server is http://host:port"):
        ServerBase(url)


def test_the_token_is_sent_and_only_in_the_header(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str | None]] = []

    class Recorder(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers.get("Authorization")))
            self.send_error(401)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("PROMPTS_KB_TOKEN", "s3cret")
    with http.server.HTTPServer(("127.0.0.1", 0), Recorder) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, daemon=True)
        thread.start()
        with pytest.raises(InputError) as caught:
            ServerBase(f"http://127.0.0.1:{proxy.server_port}")
        proxy.shutdown()
        thread.join()
    assert seen
    assert all(header == "Bearer s3cret" and "s3cret" not in path for path, header in seen)
    assert "s3cret" not in str(caught.value)


def test_of_equal_ids_there_is_an_error() -> None:
    from prompts_agent.knowledge.library import together

    with pytest.raises(RecipeError, match="is in the knowledge base already"):
        together((make_recipe(),), (make_recipe(),))
