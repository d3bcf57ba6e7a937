"""What waits or runs, as the input that would submit it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET
from msgspec.structs import replace

from events import vocabulary as v
from evsched.core.pods import facts
from evsched.core.workloads import Ask

if TYPE_CHECKING:
    from evsched.core.state import State
    from evsched.core.workloads import Allocation


def submitted_again(state: State, one: Ask | Allocation, name: str) -> v.AskSubmitted:
    """Return the input with which an ask or allocation would be submitted under a name, as if created now.

    Of an allocation, flavors that its ask had fixed are left open: the state does not say them.
    """
    application = state.applications[one.application]
    waits = one if isinstance(one, Ask) else None
    podsets = tuple(
        replace(podset, preempt_resources=None, flavors=podset.flavors if waits else None)
        for podset in one.podsets
    )
    shape = state.types.shapes[one.shape if isinstance(one, Ask) else one.ask_shape]
    return v.AskSubmitted(
        ask=name,
        application=one.application,
        queue=one.local_queue or one.queue,
        user=application.user,
        groups=application.groups,
        resources={} if podsets else dict(shape.resources),
        priority=one.priority,
        allow_preemption=one.allow_preemption,
        preemption_policy="Never" if waits and not waits.may_preempt else "PreemptLowerPriority",
        originator=one.originator,
        required_node=one.required_node,
        podsets=podsets,
        flavors=None if waits is None else waits.flavors,
        pod=None if one.pod is UNSET else facts(one.pod),
    )
