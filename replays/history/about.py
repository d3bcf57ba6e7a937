"""Which queues and applications an event is about: what a reader of one queue wants to see of the log.

An event names its queue, or the ask or allocation that is in one. What an id stands for is the
caller's knowledge: a state around the event, or a read model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from events.vocabulary import AnyEvent, InputRejected

Belongs = Callable[[str], "tuple[str, str] | None"]
"""From the id of an ask or allocation to its application and queue; None: nothing has that id."""


class About(NamedTuple):
    """What an event is about.

    Attributes:
        queues: Full paths; empty: the partition as a whole.
        applications: Ids.
    """

    queues: frozenset[str]
    applications: frozenset[str]

    def and_also(self, other: About) -> About:
        """Return what either is about."""
        return About(self.queues | other.queues, self.applications | other.applications)

    def touches(self, queue: str | None, application: str | None) -> bool:
        """Tell whether it concerns a queue, or one below it, and an application; None: any."""
        if application is not None and application not in self.applications:
            return False
        return queue is None or any(f"{one}.".startswith(f"{queue}.") for one in self.queues)


def about(event: AnyEvent, belongs: Iterable[Belongs]) -> About:
    """Return what an event is about; each of ``belongs`` is asked, as what an event ends is there before it only."""
    queues: set[str] = set()
    applications: set[str] = set()
    named = event.input if isinstance(event, InputRejected) and event.input is not None else event
    victims = getattr(named, "victims", ())
    ids = [getattr(named, name, None) for name in ("ask", "allocation")]
    for victim in victims:
        ids.append(victim if isinstance(victim, str) else victim.id)
        queues.add(getattr(victim, "queue", ""))
    queues.add(getattr(named, "queue", ""))
    applications.add(getattr(named, "application", ""))
    for one in filter(None, ids):
        for knows in belongs:
            found = knows(one)
            if found is not None:
                applications.add(found[0])
                queues.add(found[1])
    return About(frozenset(filter(None, queues)), frozenset(filter(None, applications)))
