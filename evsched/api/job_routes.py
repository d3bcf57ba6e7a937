"""What-if and verify over HTTP: as jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from evsched.api.calls import Answered, Call, Operation, Reply
from evsched.api.configuration_routes import loaded
from evsched.api.jobs import Job, JobFacts, Progress
from evsched.api.problems import ApiProblem, in_body, in_path
from evsched.api.question_routes import MOMENT_PROBLEMS, seq_of
from evsched.core.rules import RULES
from replays.checking.verify import VerifyAnswer, VerifyQuestion, verify_log
from replays.checking.whatif import WhatIfQuestion, what_if
from replays.checking.worlds import WhatIfAnswer
from replays.history.moments import Moment
from replays.history.rebuild import History

if TYPE_CHECKING:
    from evsched.api.app import Served


class WhatIfBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is tried, and on which stretch of the log.

    Attributes:
        document: Text of the configuration to try; None: those that were in force.
        rules: Version of the rules to try; None: those that were in force.
        first: Moment from which on it is tried; None: where a configuration was applied last.
        last: Moment up to which the log is taken.
        throughout: The configuration stays in force where others were applied later on.
    """

    document: str | None = None
    rules: int | None = None
    first: str | None = msgspec.field(name="from", default=None)
    last: str = msgspec.field(name="to", default="latest")
    throughout: bool = False


class VerifyBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is verified.

    Attributes:
        first: The state at this moment is taken as it is.
        known: Hashes of ends of the log that were kept elsewhere.
    """

    first: str = msgspec.field(name="from", default="start")
    known: Annotated[tuple[str, ...], Meta(max_length=1000)] = ()


async def try_out(served: Served, call: Call) -> Reply:
    """Begin to try a configuration, or rules, on the recorded past."""
    served.must_be_ready()
    body: WhatIfBody = call.body
    if body.rules is not None and body.rules not in RULES:
        raise ApiProblem(
            "body-invalid",
            f"rules: found {body.rules}",
            in_body("rules"),
            expected=tuple(map(str, RULES)),
        )
    if body.document is None and (body.rules is None or body.throughout):
        raise ApiProblem(
            "body-invalid",
            "document: is missing; throughout keeps one in force"
            if body.throughout
            else "document: is missing, and so are rules",
            in_body("document"),
        )
    tried = () if body.document is None else loaded(body.document.encode()).configurations
    start = None if body.first is None else await seq_of(served, body.first, in_body("from"))
    end = await seq_of(served, body.last, in_body("to"))
    question = WhatIfQuestion(
        configurations=tried,
        rules=body.rules,
        start=None if start is None else Moment(seq=start),
        end=Moment(seq=end),
        throughout=body.throughout,
    )

    async def asked(history: History, progress: Progress) -> WhatIfAnswer:
        return await what_if(history, question, progress)

    return _begun(served.jobs.begin("whatif", call.principal.subject, asked, end))


async def verify(served: Served, call: Call) -> Reply:
    """Begin to decide the log again."""
    served.must_be_ready()
    body: VerifyBody = call.body
    start = await seq_of(served, body.first, in_body("from"))
    question = VerifyQuestion(start=Moment(seq=start), known=body.known)

    async def asked(history: History, progress: Progress) -> VerifyAnswer:
        found = await verify_log(history, question, progress)
        served.verified = found
        return found

    return _begun(served.jobs.begin("verify", call.principal.subject, asked, served.past.tail.seq))


async def verified(served: Served, _call: Call) -> Reply:
    """Answer with what the last verification came to."""
    return Reply(document=served.verified)


async def job(served: Served, call: Call) -> Reply:
    """Answer how a job stands."""
    return Reply(document=_job(served, call).facts())


async def cancel(served: Served, call: Call) -> Reply:
    """Cancel a job."""
    found = _job(served, call)
    served.jobs.cancel(found)
    return Reply(document=found.facts(), status=202)


def _job(served: Served, call: Call) -> Job:
    found = served.jobs.get(call.path["id"])
    if found is None or (found.owner != call.principal.subject):
        raise ApiProblem("unknown-name", f"job {call.path['id']}: there is none", in_path("id"))
    return found


def _begun(found: Job) -> Reply:
    return Reply(document=found.facts(), status=202, headers={"location": f"/v1/jobs/{found.id}"})


OPERATIONS = (
    Operation(
        name="whatIf",
        method="POST",
        path="/v1/whatif",
        handler=try_out,
        summary="Try a configuration, or rules, on the recorded past",
        body=WhatIfBody,
        answers=(Answered(202, "The job has begun", JobFacts),),
        problems=(*MOMENT_PROBLEMS, "body-invalid", "configuration-invalid", "too-many-jobs"),
    ),
    Operation(
        name="verify",
        method="POST",
        path="/v1/verify",
        handler=verify,
        summary="Decide the log again, event by event",
        body=VerifyBody,
        answers=(Answered(202, "The job has begun", JobFacts),),
        problems=(*MOMENT_PROBLEMS, "body-invalid", "too-many-jobs"),
    ),
    Operation(
        name="verified",
        method="GET",
        path="/v1/verify",
        handler=verified,
        summary="What the last verification of this server came to; null: there was none",
        answers=(Answered(200, "The answer, or null", VerifyAnswer | None),),
    ),
    Operation(
        name="job",
        right="any",
        method="GET",
        path="/v1/jobs/{id}",
        handler=job,
        summary="How a job stands",
        answers=(Answered(200, "How it stands", JobFacts),),
        problems=("unknown-name",),
    ),
    Operation(
        name="cancel",
        right="any",
        method="DELETE",
        path="/v1/jobs/{id}",
        handler=cancel,
        summary="Cancel a job",
        answers=(Answered(202, "It ends soon", JobFacts),),
        problems=("unknown-name",),
    ),
)
