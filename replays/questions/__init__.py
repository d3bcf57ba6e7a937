"""The questions: each is a function from a history and a typed question to a typed answer.

The command line, and any interface to come, parses a question, calls its function and renders the
answer; it finds nothing out by itself. Answers hold codes, numbers and names; a sentence beside
them is made last, in `replays.wording`. An answer belongs to a place of the log (or to its end as it
is now) and never changes.

``python -m replays.questions`` writes the schemas beside this file anew. A new question is a module in
`replays.history`, `replays.explaining` or `replays.checking` with these three things, and a line in
`QUESTIONS`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from events.schemas import DIALECT, tidied
from events.vocabulary import AnyEvent
from replays.checking.free import FreeAnswer, FreeQuestion, shadow_free
from replays.checking.shadow import ShadowAnswer, ShadowQuestion, shadow
from replays.checking.verify import VerifyAnswer, VerifyQuestion, verify_log
from replays.checking.whatif import WhatIfQuestion, what_if
from replays.checking.worlds import WhatIfAnswer
from replays.explaining.plan import PlanAnswer, PlanQuestion, plan
from replays.explaining.question import ExplainAnswer, ExplainQuestion, explain
from replays.forecasting.forecast import ForecastAnswer, ForecastQuestion, forecast
from replays.history.at import AtAnswer, AtQuestion, at
from replays.history.audit import AuditAnswer, AuditQuestion, audit
from replays.history.bisect import BisectAnswer, BisectQuestion, bisect
from replays.history.diff import DiffAnswer, DiffQuestion, diff
from replays.history.status import StatusAnswer, StatusQuestion, status
from replays.history.timeline import TimelineAnswer, TimelineQuestion, timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection


class Kind(NamedTuple):
    """One kind of question.

    Attributes:
        question: Its type.
        answer: The type of its answer.
        ask: The function: history and question (and for long ones what hears of the progress) to
            answer. A history is a `replays.history.rebuild.History`, for ``audit`` and
            ``timeline`` the file of a read model.
    """

    question: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    ask: Callable[..., Any]


QUESTIONS = {
    "at": Kind(AtQuestion, AtAnswer, at),
    "diff": Kind(DiffQuestion, DiffAnswer, diff),
    "explain": Kind(ExplainQuestion, ExplainAnswer, explain),
    "plan": Kind(PlanQuestion, PlanAnswer, plan),
    "forecast": Kind(ForecastQuestion, ForecastAnswer, forecast),
    "whatif": Kind(WhatIfQuestion, WhatIfAnswer, what_if),
    "bisect": Kind(BisectQuestion, BisectAnswer, bisect),
    "verify": Kind(VerifyQuestion, VerifyAnswer, verify_log),
    "audit": Kind(AuditQuestion, AuditAnswer, audit),
    "shadow": Kind(ShadowQuestion, ShadowAnswer, shadow),
    "shadow-free": Kind(FreeQuestion, FreeAnswer, shadow_free),
    "status": Kind(StatusQuestion, StatusAnswer, status),
    "timeline": Kind(TimelineQuestion, TimelineAnswer, timeline),
}
"""By the name of the command that asks it; the page alone asks for the timeline."""


def schemas() -> dict[str, bytes]:
    """Return each schema's file name and content, the same on every machine.

    What belongs to the vocabulary is referred to in its own schema, ``event.json``.
    """
    made = {}
    vocabulary = msgspec.json.schema(AnyEvent)["$defs"]
    for name, kind in QUESTIONS.items():
        for part, root in (("question", kind.question), ("answer", kind.answer)):
            title = f"{name}-{part}"
            found = msgspec.json.schema(root)
            own = {key: one for key, one in found["$defs"].items() if key not in vocabulary}
            document = _referring(found | {"$defs": own}, vocabulary)
            document = tidied({"$schema": DIALECT, "title": title, **document})
            encoded = msgspec.json.encode(document, order="deterministic")
            made[f"{title}.json"] = msgspec.json.format(encoded, indent=2) + b"\n"
    return made


def _referring(part: Any, vocabulary: Collection[str]) -> Any:
    """Return a part of a schema in which definitions of the vocabulary are found in its own file."""
    if isinstance(part, dict):
        return {key: _referring(value, vocabulary) for key, value in part.items()}
    if isinstance(part, list):
        return [_referring(value, vocabulary) for value in part]
    name = part.removeprefix("#/$defs/") if isinstance(part, str) else ""
    return f"event.json#/$defs/{name}" if name != part and name in vocabulary else part
