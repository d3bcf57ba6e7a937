"""Tables: whole in a pipe, folded on a terminal, and never kept in memory."""

from __future__ import annotations

import io
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from evsched.cli.cells import amount_hours, table
from evsched.cli.consoles import Paper
from evsched.cli.tables import NARROWEST, PlainTable, folded
from tests.examples import examples

NAME = "team-research-batch-training-of-large-models-2026-11-20-attempt-17"


def levels():
    """Return a table of a long name, numbers and what is said of it."""
    made = PlainTable("queue", "resource")
    made.add_column("requested", justify="right")
    made.add_column("used", justify="right")
    made.add_column("")
    made.add_row(f"root.{NAME}", "nvidia.com/gpu", "8", "128", ("does not fit", "red"))
    made.add_row("root", "memory", "64Gi", "2Ti", "")
    return made


def test_in_a_pipe_every_cell_is_whole_and_on_one_line():
    """However long a name is; only what stands behind the last cell is left out."""
    lines = list(levels().lines(None))
    assert len(lines) == 4
    assert f"root.{NAME} │ nvidia.com/gpu" in lines[2]
    assert lines[2].endswith("│ does not fit")
    assert lines[1].count("╇") == 4


def test_a_terminal_of_80_columns_keeps_the_tail_of_a_name_and_the_verdict():
    """The name is folded within its column; every line fits."""
    lines = list(levels().lines(80))
    assert all(cell_len(line) <= 80 for line in lines)
    assert "does not fit" in "\n".join(lines)
    first = "".join(line.partition("│")[0].strip() for line in lines[2:])
    assert first.startswith(f"root.{NAME}")


def test_a_flavor_and_its_resource_stay_together_on_80_columns():
    """Headings of several words are folded first, then other cells: the table of `status` for Kueue with shares."""
    made = PlainTable(
        "queue", "share", "resource", "used", "leaving", "waiting", "nominal", "quota",
        "borrowing limit", ruled=False, empty="-",
    )  # fmt: skip
    cells = ("500", "on-demand/memory", "128Gi", "-", "16Gi", "96Gi", "96Gi", "32Gi")
    made.add_row("team-research", *cells)
    lines = list(made.lines(80))
    assert all(cell_len(line) <= 80 for line in lines)
    assert sum("on-demand/memory" in line for line in lines) == 1
    assert [line[:13].strip() for line in lines[2:]] == ["team-", "research"]
    assert [line.split()[-1] for line in lines[:2]] == ["borrowing", "limit"]


def test_a_name_that_is_too_long_is_parted_between_its_parts():
    """What belongs together stays so; the end of the name is there."""
    assert folded("on-demand/memory", 10) == ["on-demand/", "memory"]
    assert folded("root.team-a.research", 12) == ["root.team-a.", "research"]
    assert folded("abcdefghijklmnop", 8) == ["abcdefgh", "ijklmnop"]


def test_styles_are_for_terminals_alone():
    """In a pipe there is no letter that speaks to one; on a terminal the verdict has a colour."""
    assert "\x1b" not in "".join(levels().lines(None))
    painted = "\n".join(levels().lines(200, lambda text, style: f"<{style}>{text}</>"))
    assert "<red>does not fit</>" in painted


def test_a_strangers_cell_cannot_speak_to_the_terminal():
    """Line ends and controls are replaced."""
    made = PlainTable("ask", title="of \x1b]0;x")
    made.add_row("a\nb\x1b[31m")
    assert all(line.isprintable() for line in made.lines(None))


def test_rows_are_asked_for_and_not_kept():
    """A table of many rows writes its first line of data before a second look at the second."""
    seen = count()
    looked = []

    def rows():
        for number in range(1000):
            looked.append(next(seen))
            yield {"ask": f"a{number}", "none": None, "priority": number}

    made = table(rows)
    found = made.lines(None)
    head = next(found)
    assert head == "ask  ┃ priority"
    next(found)
    before = len(looked)
    assert next(found) == "a0   │        0"
    assert len(looked) == before + 1


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]) | st.just(" ")),
    st.integers(NARROWEST, 30),
)
@examples(200)
def test_folding_loses_nothing_but_spaces(text, width):
    """Every piece fits, and together they are the text."""
    pieces = folded(text, width)
    assert all(cell_len(piece) <= width for piece in pieces)
    assert "".join(pieces).replace(" ", "") == text.replace(" ", "")


@pytest.mark.parametrize("terminal", [True, False])
def test_paper_writes_tables_and_lines(terminal):
    """On a terminal with its width and colours; in a pipe no line is folded."""
    paper = Paper()
    paper.file, paper._force_terminal, paper._color_system = io.StringIO(), terminal, None
    paper.width = 60
    paper.table(levels())
    paper.print("word " * 60)
    lines = paper.file.getvalue().splitlines()
    assert (max(map(cell_len, lines)) <= 60) is terminal


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"vcore": 140_000_000}, "0.039 vcore"),
        ({"vcore": 2000 * 3_600_000}, "2 vcore"),
        ({"memory": 3 * 2**29 * 3_600_000}, "1.5Gi memory"),
        ({"on-demand/cpu": 1_500 * 3_600_000, "nvidia.com/gpu": 8 * 3_600_000 * 24}, "1.5 on-demand/cpu, 192 nvidia.com/gpu"),
        ({"memory": 1000}, "<0.001 memory"),
        ({"vcore": 0}, "0"),
    ],
    ids=str,
)  # fmt: skip
def test_amounts_over_time_are_said_in_cores_and_gibibytes_times_hours(found, said):
    """Byte-milliseconds are no unit of people."""
    assert amount_hours(found) == said
