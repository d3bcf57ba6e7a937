"""A user's own projection: a folder with SQL."""

from __future__ import annotations

import sqlite3

import pytest

from events import vocabulary as v
from events.chain import Head, RecordedStep
from projections.custom import CustomProjection, ProjectionInvalid
from projections.read_model import Overtaken, ReadModel, RebuildNeeded

SQL = """
-- name: create_schema#
CREATE TABLE losses (queue TEXT PRIMARY KEY, lost INTEGER);

-- name: on_PreemptionDecided!
INSERT INTO losses (queue, lost)
SELECT value ->> 'queue', 1 FROM json_each(:victims) WHERE 1
ON CONFLICT (queue) DO UPDATE SET lost = lost + 1;
"""


def step(seq):
    """Return a step with one preemption of two victims."""
    victims = (
        v.Victim(id="a", queue="root.test", reason="r"),
        v.Victim(id="b", queue="root.test", reason="r"),
    )
    event = v.PreemptionDecided(
        seq=seq, cause=1, ask="x", node="n", victims=victims, algorithm="guarantee"
    )
    return RecordedStep(
        Head(next_seq=seq + 1, time=seq, frame=seq, hash="h", position=seq), seq, True, (event,)
    )


def losses(path):
    """Return the rows of the projection."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT queue, lost FROM losses").fetchall()
    connection.close()
    return rows


def test_rows_follow_the_log_and_a_restart_goes_on(tmp_path):
    """What was committed is not taken twice; what was not is forgotten."""
    folder = tmp_path / "losses"
    folder.mkdir()
    (folder / "losses.sql").write_text(SQL)
    path = tmp_path / "losses.db"
    projection = CustomProjection(folder, path, "log")
    projection.take(step(1))
    projection.commit()
    projection.take(step(2))
    projection.close()
    assert losses(path) == [("root.test", 2)]
    projection = CustomProjection(folder, path, "log")
    assert projection.at.next_seq == 2
    for seq in (1, 2):
        projection.take(step(seq))
    projection.commit()
    projection.close()
    assert losses(path) == [("root.test", 4)]
    with pytest.raises(RebuildNeeded):
        CustomProjection(folder, path, "another")


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (None, "holds no .sql file"),
        ("-- name: on_AllocationBound!\nSELECT 1;", "has no statement create_schema#"),
        (
            "-- name: create_schema#\nSELECT 1;\n-- name: on_Nonsense!\nSELECT 1;",
            "on_Nonsense names no event type",
        ),
    ],
)
def test_a_bad_folder_is_refused_with_its_reason(tmp_path, sql, says):
    """The message names the folder and what is expected."""
    if sql is not None:
        (tmp_path / "p.sql").write_text(sql)
    with pytest.raises(ProjectionInvalid, match=says):
        CustomProjection(tmp_path, tmp_path / "p.db", "log")


def test_two_followers_of_one_file_write_nothing_twice(tmp_path):
    """The second one to commit is told, and keeps nothing of what it took."""
    folder = tmp_path / "losses"
    folder.mkdir()
    (folder / "losses.sql").write_text(SQL)
    path = tmp_path / "losses.db"
    both = [CustomProjection(folder, path, "log") for _ in range(2)]
    first, second = both
    first.take(step(1))
    first.commit()
    second.take(step(1))
    with pytest.raises(Overtaken, match="another process"):
        second.commit()
    for one in both:
        one.close()
    assert losses(path) == [("root.test", 2)]


def test_statements_that_remove_the_position_are_told_of(tmp_path):
    """Nothing is committed of which nobody would know how far it goes."""
    folder = tmp_path / "losses"
    folder.mkdir()
    (folder / "losses.sql").write_text(SQL + "\n-- name: on_AskSubmitted!\nDELETE FROM position;\n")
    projection = CustomProjection(folder, tmp_path / "losses.db", "log")
    ask = v.AskSubmitted(seq=1, ask="x", queue="root.a")
    projection.take(
        RecordedStep(Head(next_seq=2, time=1, frame=1, hash="h", position=1), 1, True, (ask,))
    )
    with pytest.raises(RebuildNeeded, match="removed its position"):
        projection.commit()
    projection.close()


def test_a_read_model_is_not_taken_for_a_projection_of_ones_own(tmp_path):
    """Its position would move on without its rows."""
    folder = tmp_path / "losses"
    folder.mkdir()
    (folder / "losses.sql").write_text(SQL)
    path = tmp_path / "model.db"
    ReadModel(path, "log").close()
    with pytest.raises(RebuildNeeded, match="holds something else"):
        CustomProjection(folder, path, "log")
