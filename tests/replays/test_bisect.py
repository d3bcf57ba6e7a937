"""The first event at which something became true."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from replays.history.bisect import first, first_difference
from replays.history.expressions import ExpressionInvalid, parse
from replays.history.moments import Moment
from replays.history.rebuild import History
from tests.replays.logs import sealed, story, written

CASES = [
    ("ask test-1 waits", 8),
    ("ask test-1 gone", 10),
    ("ask nobody gone", None),
    ("ask prod-1 reserved", 21),
    ("allocation test-4 runs", 17),
    ("allocation test-4 leaving", 21),
    ("allocation test-4 gone", 24),
    ("node n2 exists", 5),
    ("node n2 gone", 6),
    ("application prod exists", 18),
    ("application prod gone", 31),
    ("queue root.test exists", 2),
    ("timer quota:root.test exists", 3),
    ("timers > 0", 3),
    ("timers == 0", 1),
    ("asks >= 2", 9),
    ("allocations > 3", 17),
    ("event InputRejected", 15),
    ("event QuotaPreemptionDecided", 30),
    ("queue root.test usage.vcore > max.vcore", 27),
    ("queue root.test usage.vcore > 3", 11),
    ("queue root.test usage.vcore > 3500m", 11),
    ("queue root.prod usage.vcore < guaranteed.vcore", 2),
    ("queue root.prod usage.vcore > max.vcore", None),
    ("queue root usage.vcore >= 8", 17),
    ("queue root.test pending_asks == 2", 9),
    ("queue root.none usage.vcore == 0", None),
    ("node n1 free.vcore == 0", 17),
    ("node n1 allocations == 3", 16),
    ("node n1 used.vcore == capacity.vcore", 17),
    ("ask test-1 gone and node n1 free.vcore == 0", 17),
    ("ask test-1 gone and not allocation test-1 runs", None),
    ("event InputRejected or allocation test-1 runs and node n1 exists", 10),
    ("not node n2 exists and asks == 0 and allocations == 4", 17),
]


@pytest.mark.parametrize(("text", "seq"), CASES, ids=[text for text, _ in CASES])
async def test_the_first_event_is_found(text, seq):
    """Everything that the language can say."""
    found = await first(History(await written(sealed(story()))), parse(text))
    assert (None if found is None else found.seq) == seq
    if found is not None:
        assert found.event.seq == seq


async def test_looking_may_begin_later():
    """What held before is not looked at."""
    history = History(await written(sealed(story())))
    found = await first(history, parse("allocations > 3"), Moment(seq=20))
    assert found.seq == 21


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("nonsense", "expected for example"),
        ("ask t1 sleeps", "found 'sleeps', expected waits, gone"),
        ("queue root.a usage.vcore = 3", "found '=', expected one of"),
        ("queue root.a usage > 3", "expected usage, pending"),
        ("queue root.a usage.vcore > 3x", "3x"),
        ("node n1 usage.vcore > 3", "expected capacity"),
        ("timers > many", "expected a whole number"),
        ("event Nothing", "no such type"),
        ("ask t1 waits and", "expected for example"),
        ("__import__('os') exists x", "expected for example"),
    ],
)
def test_what_says_nothing_is_refused(text, says):
    """The message names the word."""
    with pytest.raises(ExpressionInvalid, match=says.replace("(", r"\(")):
        parse(text)


async def test_two_logs_part_where_their_states_differ():
    """Another node for a task, and a log that ends earlier; the same log never differs from itself."""
    steps = story()
    other = [
        (time, tuple(replace(e, user="w") if e.seq == 18 else e for e in events), at)
        for time, events, at in steps
    ]
    ours = History(await written(sealed(steps)))
    assert (await first_difference(ours, History(await written(sealed(other))))).seq == 18
    assert (
        await first_difference(ours, History(await written(sealed(steps, "another-log")))) is None
    )
    shorter = History(await written(sealed(steps[:4])))
    assert (await first_difference(ours, shorter)).seq == 18
    found = await first_difference(shorter, ours)
    assert (found.seq, found.event) == (18, None)
