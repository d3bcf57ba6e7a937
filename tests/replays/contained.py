"""A log in which every remedy stands: refusals of faults, what was set aside and taken up, another inbox, other rules."""

from __future__ import annotations

import msgspec

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.core.engine import Engine
from replays.history.sealing import Sealer
from tests.core.histories import START
from tests.replays.logs import LOG_ID

SPEC = YunikornSpec(
    root=QueueSpec(
        name="root",
        parent=True,
        submit_acl="*",
        queues=(QueueSpec(name="web", guaranteed={"vcore": 4}), QueueSpec(name="research")),
    )
)


def pod(name, vcore=1, leaf="web"):
    """Return an ask."""
    return v.AskSubmitted(
        ask=name, application=f"{leaf}-app", queue=f"root.{leaf}", resources={"vcore": vcore}
    )


def failed(one, position):
    """Return a proposal that the leader failed at."""
    return v.Proposal(
        position=position,
        id=f"p-{one.ask}",
        problem=f"AskSubmitted: evsched failed at it, at folding.py:1 f: KeyError: '{one.ask}'",
        raw=msgspec.json.encode(one).decode(),
        code="internal-error",
    )


def proposed(*inputs):
    """Return proposals without places."""
    return [v.Proposal(input=one) for one in inputs]


FAULT = ("search.py:7 find", "KeyError: 'secret-ask'")


def contained():
    """Return the records of the log; the last failure is that of `secret-late`, which comes with a release."""
    engine, sealer = Engine(), Sealer(LOG_ID)
    records, position = [], 0

    def seal(at, events, *, back=None):
        nonlocal position
        position = back if back is not None else position
        if events:
            records.extend(sealer.seal(START + at, events, inbox_next=position))

    def step(at, *proposals):
        nonlocal position
        position += len(proposals)
        seal(at, engine.step(START + at, proposals))

    seal(0, engine.lead(START, 1, "leader-1", 25))
    joined = v.NodeRegistered(node="n1", capacity={"vcore": 8})
    step(0, *proposed(v.ConfigurationApplied(configuration=SPEC), joined))
    step(1, *proposed(pod("runs", 7, "research"), pod("secret-ask", 3)), failed(pod("bad"), 4))
    seal(2, engine.suspend(START + 2, "ask", "secret-ask", FAULT))
    seal(2, engine.suspend(START + 2, "cycle", "", FAULT))
    step(3, *proposed(pod("more", 2)))
    attached = v.InboxAttached(inbox="other-inbox", position=0, replaces="")
    seal(4, engine.lead(START + 4, 2, "leader-2", 25))
    seal(4, engine.attach(START + 4, attached), back=0)
    step(5, *proposed(v.ConfigurationApplied(configuration=SPEC)))
    step(6, *proposed(v.RulesAdopted(rules=2), pod("secret-late", 1)))
    step(40_000)
    step(41_000, *proposed(v.AllocationReleased(allocation="runs", reason="preempted")))
    step(42_000, *proposed(pod("behind", 8)), failed(pod("secret-worst"), 4))
    return records
