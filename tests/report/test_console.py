"""The page at several widths, without colour, without Unicode, and with hostile names on it."""

from __future__ import annotations

import io
import re
import unicodedata

import pytest
import report_build
from golden_files import check_golden
from rich.console import Console

from prompts_agent.report.console.page import page_text, print_report
from prompts_agent.report.console.terminal import PIPE_WIDTH, WIDEST, pen_of, result_console

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    """A stream that says it is a terminal, in an encoding of our choice."""

    def __init__(self, encoding: str = "utf-8", *, tty: bool = True) -> None:
        super().__init__()
        self._encoding, self._tty = encoding, tty

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._tty


def printed(name: str, stream: io.StringIO) -> str:
    print_report(report_build.ALL[name](), result_console(stream))
    return stream.getvalue()


@pytest.mark.parametrize("name", list(report_build.ALL))
def test_page_of_every_kind_of_report(name: str) -> None:
    check_golden(f"{name}.100.txt", page_text(report_build.ALL[name]()))


@pytest.mark.parametrize("width", [60, 80, 120])
def test_page_at_other_widths(width: int) -> None:
    check_golden(f"training.{width}.txt", page_text(report_build.training(), width))


@pytest.mark.parametrize("name", [*report_build.ALL, "hostile"])
@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_is_wider_than_the_page(name: str, width: int) -> None:
    report = {**report_build.ALL, "hostile": report_build.hostile}[name]()
    for line in page_text(report, width).splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


def test_hostile_names_show_as_the_letters_they_are() -> None:
    text = page_text(report_build.hostile(), 120)
    controls = {c for c in text if unicodedata.category(c).startswith("C")}
    assert controls == {"\n"}
    assert "[red]x[/]" in text
    assert "<script>1</script>" in text


def test_hostile_names_cannot_add_escapes_on_a_terminal() -> None:
    stream = Terminal()
    console = Console(file=stream, force_terminal=True, width=100, markup=False, highlight=False)
    print_report(report_build.hostile(), console)
    left = ESCAPE.sub("", stream.getvalue())
    assert "\x1b" not in left
    assert "\x07" not in left


def test_colour_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = io.StringIO()
    console = Console(
        file=stream, force_terminal=True, color_system="256", width=100, legacy_windows=False
    )
    print_report(report_build.training(), console)
    check_golden("training.100.ansi", stream.getvalue())


def test_pipe_is_plain_and_always_as_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    text = printed("training", Terminal(tty=False))
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) == PIPE_WIDTH


def test_columns_sets_the_width_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    text = printed("training", Terminal(tty=False))
    assert max(len(line) for line in text.splitlines()) == 72


def test_wide_terminal_is_not_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    assert result_console(Terminal()).width == WIDEST


def test_no_color_has_styles_but_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    text = printed("training", Terminal())
    codes = {code for match in ESCAPE.findall(text) for code in match[2:-1].split(";")}
    assert codes <= {"0", "1", "2", "3"}  # bold, dim, italic
    assert "▓" in text  # parts of the bar are told apart by pattern


def test_dumb_terminal_gets_no_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in printed("training", Terminal())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_without_unicode_everything_is_ascii(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = printed("training", Terminal(encoding, tty=False))
    assert text.isascii()
    check_golden("training.80.ascii.txt", text)


def test_pen_keeps_unicode_where_it_can() -> None:
    assert pen_of(result_console(Terminal())).safe("a → b × 2") == "a → b × 2"
    assert pen_of(result_console(Terminal("ascii"))).safe("a → b × 2") == "a -> b x 2"


def test_config_lines_are_never_cut_or_wrapped() -> None:
    report = report_build.training()
    first = report.proposals[0]
    assert first.config is not None
    long = "x = " + "1 + " * 60 + "1"
    config = first.config.model_copy(update={"text": f"if True:\n    {long}\n"})
    changed = report.model_copy(
        update={"proposals": (first.model_copy(update={"config": config}),)}
    )
    lines = page_text(changed, 60).splitlines()
    assert f"    {long}" in lines


def test_a_program_that_was_not_timed_waits_for_nothing() -> None:
    findings = report_build.training().findings
    report = report_build.structure_only().model_copy(update={"findings": findings})
    page = page_text(report)
    assert "What the program shows" in page
    assert "What the job waits for" not in page
    assert "What the job waits for" in page_text(report_build.training())
