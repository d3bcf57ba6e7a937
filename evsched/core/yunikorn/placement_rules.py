"""The rules of placement rules, and what a filter's regular expression may be.

A filter with one entry may be a regular expression. Names of users come from outside, and Python's
engine needs exponential time for some patterns, so a pattern is taken only where its shape bounds
its time: no repeated group, and few of everything that can make the engine come back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from events.bounds import MAX_TEXT
from events.configuration import FilterSpec, PlacementRuleSpec, QueueSpec, YunikornSpec
from evsched.core.problem import Problem

# Bounds of a configuration: characters of a pattern, rules of a partition, parents of a rule.
MAX_PATTERN = 256
MAX_RULES = 100
MAX_CHAIN = 32

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:#/@+-]{0,252}\$?")
_SPECIAL = re.compile(r"[\^$*+?()\[{}|]")
_QUEUE_NAME = re.compile(r"[a-zA-Z0-9_:#/@-]{1,64}")
# What `pattern_problem` takes for one letter: an escaped sign, and a class of signs.
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_CLASS = re.compile(r"\[\^?\]?[^\]]*\]")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_COUNT = re.compile(r"\{([0-9]*),?([0-9]*)\}")
# So many of each a pattern may have: they bound the time of a search by a power of the length.
_MOST = {"repeats": 2, "optional parts": 2, "groups": 2, "alternatives": 12}
_MAX_COUNT = 64


def placement_problems(spec: YunikornSpec) -> Iterator[Problem]:
    """Yield every rule that the placement rules of a partition break, in their order.

    What cannot be known before an application comes (its tags, its user) is judged then, by
    `evsched.core.yunikorn.application_placement`.
    """
    subject = f"partition {spec.partition[:MAX_TEXT]}"
    if len(spec.placement_rules) > MAX_RULES:
        number = len(spec.placement_rules)
        yield Problem(
            subject,
            "placementrules",
            f"{subject}: has {number} placement rules, expected at most {MAX_RULES}",
        )
    for index, rule in enumerate(spec.placement_rules[:MAX_RULES]):
        yield from _rule(subject, f"placementrules[{index}]", rule, spec.root)


def is_pattern(entries: tuple[str, ...]) -> bool:
    """Return whether the users or groups of a filter are one regular expression, to be searched for in a name.

    They are when there is one entry and it holds a character that has a meaning there; a dot alone
    makes none.
    """
    return len(entries) == 1 and _SPECIAL.search(entries[0]) is not None


def pattern_problem(text: str) -> str:
    """Return why a text may not be a filter's regular expression; empty when it may.

    Escapes and classes are replaced by a letter first, so that a sign in them is not taken for an
    operator. What is left is counted: a few repetitions bound the time by a small power of the
    name's length. No repeated group is let through at all, because a repetition of a repetition is
    what takes exponential time.
    """
    if len(text) > MAX_PATTERN:
        return f"has {len(text)} characters, expected at most {MAX_PATTERN}"
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        return f"is no regular expression: {error}"
    bare = _CLASS.sub("c", _ESCAPED.sub("e", text))
    if "(?" in bare or re.search(r"\\[1-9]", text):
        return "uses a group extension or a reference to a group, expected neither"
    if _REPEATED_GROUP.search(bare):
        return "repeats a group, expected a pattern whose time is bounded"
    counts = {
        "repeats": sum(bare.count(sign) for sign in "*+{"),
        "optional parts": bare.count("?"),
        "groups": bare.count("("),
        "alternatives": bare.count("|"),
    }
    for what, most in _MOST.items():
        if counts[what] > most:
            return f"has {counts[what]} {what}, expected at most {most}"
    if any(int(number or 0) > _MAX_COUNT for pair in _COUNT.findall(bare) for number in pair):
        return f"repeats more than {_MAX_COUNT} times, expected at most that"
    return ""


def _rule(subject: str, field: str, rule: PlacementRuleSpec, root: QueueSpec) -> Iterator[Problem]:
    """Check a rule with its parent rules.

    Each level is checked by itself. Only when all of them are sound is it asked where they lead,
    so that one fault is not told twice.
    """
    chain = []
    level: PlacementRuleSpec | None = rule
    place = field
    while level is not None:
        chain.append((place, level))
        level, place = level.parent, f"{place}.parent"
        if len(chain) > MAX_CHAIN:
            yield Problem(
                subject,
                field,
                f"{subject}: {field} has more than {MAX_CHAIN} parent rules, expected fewer",
            )
            return
    before = 0
    for place, level in chain:
        for problem in _level(subject, place, level):
            before += 1
            yield problem
    if not before:
        yield from _static(subject, chain, root)


def _level(subject: str, field: str, rule: PlacementRuleSpec) -> Iterator[Problem]:
    """Check one rule by itself: its value, where it needs one, and its filter.

    Which names of rules exist is the reader's to say: they are an enumeration of the vocabulary.
    """
    if rule.name in {"fixed", "tag"} and not rule.value:
        what = "the queue" if rule.name == "fixed" else "the name of the tag"
        yield Problem(
            subject,
            field,
            f"{subject}: {field} is a {rule.name} rule without a value, expected {what}",
        )
    if (
        rule.name == "fixed"
        and not all(_QUEUE_NAME.fullmatch(part) for part in rule.value.split("."))
        and rule.value
    ):
        yield Problem(
            subject,
            f"{field}.value",
            f"{subject}: {field} has the value {rule.value[:64]!r}, expected the path of a queue",
        )
    if rule.filter is not None:
        yield from _filter(subject, f"{field}.filter", rule.filter)


def _filter(subject: str, field: str, filter_: FilterSpec) -> Iterator[Problem]:
    """Check a filter: names, or one regular expression.

    Several entries are names, however they look. That is YuniKorn's rule, and it makes ``a|b``
    beside another entry a name that nobody has, so it is refused.
    """
    for name, entries in (("users", filter_.users), ("groups", filter_.groups)):
        for entry in entries:
            no_name = (
                ""
                if _NAME.fullmatch(entry)
                else "is no name, expected names or one regular expression"
            )
            why = pattern_problem(entry) if is_pattern(entries) else no_name
            if why:
                yield Problem(
                    subject, f"{field}.{name}", f"{subject}: {field} entry {entry[:64]!r} {why}"
                )


def _static(
    subject: str, chain: list[tuple[str, PlacementRuleSpec]], root: QueueSpec
) -> Iterator[Problem]:
    """Check that the queues a chain names exist or may be created, and that it ends in a leaf.

    The chain comes with the rule itself first and its outermost parent last. A full path makes the
    parents above it of no meaning. From the first rule on that is not ``fixed`` nothing is known
    before an application comes, but that a leaf cannot hold queues.
    """
    start = next(
        (i for i, (_, rule) in enumerate(chain) if rule.name == "fixed" and _is_full(rule.value)),
        len(chain) - 1,
    )
    queue: QueueSpec | None = root
    path = "root"
    for place, rule in reversed(chain[: start + 1]):
        if rule.name != "fixed":
            if queue is not None and not queue.parent:
                yield Problem(
                    subject,
                    place,
                    f"{subject}: {place} would create queues below {path}, which is a leaf",
                )
            return
        parts = [part.lower() for part in rule.value.split(".")]
        for part in parts[1:] if _is_full(rule.value) else parts:
            if queue is not None and not queue.parent:
                yield Problem(
                    subject,
                    place,
                    f"{subject}: {place} names {part} below queue {path}, which is a leaf",
                )
                return
            queue = (
                next((child for child in queue.queues if child.name == part), None)
                if queue is not None
                else None
            )
            path = f"{path}.{part}"
            if queue is None and not rule.create:
                yield Problem(
                    subject,
                    place,
                    f"{subject}: {place} names queue {path}, which does not exist and may not be created",
                )
                return
    if queue is not None and queue.parent:
        yield Problem(
            subject,
            chain[0][0],
            f"{subject}: {chain[0][0]} ends in queue {path}, which is a parent, expected a leaf",
        )


def _is_full(value: str) -> bool:
    """Tell whether the value of a fixed rule is a path from root.

    Any other value is a path below the queue that the parent rule gives. Case does not matter.
    """
    return value.lower() == "root" or value.lower().startswith("root.")
