"""Rules: one frozen value a version, in force by an event, and no deciding constant anywhere else."""

import ast
from pathlib import Path

import pytest
from msgspec import UNSET
from msgspec.structs import fields, replace

import evsched.core
from events import vocabulary as v
from events.errors import LogDamaged, WrittenByNewer
from evsched.core import snapshot
from evsched.core.engine import Engine
from evsched.core.record import RECORDS, StateRecord
from evsched.core.recorded import apply_recorded
from evsched.core.rules import FIRST, NEWEST, RULES, rules_of
from evsched.core.state import State
from evsched.core.workloads import Allocation, Ask, Preemption

CORE = Path(evsched.core.__file__).parent
START = 1_767_225_600_000

SENTINEL = "stands for a value that no real one reaches, or packs exact integers side by side"
SPEED = "chooses between two ways to one result; a property holds the two together"
BOUND = "a bound of what is taken in, with the other bounds of inputs"
DEFAULT = "the default of a setting, part of what a configuration means"
FOLD = "part of what an event means to the state"
SCALE = "a unit, or the scale of an exact comparison; it becomes a field before it may change"

ALLOWED = {
    "ANYBODY": SENTINEL,
    "BOUNDLESS": SENTINEL,
    "FIELD_BITS": SENTINEL,
    "IMPOSSIBLE": SENTINEL,
    "LARGE": SENTINEL,
    "LAST_MOMENT": SENTINEL,
    "LEVELS": SENTINEL,
    "MAX_INT64": SENTINEL,
    "MAX_PRIORITY": SENTINEL,
    "MIN_PRIORITY": SENTINEL,
    "MOST": SENTINEL,
    "NEVER": SENTINEL,
    "NOBODY": SENTINEL,
    "OPTED_OUT": SENTINEL,
    "SUM_LIMIT": SENTINEL,
    "UNASKED": SENTINEL,
    "UNLIMITED": SENTINEL,
    "UNREPRESENTABLE": SENTINEL,
    "WEIGHTLESS": SENTINEL,
    "BUCKETS_A_MARK": SPEED,
    "FEW": SPEED,
    "FEWEST_ROWS": SPEED,
    "FEWEST": SPEED,
    "FEWEST_SLOTS": SPEED,
    "FEWEST_SPARE": SPEED,
    "HEAP_FROM": SPEED,
    "KINDS_KEPT": SPEED,
    "MANY": SPEED,
    "MARK_SHARE": SPEED,
    "MOST_FRONTS": SPEED,
    "MOST_HEAPS": SPEED,
    "MOST_KEPT": SPEED,
    "MOST_PODS": SPEED,
    "MOST_PROFILES": SPEED,
    "MOST_SEARCHED": SPEED,
    "REBUILD_SHARE": SPEED,
    "SLACK": SPEED,
    "SLICE": SPEED,
    "SHAPES_KEPT": SPEED,
    "SORT_SHARE": SPEED,
    "SPARE": SPEED,
    "SPARE_VALUES": SPEED,
    "TAIL_SHARE": SPEED,
    "TYPES_SORTED": SPEED,
    "WRONG_MARKS": SPEED,
    "DEFAULT_BACKOFF_DELAY_MS": DEFAULT,
    "DEFAULT_PREEMPTION_DELAY_MS": DEFAULT,
    "DEFAULT_WEIGHT": DEFAULT,
    "LARGE_OFFSET": DEFAULT,
    "ATTEMPTS": DEFAULT,
    "GRACE_MS": FOLD,
    "REMEMBERED_PROPOSALS": FOLD,
    "FULL": SCALE,
    "MILLISECOND": SCALE,
    "NANO": SCALE,
    "PER_MILLE": SCALE,
    "RATIO_BITS": SCALE,
    "SCALE_BITS": SCALE,
    "_BINARY": SCALE,
    "_DECIMAL": SCALE,
    "_FAR_EXPONENT": SCALE,
    "_MANTISSA_BITS": SCALE,
    "_MAX_NS": SCALE,
    "_PARTS": SCALE,
    "_UNITS": SCALE,
    "_MAX_DIGITS": BOUND,
    "_MAX_LENGTH": BOUND,
    "_MAX_COUNT": BOUND,
    "_MOST": BOUND,
}
"""Numbers that stand beside the rules, each with the reason; bounds of inputs are named ``MAX_``."""


def numbers(file: Path) -> list[str]:
    """Return the names of a module that stand for whole numbers above 1."""
    found = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        large = any(
            isinstance(one, ast.Constant) and type(one.value) is int and abs(one.value) > 1
            for one in ast.walk(value)
        )
        found += [one.id for one in targets if large and isinstance(one, ast.Name)]
    return found


def test_deciding_constants_stand_in_the_rules() -> None:
    """A number of the core is a field of `Rules`, or stands in the table above with its reason."""
    strangers = {
        f"{file.relative_to(CORE)}: {name}"
        for file in CORE.rglob("*.py")
        if file.name not in ("rules.py", "record.py", "snapshot.py")
        for name in numbers(file)
        if name not in ALLOWED and not name.startswith("MAX_")
    }
    assert not strangers


def test_no_fold_looks_at_rules() -> None:
    """A reader that does not know the rules in force still knows the state."""
    folds = [*(CORE / "folding").glob("*.py"), CORE / "reducer.py"]
    looks = [
        f"{file.name}:{node.lineno}"
        for file in folds
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "rules"
        and not (isinstance(node.value, ast.Name) and node.value.id == "event")
    ]  # fmt: skip
    assert not looks


