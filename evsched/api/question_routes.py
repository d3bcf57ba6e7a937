"""The questions about the past: what changed, why, what would be, since when, and who did what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlencode

import msgspec
from msgspec import Meta, Struct

from events import vocabulary as v
from events.frame import UNREADABLE, decode_input
from evsched.api.calls import Answered, Call, Operation, Principal, Reply
from evsched.api.problems import ApiProblem, ProblemPlace, in_body, in_path, in_query, what_failed
from evsched.api.state_routes import VIEW_NAMES, standing
from evsched.core.rules import RULES
from replays.explaining.plan import PlanAnswer, PlanQuestion, plan
from replays.explaining.question import ExplainAnswer, ExplainQuestion, explain
from replays.history.bisect import BisectAnswer, BisectQuestion, bisect
from replays.history.diff import DiffAnswer, DiffQuestion
from replays.history.expressions import ExpressionInvalid
from replays.history.known import NeverThere
from replays.history.moments import Moment, MomentInvalid, parse_moment
from replays.history.status import StatusAnswer, StatusQuestion, status

if TYPE_CHECKING:
    from evsched.api.app import Served

REDIRECT = Answered(307, "The same by its seq, where the moment was a time", None, ())
MOMENT_PROBLEMS = ("moment-invalid", "moment-ahead")


async def seq_of(served: Served, text: str, place: ProblemPlace) -> int:
    """Return the seq of a moment that is a parameter; raise `ApiProblem`."""
    try:
        moment = parse_moment("end" if text == "latest" else text)
    except MomentInvalid as error:
        raise ApiProblem("moment-invalid", str(error), place) from error
    served.must_be_ready()
    if moment.is_end:
        return served.past.tail.seq
    if moment.seq is not None:
        return served.reached(moment.seq, place)
    return await served.past.seq_at(moment)


async def may_propose(served: Served, who: Principal, proposed: v.AnyInput) -> None:
    """Refuse what somebody may not propose; raise `ApiProblem`."""
    refusal = await served.past.ask(served.past.refusal(who, proposed))
    if refusal:
        raise ApiProblem("forbidden", refusal, in_body())


class DiffQuery(Struct, frozen=True, kw_only=True):
    """Which two moments are compared, and in what.

    Attributes:
        first: The earlier moment.
        last: The later one.
        views: Only these views, with commas between; where none is given, all.
    """

    first: str = msgspec.field(name="from")
    last: str = msgspec.field(name="to", default="latest")
    views: tuple[str, ...] = ()


async def difference(served: Served, call: Call) -> Reply:
    """Answer with what changed between two moments."""
    query: DiffQuery = call.query
    for name in query.views:
        if name not in VIEW_NAMES:
            raise ApiProblem(
                "parameter-invalid",
                f"views: there is no view {name}",
                in_query("views"),
                expected=tuple(VIEW_NAMES),
            )
    before = await seq_of(served, query.first, in_query("from"))
    after = await seq_of(served, query.last, in_query("to"))
    if (query.first, query.last) != (str(before), str(after)):
        given = {"from": before, "to": after}
        views = {"views": ",".join(query.views)} if query.views else {}
        location = f"/v1/diff?{urlencode(given | views)}"
        return Reply(status=307, data=b"", headers={"location": location})
    question = DiffQuestion(
        before=Moment(seq=before),
        after=Moment(seq=after),
        views=tuple(VIEW_NAMES[name] for name in query.views),
    )
    return Reply(
        document=await served.past.ask(served.past.difference(call.principal, question)),
        lasting=True,
    )


async def explanation(served: Served, call: Call) -> Reply:
    """Answer why an ask waits, or why an allocation runs, had to go, or was spared."""
    place = await standing(served, call)
    if place.elsewhere is not None:
        return place.elsewhere
    seq = served.past.tail.seq if place.seq is None else place.seq
    subject = call.path["subject"]
    if not await served.past.ask(served.past.sees(call.principal, seq, subject)):
        # The same for what is foreign and for what never was.
        raise ApiProblem("unknown-name", f"{subject}: nothing has that name", in_path("subject"))
    things = await served.past.ask(served.past.audits(call.principal))
    question = ExplainQuestion(subject=subject, moment=Moment(seq=seq), things=things)
    found = await served.asking.ask(lambda history: explain(history, question))
    answer = await served.past.ask(served.past.masked(call.principal, seq, found))
    return Reply(document=answer, lasting=place.seq is not None)


async def planned(served: Served, call: Call) -> Reply:
    """Answer what would become of an ask, were it submitted at a moment; nothing is written."""
    place = await standing(served, call)
    if place.elsewhere is not None:
        return place.elsewhere
    seq = served.past.tail.seq if place.seq is None else place.seq
    try:
        ask = decode_input(call.body)
    except UNREADABLE as error:
        raise ApiProblem("body-invalid", what_failed(error), in_body()) from error
    if not isinstance(ask, v.AskSubmitted):
        raise ApiProblem(
            "body-invalid", f"type: found {type(ask).__name__}", in_body("type"),
            expected=("AskSubmitted",),
        )  # fmt: skip
    await may_propose(served, call.principal, ask)
    question = PlanQuestion(ask=ask, moment=Moment(seq=seq))
    found = await served.past.ask(plan(served.past.history, question))
    return Reply(document=await served.past.ask(served.past.masked(call.principal, seq, found)))


class BisectQuery(Struct, frozen=True, kw_only=True):
    """What is looked for, and from when on.

    Attributes:
        expression: In the language of `evsched bisect`, for example `ask t1 gone`.
        first: The moment from which on it is looked for.
    """

    expression: Annotated[str, Meta(max_length=2000)]
    first: str = msgspec.field(name="from", default="start")


async def since_when(served: Served, call: Call) -> Reply:
    """Answer with the first event after which something held."""
    query: BisectQuery = call.query
    start = await seq_of(served, query.first, in_query("from"))
    question = BisectQuestion(expression=query.expression, start=Moment(seq=start))
    try:
        found = await served.asking.ask(lambda history: bisect(history, question))
    except (ExpressionInvalid, NeverThere) as error:
        raise ApiProblem("parameter-invalid", str(error), in_query("expression")) from error
    # What came first stays first; where nothing did, it may yet come.
    lasting = found.first is not None and query.first in (str(start), "start")
    return Reply(document=found, lasting=lasting)


async def status_now(served: Served, _call: Call) -> Reply:
    """Answer with what the scheduler knows now, and who leads."""
    served.must_be_ready()
    question = StatusQuestion()
    return Reply(document=await served.asking.ask(lambda history: status(history, question)))


class RulesVersion(Struct, frozen=True, kw_only=True):
    """A version of the rules that decide.

    Attributes:
        in_force: Whether the log is decided by it now.
        changes: What it decides otherwise than the one before, a sentence each.
    """

    version: int
    in_force: bool
    changes: tuple[str, ...]


async def rules(served: Served, _call: Call) -> Reply:
    """Answer with the versions of the rules that this release knows."""
    served.must_be_ready()
    in_force = await served.past.ask(served.past.rules_in_force())
    found = [
        RulesVersion(version=one.version, in_force=one.version == in_force, changes=one.changes)
        for one in RULES.values()
    ]
    return Reply(document=found)


OPERATIONS = (
    Operation(
        name="explain",
        right="view",
        method="GET",
        path="/v1/at/{moment}/explain/{subject:path}",
        handler=explanation,
        summary="Why something waits, runs, had to go, or was spared",
        answers=(Answered(200, "The explanation", ExplainAnswer), REDIRECT),
        problems=(*MOMENT_PROBLEMS, "unknown-name"),
    ),
    Operation(
        name="plan",
        right="view",
        method="POST",
        path="/v1/at/{moment}/plan",
        handler=planned,
        summary="What would become of an ask; nothing is written",
        body=v.AskSubmitted,
        raw=True,
        answers=(Answered(200, "What would become of it", PlanAnswer), REDIRECT),
        problems=(*MOMENT_PROBLEMS, "body-invalid"),
    ),
    Operation(
        name="diff",
        right="view",
        method="GET",
        path="/v1/diff",
        handler=difference,
        summary="What changed between two moments",
        query=DiffQuery,
        answers=(Answered(200, "The changes", DiffAnswer), REDIRECT),
        problems=MOMENT_PROBLEMS,
    ),
    Operation(
        name="bisect",
        method="GET",
        path="/v1/bisect",
        handler=since_when,
        summary="The first event after which something held",
        query=BisectQuery,
        answers=(Answered(200, "The event, or null", BisectAnswer),),
        problems=MOMENT_PROBLEMS,
    ),
    Operation(
        name="status",
        method="GET",
        path="/v1/status",
        handler=status_now,
        summary="What the scheduler knows now, and who leads",
        answers=(Answered(200, "The status", StatusAnswer),),
    ),
    Operation(
        name="rules",
        right="any",
        method="GET",
        path="/v1/rules",
        handler=rules,
        summary="The rules that decide, by version",
        answers=(Answered(200, "The versions", list[RulesVersion]),),
    ),
)
