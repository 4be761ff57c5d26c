"""Golden files: what a renderer printed when somebody last looked at it and found it good.

`UPDATE_GOLDEN=1 pytest tests/report` writes them anew; look at the difference before you keep it.
"""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare `text` with the file `name`, or write it."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{name} is not there: run with UPDATE_GOLDEN=1"
    assert text == path.read_text(encoding="utf-8"), f"{name} differs: look, then UPDATE_GOLDEN=1"
