"""Options that many commands share, defined once so that they mean the same everywhere."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

Json = Annotated[
    bool,
    Parameter(
        name="--json",
        negative=(),
        show_default=False,
        help="Print data as JSON, a document a line.",
    ),
]

Actor = Annotated[
    str,
    Parameter(
        name="--actor",
        env_var="EVSCHED_ACTOR",
        help="The person or account behind a proposal, for the log.",
    ),
]
