"""Views of small logs for the tests of YuniKorn's interface."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.api.yunikorn.view import YunikornView
from evsched.core.reducer import apply
from evsched.core.state import State
from projections.read_model import ReadModel
from tests.core.small import START
from tests.replays.logs import read, sealed, taken


@contextmanager
def view_of(path, steps, seq=None):
    """Yield the view of the moment after an event, of a log with these steps; None: its end."""
    model = ReadModel(path, steps[0].head.log_id)
    for step in steps:
        model.take(step)
    model.commit()
    state = state_at(steps, seq)
    connection = sqlite3.connect(path)
    try:
        yield YunikornView(state, connection, steps[0].head.log_id)
    finally:
        connection.close()
        model.close()


def state_at(steps, seq=None):
    """Return the state after an event; None: the last one."""
    state = State()
    for step in steps:
        for event in step.events:
            if seq is None or event.seq <= seq:
                state.time = step.time
                apply(state, event)
    return state


def tree():
    """Return a configuration with every kind of setting that YuniKorn shows."""
    prod = QueueSpec(
        name="prod",
        guaranteed={"vcore": 6000, "memory": 8},
        maximum={"vcore": 8000},
        max_applications=5,
        properties={"preemption.delay": "90s", "priority.offset": "3"},
    )
    test = QueueSpec(name="test", properties={"application.sort.policy": "fair"})
    batch = QueueSpec(
        name="batch",
        parent=True,
        queues=(test,),
        maximum={"vcore": 4000},
        quota_preemption_delay_ms=60_000,
        properties={"preemption.policy": "fence", "application.sort.policy": "fifo"},
    )
    root = QueueSpec(name="root", parent=True, submit_acl="*", queues=(prod, batch))
    return YunikornSpec(root=root, quota_preemption_enabled=True)


def ask(name, leaf, vcore, *, application=None, **fields):
    """Return a task that waits in a leaf of that tree."""
    return v.AskSubmitted(
        ask=name,
        application=application or f"app-{leaf}",
        queue=f"root.{leaf}",
        resources={"vcore": vcore},
        **fields,
    )


def told():
    """Return what a log of that tree holds, as (time, events, position in the inbox).

    Two applications run, one of them waits in vain; one has nothing, one ended, one was refused. The nodes n1 and n2 have 10
    cores and 20 bytes each.
    """
    history = [
        (
            0,
            [
                v.ApplicationSubmitted(
                    application="spark", queue="root.prod", user="ann", groups=("dev",)
                ),
                v.ApplicationSubmitted(application="late", queue="root.batch.test", user="bob"),
                v.ApplicationSubmitted(application="lost", queue="root.none", user="eve"),
            ],
            False,
        ),
        (
            1000,
            [
                ask("driver", "prod", 2000, application="spark", originator=True, priority=7),
                ask("b-1", "batch.test", 3000, user="bob"),
                ask("short", "batch.test", 1000, application="done", user="bob"),
            ],
            False,
        ),
        (31_000, [ask("exec-1", "prod", 7000, application="spark", priority=-2)], False),
        (1000, [v.AllocationReleased(allocation="short")], False),
        (60_000, [v.NodeUpdated(node="n2", schedulable=False)], False),
    ]
    return taken(tree(), history, checkpoint_every=0)


def story():
    """Return the steps of that log."""
    return read(sealed(told()))


__all__ = ["START", "ask", "state_at", "story", "told", "tree", "view_of"]
