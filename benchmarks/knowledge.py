"""How fast the knowledge base is read, indexed, asked and checked: figures, nothing is asserted.

Run it from a checkout: `python benchmarks/knowledge.py`. CPU seconds of this process, and wall
seconds beside them: on a busy machine the first are the ones to compare.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from prompts_agent.knowledge.base import KnowledgeBase
from prompts_agent.knowledge.check import check
from prompts_agent.knowledge.library import load_recipes
from prompts_agent.knowledge.query import Query
from prompts_agent.knowledge.store import build, stored_vectors
from prompts_agent.resources import data_directory

MANY = 500
QUERIES = 50


def measure(name: str, work: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(f"{name:44} {cpu:8.3f} {wall:8.3f}")
    return result


def multiply(directory: Path) -> None:
    """MANY recipes: the shipped ones, again and again under other ids."""
    shipped = [p for p in data_directory("knowledge_base").glob("*.md") if p.name != "README.md"]
    for number, path in enumerate(islice(cycle(sorted(shipped)), MANY)):
        name = f"{path.stem}-{number}"
        text = path.read_text(encoding="utf-8").replace(f"id: {path.stem}\n", f"id: {name}\n", 1)
        (directory / f"{name}.md").write_text(text, encoding="utf-8")


def ask(base: KnowledgeBase) -> None:
    query = Query.model_validate(
        {
            "phase": "pretrain",
            "chip": "v5p",
            "architecture": ("dense", "kv_heads"),
            "findings": ("exposed_collective", "hbm_nearly_full"),
            "axes": ("fsdp",),
            "devices": 256,
            "sequence": 8192,
            "text": "all-gather over fsdp is exposed and little memory is left",
        }
    )
    measure("  first query, which makes the index", lambda: base.retrieve(query))
    wall, cpu = [], []
    for _ in range(QUERIES):
        start, begun = time.perf_counter(), time.process_time()
        base.retrieve(query)
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - begun)
    name = f"  one query, median of {QUERIES}"
    print(f"{name:44} {statistics.median(cpu):8.4f} {statistics.median(wall):8.4f}")


def main() -> None:
    print(f"{'':44} {'CPU s':>8} {'wall s':>8}")
    shipped = measure("read the shipped recipes", load_recipes)
    print(f"  recipes: {len(shipped)}")
    measure("check the shipped recipes", lambda: check(data_directory("knowledge_base")))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name) / "kb"
        directory.mkdir()
        multiply(directory)
        many = measure(f"read {MANY} recipes", lambda: load_recipes(directory))
        measure("import chromadb", lambda: __import__("chromadb"))
        for label, recipes in (("shipped", shipped), (str(MANY), many)):
            base = measure(f"BM25 of {label}", lambda pool=recipes: KnowledgeBase(pool).__enter__())
            ask(base)
            base.__exit__(None, None, None)
        root = Path(name) / "store"
        measure(f"build {MANY} on disk", lambda: build(many, root))
        vectors = measure(f"read {MANY} vectors from disk", lambda: stored_vectors(many, root))
        print(f"with vectors from disk, {len(vectors)} recipes")
        base = KnowledgeBase(many, vectors=vectors).__enter__()
        ask(base)
        base.__exit__(None, None, None)


if __name__ == "__main__":
    main()
