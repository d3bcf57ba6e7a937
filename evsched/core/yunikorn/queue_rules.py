"""The rules of a partition of queues.yaml: tree, resources, access lists and templates.

Limits of users and groups are judged in `evsched.core.yunikorn.limit_rules`, placement rules in
`evsched.core.yunikorn.placement_rules`.

A configuration comes from a file, where each fault is told with its line, or directly from a
program. Both are judged here, so the bounds of names and amounts are checked although the reader
of files has done so. A problem that is *advisory* is what a file is refused for and a program is
not: it does no harm to decisions, and logs exist that have it.

Faults are yielded and not raised, as all of them are told in one pass. Only a tree that is too
deep or too large ends the pass: what follows would take as long as the tree is large.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from events.bounds import (
    MAX_AMOUNT,
    MAX_INT64,
    MAX_NAME,
    MAX_QUEUE_DEPTH,
    MAX_QUEUES,
    MAX_RESOURCE_TYPES,
    MAX_TALLIES,
    MAX_TEXT,
)
from events.configuration import Amounts, QueueSpec, YunikornSpec
from evsched.core.problem import Problem
from evsched.core.quantity import format_amount
from evsched.core.queues import QueueSettings
from evsched.core.yunikorn.cost import NAMES
from evsched.core.yunikorn.limit_rules import limit_problems
from evsched.core.yunikorn.placement_rules import placement_problems
from evsched.core.yunikorn.settings import resolve

_QUEUE_NAME = re.compile(r"[a-z0-9_:#/@-]{1,64}")
_RESOURCE_NAME = re.compile(r"[^\x00-\x20\x7f-\xa0]{1,253}")
_ACL = re.compile(r"\*|(?:[^\s,]+(?:,[^\s,]+)*)?(?: (?:[^\s,]+(?:,[^\s,]+)*)?)?")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


class _Above(Struct, frozen=True, gc=False):
    """What the queues above say about a queue.

    It is carried down the tree, so each queue is judged against its whole path in one step.

    Attributes:
        path: Of the parent; empty above root.
        maximum: By resource, the lowest maximum above.
        maximum_of: By resource, the path of the queue that has that maximum, for the message.
        max_applications: Of the parent; 0: none.
        settings: Of the parent, from which properties are inherited; None above root.
    """

    path: str = ""
    maximum: Amounts = {}
    maximum_of: dict[str, str] = {}
    max_applications: int = 0
    settings: QueueSettings | None = None


def queue_problems(spec: YunikornSpec) -> Iterator[Problem]:
    """Yield every rule that a partition breaks.

    The order is that of the file: the partition, its queues with parents before children, then
    limits and placement rules.
    """
    subject = f"partition {spec.partition[:MAX_TEXT]}"
    if not spec.partition or len(spec.partition) > MAX_TEXT or _CONTROL.search(spec.partition):
        yield Problem(
            subject,
            "name",
            f"partition: found the name {spec.partition[:64]!r}, expected printable text",
        )
    if spec.root.name != "root":
        yield Problem(
            "queue root",
            "name",
            f"queue root: found the name {spec.root.name[:64]!r}, expected root",
        )
    if not spec.root.parent:
        yield Problem("queue root", "parent", "queue root: is a leaf, expected it to hold queues")
    yield from _root_resources(spec.root)
    yield from _amounts(
        subject, "preemption.pace.resources", spec.pace.max_resources, "at most preempted"
    )
    if spec.cost not in NAMES:
        wrong = f"{subject}: found preemption.cost {spec.cost[:64]!r}, expected one of {', '.join(sorted(NAMES))}"
        yield Problem(subject, "preemption.cost", wrong)
    too_large = _too_large(spec.root) or _too_many_types(spec)
    if too_large is not None:
        yield too_large
        return
    yield from _queue(spec.root, _Above())
    yield from limit_problems(spec)
    yield from placement_problems(spec)


def _root_resources(root: QueueSpec) -> Iterator[Problem]:
    """Refuse resources of root in a file, as YuniKorn does: its maximum is what the nodes have together.

    A configuration that is given directly may have them, and then they hold as those of any queue.
    """
    for field, amounts in (("guaranteed", root.guaranteed), ("max", root.maximum)):
        if amounts:
            message = f"queue root: found {field} resources, expected none: the nodes limit root"
            yield Problem("queue root", f"resources.{field}", message, advisory=True)


def resource_types(spec: YunikornSpec) -> dict[str, None]:
    """Return the resource types that a partition names, each once.

    Those count that limits and templates name, too: each may come to stand in the vectors of every
    queue.
    """
    found: dict[str, None] = dict.fromkeys(spec.pace.max_resources or ())
    for queue in _all_queues(spec.root):
        template = queue.template
        for amounts in (
            queue.guaranteed,
            queue.maximum,
            *(limit.max_resources for limit in queue.limits),
            *((template.guaranteed, template.maximum) if template is not None else ()),
        ):
            if amounts:
                found.update(dict.fromkeys(amounts))
    return found


def _all_queues(root: QueueSpec) -> Iterator[QueueSpec]:
    """Yield a queue and everything below it, in no order that matters.

    By a stack of its own, so that the depth of the tree does not matter.
    """
    stack = [root]
    while stack:
        queue = stack.pop()
        yield queue
        stack.extend(queue.queues)


def _too_large(root: QueueSpec) -> Problem | None:
    """Return why a tree is not even looked into; None where it may be.

    It walks by a stack of its own. The depth is somebody else's choice, and Python's stack has an
    end.
    """
    stack = [(root, "", 1)]
    number = 0
    while stack:
        queue, above, depth = stack.pop()
        if len(queue.name) > MAX_NAME:
            found = f"queue {above}: found a queue name of {len(queue.name)} characters"
            message = f"{found}, expected at most {MAX_NAME}"
            return Problem(f"queue {above}", "name", message)
        # Written out for one queue at a time: the paths of all would take many times the room.
        path = f"{above}.{queue.name}" if above else "root"
        number += 1
        if depth > MAX_QUEUE_DEPTH or number > MAX_QUEUES:
            expected = f"expected at most {MAX_QUEUE_DEPTH} levels and {MAX_QUEUES} queues"
            return Problem(
                f"queue {path}",
                "queues",
                f"queue {path[:MAX_NAME]}: is too deep or one too many, {expected}",
            )
        stack.extend((child, path, depth + 1) for child in queue.queues)
    return None


def _too_many_types(spec: YunikornSpec) -> Problem | None:
    """Return why there would be too many sums to keep; None where there are not.

    Each queue keeps several sums for each resource type, so the product of the two is what takes
    room.
    """
    subject = f"partition {spec.partition[:MAX_NAME]}"
    types, queues = len(resource_types(spec)), sum(1 for _ in _all_queues(spec.root))
    if types > MAX_RESOURCE_TYPES:
        message = f"{subject}: names {types} resources, expected at most {MAX_RESOURCE_TYPES}"
        return Problem(subject, "resources", message)
    if types * queues > MAX_TALLIES:
        found = f"{subject}: has {queues} queues and {types} resources"
        message = f"{found}, expected their product to be at most {MAX_TALLIES}"
        return Problem(subject, "resources", message)
    return None


def _queue(queue: QueueSpec, above: _Above) -> Iterator[Problem]:
    """Check a queue and everything below it.

    Names are compared without case, as paths are kept in lower case. A queue with children may
    leave out ``parent``, but may not deny it.
    """
    path = f"{above.path}.{queue.name}" if above.path else queue.name
    subject = f"queue {path}"
    if not _QUEUE_NAME.fullmatch(queue.name):
        yield Problem(
            subject,
            "name",
            f"queue {above.path}: found the queue name {queue.name[:64]!r}, expected 1 to 64 letters, digits or _:#/@-",
        )
    if queue.queues and not queue.parent:
        yield Problem(
            subject, "parent", f"{subject}: holds queues and is marked as a leaf, expected a parent"
        )
    settings = resolve(
        queue.properties,
        above.settings,
        leaf=not queue.parent,
        quota_delay_ms=queue.quota_preemption_delay_ms,
    )
    yield from _own_resources(
        subject, queue.guaranteed, queue.maximum, settings.quota_preemption_delay_ms
    )
    yield from _under_maximum(subject, queue, above)
    yield from _children_guarantees(subject, queue, above)
    yield from _applications(subject, queue, above)
    yield from _texts(subject, queue)
    yield from _template(subject, queue, settings)
    if not queue.queues:
        return
    below = _below(path, queue, above, settings)
    seen: dict[str, bool] = {}
    for child in queue.queues:
        name = child.name.lower()
        if name in seen:
            yield Problem(
                f"queue {path}.{child.name}",
                "name",
                f"queue {path}.{name}: is there a second time, expected once",
            )
        seen[name] = True
        yield from _queue(child, below)


def _below(path: str, queue: QueueSpec, above: _Above, settings: QueueSettings) -> _Above:
    """Return what a queue and those above it say about its children.

    Of equal maxima on a path the lowest queue is named, which is where one would look first.
    """
    maximum, maximum_of = dict(above.maximum), dict(above.maximum_of)
    for resource, amount in (queue.maximum or {}).items():
        if resource not in maximum or amount <= maximum[resource]:
            maximum[resource], maximum_of[resource] = amount, path
    return _Above(path, maximum, maximum_of, queue.max_applications, settings)


def _own_resources(
    subject: str, guaranteed: Amounts | None, maximum: Amounts | None, delay_ms: int
) -> Iterator[Problem]:
    """Check guarantee against maximum.

    With a delay of quota enforcement the maximum must be above the guarantee, in each type set in
    both, else not below it (quota_enforcement, "Meaningful Quota Decrease"). Where both are equal
    nothing can go wrong, as no victim is taken from what is guaranteed; so only a file is refused
    for it.
    """
    yield from _amounts(subject, "resources.guaranteed", guaranteed, "guaranteed")
    yield from _amounts(subject, "resources.max", maximum, "max")
    for resource, amount in (maximum or {}).items():
        least = (guaranteed or {}).get(resource)
        if least is None or amount > least:
            continue
        found = f"max {resource} {format_amount(resource, amount)}"
        expected = f"guaranteed {format_amount(resource, least)}"
        if amount < least:
            yield Problem(
                subject,
                f"resources.max.{resource}",
                f"{subject}: {found} is below {expected}, expected at least that",
            )
        elif delay_ms > 0:
            message = f"{subject}: {found} equals {expected}, expected more because a quota.preemption.delay is set"
            yield Problem(subject, f"resources.max.{resource}", message, advisory=True)


def _amounts(subject: str, field: str, amounts: Amounts | None, name: str) -> Iterator[Problem]:
    """Check names and bounds, for configurations that were not read from a file."""
    for resource, amount in (amounts or {}).items():
        if not _RESOURCE_NAME.fullmatch(resource):
            yield Problem(
                subject,
                field,
                f"{subject}: found the resource {resource[:64]!r}, expected a name without spaces",
            )
        if not 0 <= amount <= MAX_AMOUNT:
            yield Problem(
                subject,
                f"{field}.{resource}",
                f"{subject}: {name} {resource} is out of bounds, expected 0 to {MAX_AMOUNT}",
            )


def _under_maximum(subject: str, queue: QueueSpec, above: _Above) -> Iterator[Problem]:
    """Check maximum and guarantee against what the queues above may use at most."""
    for name, field, amounts in (
        ("max", "max", queue.maximum),
        ("guaranteed", "guaranteed", queue.guaranteed),
    ):
        for resource, amount in (amounts or {}).items():
            most = above.maximum.get(resource)
            if most is not None and amount > most:
                found = f"{name} {resource} {format_amount(resource, amount)}"
                expected = (
                    f"max {format_amount(resource, most)} of queue {above.maximum_of[resource]}"
                )
                yield Problem(
                    subject,
                    f"resources.{field}.{resource}",
                    f"{subject}: {found} is above {expected}, expected at most that",
                )


def _children_guarantees(subject: str, queue: QueueSpec, above: _Above) -> Iterator[Problem]:
    """Check that a queue can keep what its children are guaranteed together.

    The sum has to lie within its own guarantee, where it has one, and within the lowest maximum on
    its path. It has to fit into int64 in any case, since shares are computed from it.
    """
    for resource, amount in _guaranteed_below(queue).items():
        found = f"{subject}: guarantees of {resource} below add up to"
        own = (queue.guaranteed or {}).get(resource)
        most = (queue.maximum or {}).get(resource, above.maximum.get(resource))
        if amount > MAX_INT64:
            yield Problem(subject, "queues", f"{found} more than {MAX_INT64}")
        elif own is not None and amount > own:
            message = f"{found} {format_amount(resource, amount)}, expected at most guaranteed {format_amount(resource, own)}"
            yield Problem(subject, f"resources.guaranteed.{resource}", message)
        elif most is not None and amount > most and not _any_above(queue, resource, most):
            message = f"{found} {format_amount(resource, amount)}, expected at most max {format_amount(resource, most)}"
            yield Problem(subject, f"resources.max.{resource}", message)


def _any_above(queue: QueueSpec, resource: str, most: int) -> bool:
    """Tell whether a single child is guaranteed more than a maximum.

    That is told where the child stands, and once is enough.
    """
    return any((child.guaranteed or {}).get(resource, 0) > most for child in queue.queues)


def _guaranteed_below(queue: QueueSpec) -> Amounts:
    """Return what the children of a queue are guaranteed together, by resource.

    A child without a guarantee stands for its own children, as its share of the parent's is
    theirs. A child that has one is taken as it is: what is below it is checked there.
    """
    total: Amounts = {}
    for child in queue.queues:
        for resource, amount in (child.guaranteed or _guaranteed_below(child)).items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _applications(subject: str, queue: QueueSpec, above: _Above) -> Iterator[Problem]:
    """Check the number of applications against the parent's.

    YuniKorn refuses a child that is not limited below a parent that is: the child would promise
    more than the parent lets in.
    """
    most = above.max_applications
    if most and not 0 < queue.max_applications <= most:
        found = queue.max_applications or "not limited"
        message = (
            f"{subject}: maxapplications is {found}, expected 1 to {most} as in queue {above.path}"
        )
        yield Problem(subject, "maxapplications", message)


def _texts(subject: str, queue: QueueSpec) -> Iterator[Problem]:
    """Check access lists and properties.

    An access list is users, one space, groups; or ``*``. More spaces would make a part of it mean
    nothing without a word, so they are refused.
    """
    for field, acl in (("submitacl", queue.submit_acl), ("adminacl", queue.admin_acl)):
        if len(acl) > MAX_TEXT or not _ACL.fullmatch(acl):
            expected = (
                "expected *, or users and groups, each separated by commas, with one space between"
            )
            yield Problem(subject, field, f"{subject}: {field} is {acl[:64]!r}, {expected}")
    yield from _properties(subject, "properties", queue.properties)


def _properties(subject: str, field: str, properties: dict[str, str]) -> Iterator[Problem]:
    """Check the bounds of properties, for configurations that were not read from a file."""
    for key, value in properties.items():
        if max(len(key), len(value)) > MAX_TEXT or _CONTROL.search(key) or _CONTROL.search(value):
            yield Problem(
                subject,
                field,
                f"{subject}: property {key[:64]!r} is too long or holds control characters",
            )


def _template(subject: str, queue: QueueSpec, settings: QueueSettings) -> Iterator[Problem]:
    """Check what dynamic queues get.

    A template belongs to a parent, as only there queues can be created. Its amounts must be above
    0: a dynamic queue with a maximum of 0 could run nothing and would stay empty for ever.
    """
    template = queue.template
    if template is None:
        return
    if not queue.parent:
        yield Problem(
            subject,
            "childtemplate",
            f"{subject}: has a childtemplate and is a leaf, expected it on a parent only",
        )
    for field, amounts in (("guaranteed", template.guaranteed), ("max", template.maximum)):
        for resource, amount in (amounts or {}).items():
            if amount <= 0:
                message = (
                    f"{subject}: childtemplate {field} {resource} is {amount}, expected more than 0"
                )
                yield Problem(subject, f"childtemplate.resources.{field}.{resource}", message)
    dynamic = resolve(
        template.properties, settings, leaf=True, quota_delay_ms=template.quota_preemption_delay_ms
    )
    own = _own_resources(
        subject, template.guaranteed, template.maximum, dynamic.quota_preemption_delay_ms
    )
    for problem in own:
        message = problem.message.replace(f"{subject}: ", f"{subject}: childtemplate ", 1)
        yield problem._replace(field=f"childtemplate.{problem.field}", message=message)
    yield from _properties(subject, "childtemplate.properties", template.properties)
