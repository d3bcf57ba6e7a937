"""What a principal may see and propose: by the access lists of the queues, at the moment asked about and now.

Whoever may submit to a queue sees it, with what is in it and below. Of the lists in force at the
moment asked about and those in force now the stricter counts, so that a right that was taken away is
gone for the past, too. ``audit`` sees everything; ``admin`` may propose anything.
"""

from __future__ import annotations

from collections.abc import Callable

from events import vocabulary as v
from evsched.api.calls import Principal
from evsched.api.identity import VIEWER, AccessSettings
from evsched.core.state import State
from evsched.core.yunikorn.access import listed, may_submit


class Rights:
    """What one principal may do, by two states of the scheduler."""

    def __init__(
        self, who: Principal, settings: AccessSettings | None, then: State, now: State
    ) -> None:
        """Judge by the lists in force at the moment asked about, and now; ``settings`` None: everything is open."""
        self._who = who
        self._settings = settings
        self._then, self._now = then, now
        self._sees: dict[str, bool] = {}

    @property
    def audit(self) -> bool:
        """Whether everything is seen."""
        if self._who is VIEWER or self._settings is None:
            return True
        return self._settings.audit.has(self._who) or self.admin

    @property
    def admin(self) -> bool:
        """Whether anything may be proposed."""
        if self._settings is None:
            return True
        if self._who is VIEWER:
            return False
        if self._settings.admin.has(self._who):
            return True
        acl = self._now.root.admin_acl if self._now.configuration is not None else ""
        return bool(acl) and listed(acl, self._who.subject, self._who.groups)

    def sees(self, queue: str) -> bool:
        """Tell whether a queue is seen, with what is in it."""
        if self.audit:
            return True
        if queue not in self._sees:
            self._sees[queue] = self._may(self._then, queue) and self._may(self._now, queue)
        return self._sees[queue]

    def knows(self, queue: str) -> bool:
        """Tell whether the name of a queue is known: it is seen, or lies above one that is."""
        if self.sees(queue):
            return True
        below = f"{queue}."
        return any(
            path.startswith(below) and self.sees(path)
            for state in (self._then, self._now)
            for path in state.queues
        )

    def _may(self, state: State, queue: str) -> bool:
        """Tell whether the lists of a state let somebody submit to a queue; one that is not there has those above it."""
        path = queue
        while path and path not in state.queues:
            path = path.rpartition(".")[0]
        found = state.queues.get(path, state.root)
        return may_submit(found, self._who.subject, self._who.groups)

    def refusal(self, proposed: v.AnyInput, belongs: Callable[[str], str | None]) -> str:
        """Return why something may not be proposed, as a sentence; empty: it may.

        Args:
            proposed: As it was sent.
            belongs: From the id of an ask, allocation or application to its queue.
        """
        if self.admin:
            return ""
        if self._who is VIEWER:
            return "whoever does not show who asks may look, and propose nothing"
        if not isinstance(proposed, _OWN):
            return f"{type(proposed).__name__}: is proposed by administrators alone"
        user = getattr(proposed, "user", None)
        if user is not None and user != self._who.subject:
            return f"user: found {user}, expected {self._who.subject}"
        if not set(getattr(proposed, "groups", ())) <= set(self._who.groups):
            return "groups: has some that are not those of whoever asks"
        named = (getattr(proposed, name, "") for name in ("allocation", "ask", "application"))
        queues = {getattr(proposed, "queue", ""), *(belongs(one) or "" for one in named)} - {""}
        if not queues or not all(self._may(self._now, one) for one in queues):
            return "queue: is none into which this may be submitted"
        return ""


def queue_in(state: State, name: str) -> str | None:
    """Return the queue of the ask, allocation or application that has an id in a state; None: nothing has it."""
    found = state.asks.get(name) or state.allocations.get(name)
    if found is not None:
        return found.queue
    application = state.applications.get(name)
    return application.leaf.path if application is not None else None


_OWN = (
    v.ApplicationSubmitted,
    v.ApplicationRemoved,
    v.AskSubmitted,
    v.AskWithdrawn,
    v.AllocationReleased,
)
"""What the owner of work may propose."""
