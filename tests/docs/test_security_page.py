"""The page about security names, for every answer it gives, tests that are there."""

import re
from pathlib import Path

import pytest

from tests.docs.pages import DOCS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (DOCS / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)))


@pytest.mark.parametrize(("file", "test"), NAMED, ids=[test for _, test in NAMED])
def test_a_named_test_is_there(file, test):
    """Whoever renames it has to rename it here as well."""
    assert re.search(rf"^(async )?def {test}\(", (ROOT / file).read_text(), re.MULTILINE)


def test_every_row_names_a_test_or_says_that_it_is_believed():
    """Each row of each table ends in a test; the one exception says why."""
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and "---" not in line]
    answers = [line for line in rows if "shown by |" not in line]
    assert len(NAMED) > 25
    assert [line for line in answers if "::test_" not in line] == [
        "| another user's name in a proposal | believed: see above | |"
    ]
