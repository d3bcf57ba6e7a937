"""How full nodes are, in columns, is what the rows of the nodes say, whatever was asked about before."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from projections.read_model import Rebuild
from replays.history import loads
from replays.history.loads import Loads
from replays.history.tabled import Narrowed, TabledMoment
from tests.core.histories import configurations, histories
from tests.examples import examples
from tests.projections.test_asof import steps_of


def expected(reader, seq, resource):
    """Return the columns as they follow from the rows of the view."""
    moment = TabledMoment(reader, seq)
    rows = moment.page("nodes", Narrowed()).rows
    return {
        "seq": moment.seq,
        "time": moment.time,
        "total": len(rows),
        "nodes": [row.node for row in rows],
        "capacity": [row.capacity.get(resource, 0) for row in rows],
        "used": [row.used.get(resource, 0) for row in rows],
        "allocations": [row.allocations for row in rows],
        "reserved": [at for at, row in enumerate(rows) if row.reserved_for],
        "unschedulable": [at for at, row in enumerate(rows) if not row.schedulable],
    }


@given(configurations(), histories, st.integers())
@examples(25)
def test_columns_are_what_the_rows_say(tmp_path_factory, configuration, history, seed):
    """At moments in any order: earlier, later and far from those that are kept, which are few here."""
    path = tmp_path_factory.mktemp("loads") / "model.db"
    model = Rebuild(path, "log")
    for step in steps_of(configuration, history):
        model.take(step)
    end = model.state.seq
    model.finish()
    model.close()
    dice, asked = Random(seed), Loads()
    kept, far = loads.KEPT, loads.FAR
    loads.KEPT, loads.FAR = 3, 9
    try:
        with closing(sqlite3.connect(path)) as reader:
            for _ in range(30):
                seq, wanted = dice.randint(0, end), dice.choice(["vcore", "memory", "cards", None])
                found = asked.at(reader, seq, wanted, 1000)
                assert found.resource == (
                    wanted if wanted in found.resources else (found.resources or [""])[0]
                )
                for name, column in expected(reader, seq, found.resource).items():
                    assert getattr(found, name) == column, (name, seq)
                few = asked.at(reader, seq, wanted, 1)
                assert (few.nodes, few.total) == (found.nodes[:1], found.total)
    finally:
        loads.KEPT, loads.FAR = kept, far
