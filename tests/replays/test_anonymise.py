"""A log without names decides the same, and no name is left in it."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from events import configuration as c
from events import vocabulary as v
from events.chain import Head, RecordedStep
from events.frame import encode_event
from evsched.core.engine import Engine
from replays.checking.verify import verify
from replays.history.anonymise import (
    CLEARED,
    NAMES,
    PATHS,
    UNKNOWABLE,
    VALUES,
    CannotAnonymise,
    anonymise,
    collect,
)
from tests.core.histories import (
    LEAVES,
    NODES,
    START,
    TASKS,
    configurations,
    first_step,
    histories,
    settle,
)
from tests.examples import examples


def run(configuration, history):
    """Run a history and return its steps."""
    engine = Engine()
    taken = [(START, engine.lead(START, 1, "leader"))]
    time = START
    for index, (later, inputs, _) in enumerate([(0, [], False), *history]):
        time += later
        taken.extend(settle(engine, time - 1))
        proposals = (
            first_step(configuration)
            if index == 0
            else [v.Proposal(input=proposed) for proposed in inputs]
        )
        taken.append((time, engine.step(time, proposals)))
    return [
        RecordedStep(
            Head(next_seq=events[-1].seq + 1, time=at, frame=number, hash="h", position=number),
            at,
            True,
            events,
        )
        for number, (at, events) in enumerate(taken, 1)
        if events
    ]


@given(configurations(), histories)
@examples(60)
def test_an_anonymised_log_verifies_and_holds_no_name(configuration, history):
    """The same decisions under other names; taking the new steps again finds no difference."""
    steps = run(configuration, history)
    new = [step._replace(events=events) for step, events in anonymise(collect(steps), steps)]
    assert verify(Engine(), new) is None
    text = b"\n".join(encode_event(event) for step in new for event in step.events)
    for name in (*TASKS, *NODES, *LEAVES):
        assert b'"%b"' % name.encode() not in text


def test_a_regular_expression_in_a_filter_is_refused():
    """Its names cannot be replaced."""
    rule = c.PlacementRuleSpec(name="user", filter=c.FilterSpec(users=("dev-.*",)))
    spec = c.YunikornSpec(
        root=c.QueueSpec(name="root", parent=True, queues=(c.QueueSpec(name="a"),)),
        placement_rules=(rule,),
    )
    steps = run(spec, [])
    with pytest.raises(CannotAnonymise, match="regular expression"):
        collect(steps)


def test_who_proposed_is_renamed_and_why_is_left_out():
    """The program, the person and the message of a commit are as telling as any name."""
    spec = c.YunikornSpec(root=c.QueueSpec(name="root", parent=True))
    applied = v.ConfigurationApplied(
        configuration=spec, actor="hanna", message="for the sale", proposal="acme/1"
    )
    engine = Engine()
    unread = v.Proposal(source="/acme/7", actor="bob", id="acme/2", problem="is empty", raw="acme")
    events = engine.step(START, [v.Proposal(input=applied, source="/acme/7"), unread])
    head = Head(next_seq=3, time=START, frame=1, hash="h", position=1)
    step = RecordedStep(head, START, True, events)
    ((_, found),) = anonymise(collect([step]), [step])
    text = b"".join(map(encode_event, found)).decode()
    assert not [name for name in ("hanna", "bob", "acme", "sale") if name in text]
    assert found[0].source == found[1].source != ""


KEPT = {
    "release", "family", "unmodelled", "effect", "operator", "key", "before", "after",
    "place", "subject", "type", "due", "leader", "digest", "rule", "algorithm", "code", "kind", "reason", "message", "partition",
    "properties", "user_group_resolver", "cost", "resources", "preempt_resources", "submit_acl", "admin_acl", "position",
    "preemption_policy", "within_cluster_queue", "reclaim_within_cohort", "borrow_within_cohort", "when_can_borrow",
    "when_can_preempt", "preference", "stop_policy", "node_sort_policy", "fair_strategies",
}  # fmt: skip


def test_every_text_field_of_the_vocabulary_is_decided_upon():
    """A new field with text in it must be named in one of the lists, or names could leak through it."""
    seen: set[type] = set()
    stack = list(v.AnyEvent.__args__)
    while stack:
        kind = stack.pop()
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
            if kind in seen:
                continue
            seen.add(kind)
            for field in msgspec.structs.fields(kind):
                if "str" in str(field.type) and "Struct" not in str(field.type):
                    amounts = "dict[str, typing.Annotated[int" in str(
                        field.type
                    ) or "dict[str, int" in str(field.type)
                    known = field.name in NAMES | PATHS | VALUES | CLEARED | UNKNOWABLE | KEPT | {
                        "priority_classes",
                        "quotas",
                    }
                    assert amounts or known, f"{kind.__name__}.{field.name}"
                stack.append(field.type)
        else:
            stack.extend(getattr(kind, "__args__", ()) or ())