def test_versions_count_from_1_and_say_what_they_changed() -> None:
    """Each is known by its number, and has a sentence for those who consider adopting it."""
    assert list(RULES) == list(range(FIRST, NEWEST + 1))
    for version, rules in RULES.items():
        assert rules.version == version
        assert rules.changes
        assert all(one.endswith(".") for one in rules.changes)
        assert rules.record in RECORDS


def test_the_rules_of_0_1_0_are_as_they_were() -> None:
    """They decided every log that names none, so no field of theirs ever changes."""
    known = {
        "record": 1, "patience_ms": 1_000, "ask_budget": 50_000, "node_budget": 5_000, "nodes_in_vain": 64,
        "age_unit_ms": 3_600_000, "raw_kept": 1024,
    }  # fmt: skip
    assert {name: getattr(RULES[FIRST], name) for name in known} == known


def test_a_log_begins_with_the_first_rules() -> None:
    """A state without events, and a log whose leader names none."""
    engine = Engine()
    assert engine.state.rules is RULES[FIRST]
    (started,) = engine.lead(START, 1, "l")
    assert (started.rules, started.record) == (1, 1)


def adopted(version: int) -> State:
    """Return a state in which these rules are in force."""
    engine = Engine()
    apply_recorded(engine, (v.RulesAdopted(seq=1, rules=version),), START, 0)
    return engine.state


def test_unknown_rules_are_folded_and_not_decided_by() -> None:
    """A release that is too old for the rules knows the state, and says why it cannot lead."""
    state = adopted(NEWEST + 1)
    assert state.rules_version == NEWEST + 1
    with pytest.raises(WrittenByNewer, match=f"rules {NEWEST + 1} are in force"):
        Engine(state).step(START)
    with pytest.raises(WrittenByNewer):
        rules_of(NEWEST + 1)


def test_rules_survive_a_snapshot() -> None:
    """They are part of the truth, also where this release does not know them."""
    for version in (FIRST, NEWEST, NEWEST + 1):
        state = adopted(version)
        assert snapshot.decode(snapshot.encode(state), START).rules_version == version


def test_earlier_rules_are_refused() -> None:
    """Rules only go forward: the same, or earlier ones, are a conflict."""
    engine = Engine(adopted(NEWEST + 1))
    engine.state.rules_version = NEWEST
    for version in range(1, NEWEST + 1):
        proposal = v.Proposal(input=v.RulesAdopted(rules=version))
        (refused,) = engine.step(START, [proposal])
        assert isinstance(refused, v.InputRejected)
        assert (refused.code, refused.reason) == (
            "conflict",
            f"rules {version}: rules {NEWEST} are in force, expected later ones",
        )


def test_a_digest_of_an_unknown_record_is_counted_and_not_compared() -> None:
    """It is no sign of damage that this release cannot make it."""
    engine = Engine()
    checkpoint = v.CheckpointRecorded(seq=1, digest="of another kind", record=99)
    apply_recorded(engine, (checkpoint,), START, 0)
    apply_recorded(engine, (replace(checkpoint, seq=2),), START, 1)
    assert engine.state.uncompared == 2


def test_adoption_tries_again_what_was_tried_in_vain() -> None:
    """Newer rules may have a plan where the former had none, so nothing waits for another change first."""
    engine = Engine()
    assert not engine.state.retry_needed
    engine.step(START, [v.Proposal(input=v.RulesAdopted(rules=NEWEST))])
    assert engine.state.retry_needed
    assert engine.state.rules is RULES[NEWEST]


def test_checkpoints_name_rules_and_record() -> None:
    """A digest is compared by the record that its own event names, before and after an adoption."""
    engine, again = Engine(), Engine()
    steps = [engine.lead(START, 1, "l", 2)]
    steps += [engine.step(START, [v.Proposal(input=v.NodeRegistered(node="a", capacity={}))])]
    steps += [engine.step(START, [v.Proposal(input=v.RulesAdopted(rules=2))])]
    steps += [engine.step(START, [v.Proposal(input=v.NodeRegistered(node="b", capacity={}))])]
    marks = [one for step in steps for one in step if isinstance(one, v.CheckpointRecorded)]
    assert [(one.rules, one.record) for one in marks] == [(1, 1), (2, 2)]
    for position, events in enumerate(steps):
        apply_recorded(again, events, START, position)
    assert again.state.digest(1) == engine.state.digest(1)
    with pytest.raises(LogDamaged, match="carries digest"):
        apply_recorded(again, (replace(marks[1], seq=9, digest=again.state.digest(1)),), START, 9)


def test_record_2_sees_the_order_of_reservations() -> None:
    """Record 1 sorts the keys of mappings, record 2 covers the order that decisions follow."""
    one, other = State(), State()
    one.reservations = {"a": "n", "b": "n"}
    other.reservations = {"b": "n", "a": "n"}
    assert one.digest(1) == other.digest(1)
    assert one.digest(2) != other.digest(2)


def test_a_field_that_a_row_gains_is_left_out_until_it_is_used() -> None:
    """Every field beyond those of 0.1.0 has the default UNSET, so it changes no digest of an older log."""
    first = {Ask: 19, Allocation: 23, Preemption: 5, StateRecord: 26}
    for kind, count in first.items():
        own = [field for field in fields(kind) if field.default is not UNSET]
        assert len(own) == count, kind
