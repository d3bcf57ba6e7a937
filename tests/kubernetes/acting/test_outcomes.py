"""What each answer of the API means: a table, in which no answer is an exception."""

import pytest

from evsched.agents.kubernetes.acting.actions import (
    AnnounceEviction,
    BindPod,
    DeletePod,
    EvictPod,
    LookAtPod,
    MarkVictim,
)
from evsched.agents.kubernetes.acting.outcomes import ApiAnswer, verdict_of
from evsched.agents.kubernetes.acting.seen import PodFound

ABOUT = {
    "task": "n/p",
    "seq": 7,
    "pod": PodFound(namespace="n", name="p", uid="u", scheduler="evsched"),
}
ACTIONS = {
    "bind": BindPod(**ABOUT, node="n1"),
    "look": LookAtPod(**ABOUT, said=""),
    "mark": MarkVictim(**ABOUT, message=""),
    "announce": AnnounceEviction(**ABOUT, message=""),
    "evict": EvictPod(**ABOUT, asked=7, rehearsed=False),
    "delete": DeletePod(**ABOUT, asked=7),
}
BUDGET = b"""{"kind":"Status","status":"Failure","code":429,"message":"violates",
 "details":{"causes":[{"reason":"DisruptionBudget"}]}}"""
BUDGETS = b"""{"kind":"Status","status":"Failure","code":500,
 "message":"This pod has more than one PodDisruptionBudget"}"""


@pytest.mark.parametrize(
    ("action", "code", "body", "verdict"),
    [
        ("bind", 201, b'{"kind":"Status","status":"Success"}', "done"),
        ("bind", 0, b"", "later"),
        ("bind", 404, b"", "later"),
        ("bind", 409, b"already assigned", "refused"),
        ("bind", 422, b"", "refused"),
        ("bind", 403, b"", "refused"),
        ("bind", 429, b"", "later"),
        ("bind", 500, b"<html>", "later"),
        ("look", 200, b'{"metadata":{"name":"p"}}', "done"),
        ("look", 404, b"", "later"),
        ("mark", 409, b"", "later"),
        ("mark", 403, b"", "skip"),
        ("announce", 409, b"", "done"),
        ("announce", 403, b"", "skip"),
        ("announce", 404, b"", "skip"),
        ("announce", 503, b"", "later"),
        ("evict", 201, b'{"kind":"Status","status":"Success"}', "done"),
        ("evict", 429, BUDGET, "refused"),
        ("evict", 429, b"slow down", "later"),
        ("evict", 500, b"", "later"),
        ("evict", 201, BUDGETS, "refused"),
        ("evict", 500, BUDGETS, "refused"),
        ("evict", 403, b"", "refused"),
        ("evict", 404, b"", "later"),
        ("delete", 409, b"", "later"),
        ("delete", 200, b'{"kind":"Pod"}', "done"),
        ("delete", 403, b"", "refused"),
    ],
)
def test_an_answer_has_one_meaning(action, code, body, verdict):
    """A failure of the Eviction API counts even under a code of success; what is no JSON is read as its code."""
    assert verdict_of(ACTIONS[action], ApiAnswer(code, body)).verdict == verdict


def test_a_server_that_is_busy_is_told_from_a_budget_that_refuses():
    """The one asks every request to wait, the other concerns one pod."""
    busy = verdict_of(ACTIONS["evict"], ApiAnswer(429, b"", 3.0))
    refused = verdict_of(ACTIONS["evict"], ApiAnswer(429, BUDGET, 10.0))
    assert (busy.busy, refused.busy) == (True, False)
    assert refused.said == "429 violates"
