"""Proposals: what a client wants to happen goes to the inbox, and a leader answers it in the log."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import uuid4

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace

from events.bounds import MAX_ID, id_problem
from events.errors import CallerError, StreamError
from events.frame import UNREADABLE, decode_input
from events.vocabulary import AnyEvent, AnyInput, InputRejected
from evsched.api.calls import Answered, Call, Operation, Reply, place_of_header
from evsched.api.event_routes import steps_behind
from evsched.api.problems import ApiProblem, in_body, what_failed
from evsched.api.question_routes import may_propose
from evsched.service.proposing import answer_in, send
from replays.history.rebuild import History

if TYPE_CHECKING:
    from evsched.api.app import Served

SOURCE = "/evsched/api"
"""How this server names itself as the program that proposes."""

LONGEST_WAIT_S = 50

ProposalOutcome = Literal["accepted", "refused"]
WaitSeconds = Annotated[int, Meta(ge=0, le=LONGEST_WAIT_S)]


class ProposalTaken(Struct, frozen=True, kw_only=True):
    """A proposal that is in the inbox.

    Attributes:
        proposal: Its id.
        position: In the inbox.
        answer: What a leader made of it; left out where it was not waited for, or none came in time.
        seq: Of the event that answers it.
        code, reason: Of a refusal.
    """

    proposal: str
    position: int
    answer: ProposalOutcome | UnsetType = UNSET
    seq: int | UnsetType = UNSET
    code: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class ProposalQuery(Struct, frozen=True, kw_only=True):
    """Whether the answer is waited for.

    Attributes:
        wait: So many seconds at most; 0: not at all.
    """

    wait: WaitSeconds = 0


async def propose(served: Served, call: Call) -> Reply:
    """Put one proposal into the inbox."""
    served.must_be_ready()
    try:
        proposed = decode_input(call.body)
    except UNREADABLE as error:
        raise ApiProblem("body-invalid", what_failed(error), in_body()) from error
    await may_propose(served, call.principal, proposed)
    return await put(served, call, proposed, call.query.wait)


def _named(proposed: AnyInput, key: str | None) -> AnyInput:
    """Return a proposal with its id: that of the header, of the body, or a new one."""
    if key is None:
        return proposed if proposed.proposal else replace(proposed, proposal=f"api:{uuid4().hex}")
    name = key.removeprefix('"').removesuffix('"')
    place = place_of_header("idempotency-key")
    problem = f"has more than {MAX_ID} characters" if len(name) > MAX_ID else id_problem(name)
    if not name or problem:
        raise ApiProblem("parameter-invalid", f"idempotency-key: {problem or 'is empty'}", place)
    if proposed.proposal not in ("", name):
        raise ApiProblem(
            "parameter-invalid",
            f"idempotency-key: the body has the id {proposed.proposal!r}",
            place,
        )
    return replace(proposed, proposal=name)


async def put(served: Served, call: Call, proposed: AnyInput, wait_s: int) -> Reply:
    """Send a proposal, and wait for its answer where that is wanted; its id is that of the request.

    The same id may be sent again: it is answered once, and whoever waits gets the first answer.
    """
    proposed = _named(proposed, call.headers.get("idempotency-key"))
    if call.principal.subject:
        # Who asks is known, whatever the body says.
        proposed = replace(proposed, actor=call.principal.subject)
    begin = served.past.tail.seq
    streams = served.inbox()
    try:
        (position,) = await send(streams, [proposed], SOURCE)
    except CallerError as error:
        raise ApiProblem("body-invalid", what_failed(error), in_body()) from error
    except StreamError as error:
        raise ApiProblem("inbox-refused", what_failed(error)) from error
    taken = ProposalTaken(proposal=proposed.proposal, position=position)
    if wait_s:
        taken = await _answered(served, taken, begin, wait_s)
    return Reply(document=taken, status=202 if taken.answer is UNSET else 200)


async def _answered(served: Served, taken: ProposalTaken, begin: int, wait_s: int) -> ProposalTaken:
    """Return a proposal with its answer, where that comes in time."""
    try:
        async with asyncio.timeout(wait_s):
            async for steps in steps_behind(served, begin, narrow=False, follow=True):
                for step in steps:
                    event = answer_in(step.events, taken.proposal)
                    if event is None:
                        continue
                    if isinstance(event, InputRejected) and event.code == "duplicate":
                        first = await served.asking.ask(
                            lambda history: first_answer(history, taken.proposal)
                        )
                        event = first or event
                    return _with_answer(taken, event)
    except TimeoutError:
        pass
    return taken


def _with_answer(taken: ProposalTaken, event: AnyEvent) -> ProposalTaken:
    if isinstance(event, InputRejected):
        return replace(taken, answer="refused", seq=event.seq, code=event.code, reason=event.reason)
    return replace(taken, answer="accepted", seq=event.seq)


async def first_answer(history: History, proposal: str) -> AnyEvent | None:
    """Return the first event of a log that answers a proposal; all of it may have to be read."""
    async with aclosing(history.steps()) as steps:  # type: ignore[type-var]
        async for step in steps:
            event = answer_in(step.events, proposal)
            if event is not None:
                return event
    return None


OPERATIONS = (
    Operation(
        name="propose",
        right="submit",
        method="POST",
        path="/v1/proposals",
        handler=propose,
        summary="Put one proposal into the inbox; Idempotency-Key is its id",
        query=ProposalQuery,
        body=AnyInput,
        raw=True,
        answers=(
            Answered(200, "It was answered", ProposalTaken),
            Answered(202, "It is in the inbox, and has no answer yet", ProposalTaken),
        ),
        problems=("body-invalid", "parameter-invalid", "read-only", "inbox-refused"),
    ),
)
