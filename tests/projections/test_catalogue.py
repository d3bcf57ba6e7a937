"""The reference of the read model says of each table, view and column what is there, and its views say what the tables do."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from projections.catalogue import KINDS, PAGE, page, relations
from projections.read_model import Rebuild
from replays.recordings import recordings, versions
from tests.projections.test_asof import read_all


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return connections to the read models of all recorded logs."""
    folder = tmp_path_factory.mktemp("models")
    found = []
    for number, recording in enumerate(recordings(versions()[-1])):
        steps = asyncio.run(read_all(str(versions()[-1] / recording.file)))
        model = Rebuild(folder / f"{number}.db", steps[0].head.log_id)
        for step in steps:
            model.take(step)
        model.finish()
        found.append(sqlite3.connect(folder / f"{number}.db"))
    yield found
    for one in found:
        one.close()


def test_the_page_is_what_the_sql_says():
    """`python -m projections.catalogue` makes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_every_table_view_and_column_is_in_the_reference(models):
    """Names, order, types and which are never NULL, as SQLite has them."""
    connection = models[0]
    there = dict(
        connection.execute(
            "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'"
        )
    )
    assert {name: "view" if one.view else "table" for name, one in relations().items()} == there
    for name, one in relations().items():
        columns = list(connection.execute(f"PRAGMA table_info({name})"))
        assert [column.name for column in one.columns] == [row[1] for row in columns], name
        for column, (_, _, kind, never_null, _, key) in zip(one.columns, columns, strict=True):
            assert column.kind in KINDS, (name, column)
            assert column.meaning, (name, column)
            assert bool(column.values) is (column.kind == "enum"), (name, column)
            if not one.view:
                assert column.type == kind, (name, column)
                assert bool(column.null) is not bool(never_null or key), (name, column)


def test_every_recorded_value_is_of_its_kind(models):
    """No value of any table or view is NULL, of another type or outside its enumeration unless the reference says so."""
    checks = {
        "timestamp": "{0} NOT GLOB '????-??-??T??:??:??.???Z'",
        "bool": "{0} NOT IN (0, 1)",
        "json": "NOT json_valid({0})",
        "amounts": "json_type({0}) <> 'object'",
    }
    seen = 0
    for connection in models:
        for name, one in relations().items():
            for column in one.columns:
                wrong = f"typeof({column.name}) <> '{column.type.lower()}'"
                if column.kind in checks and (name, column.name) != ("rejected", "input"):
                    wrong += f" OR {checks[column.kind].format(column.name)}"
                if column.values:
                    values = ", ".join(f"'{value}'" for value in ("", *column.values))
                    wrong += f" OR {column.name} NOT IN ({values})"
                null = f"{column.name} IS NOT NULL AND ({wrong})" if column.null else wrong
                sql = f"SELECT {column.name} FROM {name} WHERE {null} LIMIT 1"
                if name != "kept_state" and not name.endswith("rejected"):
                    assert connection.execute(sql).fetchall() == [], (name, column.name)
                    seen += 1
    assert seen > 1000


def test_totals_are_what_runs_below(models):
    """`v_queue_totals` agrees with a sum over the leaves at every time at which anything changed, for both families."""
    compared = 0
    for connection in models:
        totals = list(
            connection.execute(
                "SELECT queue, resource, usage, pending, from_ms, to_ms FROM v_queue_totals"
            )
        )
        parents = dict(connection.execute("SELECT queue, parent FROM queues ORDER BY from_seq"))
        times = sorted({row[4] for row in totals})
        for time in times:
            expected = {}
            for leaf, resource, usage, pending in connection.execute(
                "SELECT u.queue, r.resource, coalesce(u.usage ->> ('$.\"' || r.resource || '\"'), 0),"
                " coalesce(u.pending ->> ('$.\"' || r.resource || '\"'), 0) FROM queue_usage u, resource_types r"
                " WHERE u.from_time <= ? AND u.to_time > ?",
                (time, time),
            ):
                above = leaf
                while above:
                    row = expected.setdefault((above, resource), [0, 0])
                    row[0] += usage
                    row[1] += pending
                    above = parents.get(above)
            expected = {key: tuple(row) for key, row in expected.items() if any(row)}
            found = {
                (row[0], row[1]): row[2:4]
                for row in totals
                if row[4] <= time and (row[5] is None or row[5] > time)
            }
            assert found == expected, time
            compared += len(expected)
    assert compared > 100, compared


def test_an_allocation_is_one_row(models):
    """From its beginning to its end, whatever happened to it; `allocations` has more rows than `v_allocations`."""
    more = 0
    for connection in models:
        parts = connection.execute("SELECT count(*) FROM allocations").fetchone()[0]
        rows = list(connection.execute("SELECT allocation, from_seq, to_seq FROM v_allocations"))
        begun = connection.execute(
            "SELECT a.allocation, a.from_seq FROM allocations a WHERE NOT EXISTS ("
            "SELECT 1 FROM allocations b WHERE b.allocation = a.allocation AND b.to_seq = a.from_seq AND b.outcome = '')"
        ).fetchall()
        assert sorted(row[:2] for row in rows) == sorted(begun)
        more += parts > len(rows)
    assert more > 3
