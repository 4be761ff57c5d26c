from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prompts_agent.errors import WorkloadError
from prompts_agent.workload.document import read_document


def read(tmp_path: Path, text: str | bytes) -> object:
    file = tmp_path / "w.yaml"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_document(file).value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("1_000_000", 1_000_000),
        ("1e9", 10**9),  # YAML 1.1 reads a string
        ("2.56e2", 256),
        ("-3", -3),
        ("1.5", 1.5),
        ("1.0", 1),
        (".5", 0.5),
        ("'256'", "256"),
        ("no", "no"),  # YAML 1.1 reads False
        ("on", "on"),
        ("true", True),
        ("null", None),
        ("~", None),
        ("", None),
        ("12:30", "12:30"),  # YAML 1.1 reads 750
        ("v5e:16x16", "v5e:16x16"),
        ("2026-01-01", "2026-01-01"),  # YAML 1.1 reads a date
        ("8x8", "8x8"),
        ("e5", "e5"),
        ("0x10", "0x10"),
        ("9" * 5000, "9" * 5000),
        ("{a: 1, b: [2, x]}", {"a": 1, "b": [2, "x"]}),
    ],
)
def test_scalars(tmp_path: Path, text: str, value: object) -> None:
    found = read(tmp_path, f"key: {text}\n")
    assert found == {"key": value}
    assert isinstance(found, dict)
    assert type(found["key"]) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", r"w.yaml:3, a: the key is there twice \(first in line 1\)"),
        ("m:\n  a: 1\n  a: 2\n", r"w.yaml:3, m.a: the key is there twice"),
        ("a: &x 1\nb: *x\n", r"w.yaml:2, \*x: aliases are not read"),
        ("a: {<<: {b: 1}}\n", "keys are plain words"),
        ("a: [1\nb: 2\n", "w.yaml:2: is not YAML"),
        ("a: 1\n---\nb: 2\n", "is not YAML"),
        ("", "the file is empty"),
        ("# only a comment\n", "the file is empty"),
        (b"a: \xff\xfe\n", "is not UTF-8 text"),
        (b"a: \x00\n", "is not YAML"),
        ("[" * 3000, "is not YAML"),
        ("a: " + "[" * 100 + "]" * 100, "is not YAML"),
        ("a: '" + "x" * 1_000_001 + "'", "below 1000000 bytes"),
    ],
)
def test_damage(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(WorkloadError, match=message):
        read(tmp_path, text)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="No such file"):
        read_document(tmp_path / "absent.yaml")
    with pytest.raises(WorkloadError, match="Is a directory"):
        read_document(tmp_path)


def test_where(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text("a: 1\nb:\n  c: [1,\n    2]\n")
    document = read_document(file)
    assert document.where(("b", "c", 1)) == f"{file}:4, b.c.1"
    assert document.where(("b", "d")) == f"{file}:2, b.d"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.mktemp("any") / "w.yaml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(WorkloadError):
        read_document(file)
