"""The ready audit questions, and SQL of one's own, over the read model that the server keeps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta, Struct

from evsched.api.calls import Answered, Call, Operation, Reply
from evsched.api.pages import LARGEST_PAGE
from evsched.api.problems import ApiProblem, in_path, in_query
from evsched.api.question_routes import MOMENT_PROBLEMS, seq_of
from evsched.api.sql import SQL_ROWS, SqlAnswer, run_sql
from projections.audit import Question, questions
from replays.history.audit import LIMIT, AuditAnswer, AuditQuestion, AuditRefused, audit
from replays.history.moments import END, START, Moment

if TYPE_CHECKING:
    from evsched.api.app import Served

_PARAMETERS = {"from_seq": "from", "to_seq": "to", "seq": "at"}
"""What a ready question calls its parameters, and how they are called in an address."""


class AuditQuery(Struct, frozen=True, kw_only=True):
    """What a ready question is narrowed to; each takes some of these.

    Attributes:
        queue: Only this queue and those below it.
        first: From this moment on.
        last: Up to this moment, which is not included.
        at: As of this moment.
        of: Id of an ask or allocation.
        limit: Most rows.
    """

    queue: str | None = None
    first: str | None = msgspec.field(name="from", default=None)
    last: str | None = msgspec.field(name="to", default=None)
    at: str | None = None
    of: str = ""
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE)] = LIMIT


async def _model(served: Served) -> Path:
    """Return the file of the read model, with everything in it that was read; raise `ApiProblem`."""
    served.must_be_ready()
    path = served.past.keeper.path
    if path is None:
        raise ApiProblem("not-ready", "the log is empty: there is nothing to audit")
    await served.past.ask(served.past.written())
    return path


async def audit_list(_served: Served, _call: Call) -> Reply:
    """Answer with the ready questions."""
    return Reply(document=list(questions().values()))


async def audit_answer(served: Served, call: Call) -> Reply:
    """Answer a ready question."""
    path = await _model(served)
    query: AuditQuery = call.query
    question = AuditQuestion(
        name=call.path["name"],
        queue=query.queue,
        first=await _moment(served, query.first, "from", START),
        end=await _moment(served, query.last, "to", END),
        moment=await _moment(served, query.at, "at", END),
        of=query.of,
        limit=query.limit,
    )
    try:
        return Reply(document=await asyncio.to_thread(audit, path, question))
    except AuditRefused as error:
        raise _refused(question, error) from error


async def _moment(served: Served, text: str | None, name: str, otherwise: Moment) -> Moment:
    if text is None:
        return otherwise
    return Moment(seq=await seq_of(served, text, in_query(name)))


def _refused(question: AuditQuestion, error: AuditRefused) -> ApiProblem:
    name = _PARAMETERS.get(error.field, error.field)
    if error.code == "unknown":
        return ApiProblem(
            "not-found", f"question {question.name}: there is none", in_path("name"),
            expected=error.expected,
        )  # fmt: skip
    if error.code == "no-queue":
        detail = f"queue {question.queue}: there never was one of this name"
        return ApiProblem("unknown-name", detail, in_query("queue"))
    says = {
        "not-narrowed": f"{name}: is missing, this question needs it",
        "not-taken": f"{name}: this question does not look at it",
        "reversed": "from: lies behind `to`",
    }
    expected = tuple(_PARAMETERS.get(one, one) for one in error.expected)
    detail = says.get(error.code, f"{name}: {error}")
    return ApiProblem("parameter-invalid", detail, in_query(name), expected=expected)


class SqlBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A statement that reads.

    Attributes:
        limit: Most rows.
    """

    sql: Annotated[str, Meta(max_length=100_000)]
    limit: Annotated[int, Meta(ge=1, le=SQL_ROWS)] = 1000


async def sql(served: Served, call: Call) -> Reply:
    """Answer SQL over the read model."""
    path = await _model(served)
    body: SqlBody = call.body
    return Reply(document=await asyncio.to_thread(run_sql, path, body.sql, body.limit))


OPERATIONS = (
    Operation(
        name="auditQuestions",
        right="any",
        method="GET",
        path="/v1/audit",
        handler=audit_list,
        summary="The ready questions about the past",
        answers=(Answered(200, "The questions", list[Question]),),
    ),
    Operation(
        name="audit",
        method="GET",
        path="/v1/audit/{name}",
        handler=audit_answer,
        summary="The answer to a ready question",
        query=AuditQuery,
        answers=(Answered(200, "Rows", AuditAnswer),),
        problems=(*MOMENT_PROBLEMS, "not-found", "unknown-name"),
    ),
    Operation(
        name="sql",
        method="POST",
        path="/v1/sql",
        handler=sql,
        summary="SQL of one's own over the read model; it only reads, for 5 seconds at most",
        body=SqlBody,
        answers=(Answered(200, "Rows", SqlAnswer),),
        problems=("body-invalid", "timed-out"),
    ),
)
