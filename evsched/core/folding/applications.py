"""What applications do to the state.

One that was submitted stays until it is removed. One that came with its first ask, unsubmitted,
goes with the last thing it has: nobody would ever remove it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core import suspension
from evsched.core.queues import Application
from evsched.core.refusals import leaf_of

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.queues import Queue
    from evsched.core.state import State


def application_submitted(state: State, event: v.ApplicationSubmitted) -> None:
    """An application arrived; what it brought is kept for the ApplicationPlaced that follows.

    The input says who it is, the decision says where it belongs. They are two events so that a log
    tells what was asked for, and a reader needs no placement rules.
    """
    state.arriving[event.application] = event


def application_placed(state: State, event: v.ApplicationPlaced) -> None:
    """An application was taken into a queue, which a placement rule found or it named itself."""
    arrived = state.arriving.pop(event.application)
    application = take_in(
        state,
        event.application,
        state.queues[event.queue],
        arrived.user,
        arrived.groups,
        arrived.created,
        arrived.seq,
    )
    application.tags = arrived.tags


def application_removed(state: State, event: v.ApplicationRemoved) -> None:
    """An application ended; what it has left ends by the events that follow.

    What is set aside of it is answered here, as no event for an ask that waits nowhere will come.
    """
    application = state.applications[event.application]
    application.closing = True
    for one in tuple(state.suspended.values()):
        if one.ask is not None and one.ask.application == event.application:
            suspension.answered(state, one.subject)
    forget_if_done(state, application)


def application_of(state: State, event: v.AskSubmitted | v.AllocationRestored) -> Application:
    """Return the application of an ask; one that is unknown is taken in with it and goes with the last thing it has."""
    path = leaf_of(state, event.queue)
    name = event.application or path
    application = state.applications.get(name)
    if application is None:
        application = take_in(
            state, name, state.queues[path], event.user, event.groups, event.created, event.seq
        )
        application.closing = True
    return application


def take_in(  # noqa: PLR0913, PLR0917 - one value a field
    state: State,
    name: str,
    leaf: Queue,
    user: str,
    groups: tuple[str, ...],
    created: int | None,
    seq: int,
) -> Application:
    """Add an application to a leaf and return it.

    ``created`` None means now. ``seq`` is its place in the log, which breaks ties of age.
    """
    application = Application(
        id=name,
        leaf=leaf,
        user=user,
        groups=groups,
        created=state.time if created is None else created,
        seq=seq,
        width=state.width,
    )
    state.applications[name] = application
    leaf.applications[name] = application
    return application


def forget_if_done(state: State, application: Application) -> None:
    """Forget an application that is closing and has nothing left.

    Called after each thing that ends, by whoever ended it; else it does nothing.
    """
    if application.closing and not application.asks and not application.running:
        state.applications.pop(application.id, None)
        application.leaf.applications.pop(application.id, None)
