"""Configurations: the one in force, and whether another one would do, what it would change, and applying it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from events.bounds import MAX_DOCUMENT
from events.configuration import Configuration
from events.vocabulary import ConfigurationApplied
from evsched.api.calls import JSON, Answered, Call, Operation, Reply
from evsched.api.problems import ApiProblem, in_body, in_query
from evsched.api.proposing_routes import ProposalTaken, WaitSeconds, put
from evsched.api.question_routes import MOMENT_PROBLEMS, REDIRECT
from evsched.api.state_routes import standing
from evsched.config import ConfigurationError, Fault, Loaded, load_texts
from evsched.config.difference import ConfigurationDifference, describe

if TYPE_CHECKING:
    from evsched.api.app import Served

YAML = "application/yaml"
TEXTS = (YAML, JSON)
SOURCE = "body"
"""How faults name the text that was sent."""


class ConfigurationChecked(Struct, frozen=True, kw_only=True):
    """Whether a configuration is valid by itself.

    Attributes:
        partitions: That it holds.
        faults: What is wrong; none where it is valid.
        warnings: What is accepted and worth knowing.
    """

    valid: bool
    partitions: list[str]
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]


class ConfigurationInForce(Struct, frozen=True, kw_only=True):
    """The configuration in force at a moment.

    Attributes:
        seq, time: Of the moment.
        configuration: None: there is none.
        document: The text that was applied; empty where it was not kept.
    """

    seq: int
    time: int
    configuration: Configuration | None
    document: str


class ConfigurationDescribed(Struct, frozen=True, kw_only=True):
    """What a configuration would do at a moment.

    Attributes:
        sentences: The same for people.
    """

    seq: int
    difference: ConfigurationDifference
    sentences: list[str]


class ApplyQuery(Struct, frozen=True, kw_only=True):
    """How a configuration is applied.

    Attributes:
        partition: Which one of several that the text holds.
        strict: Warnings refuse it as well.
        message: Why it is applied, for audits.
        wait: Seconds to wait for the answer.
    """

    partition: str | None = None
    strict: bool = False
    message: Annotated[str, Meta(max_length=1000)] = ""
    wait: WaitSeconds = 0


def loaded(data: bytes) -> Loaded:
    """Return the configurations in a body; raise `ApiProblem` with all that is wrong with them."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ApiProblem("body-invalid", f"body: is no UTF-8: {error}", in_body()) from error
    try:
        return load_texts([(SOURCE, text)])
    except ConfigurationError as error:
        detail = f"body: {len(error.faults)} faults, the first one: {error.faults[0]}"
        raise ApiProblem(
            "configuration-invalid", detail, in_body(error.faults[0].path), faults=error.faults
        ) from error


async def check(_served: Served, call: Call) -> Reply:
    """Answer whether a configuration is valid by itself."""
    try:
        found = loaded(call.body)
    except ApiProblem as problem:
        if problem.name != "configuration-invalid":
            raise
        answer = ConfigurationChecked(
            valid=False, partitions=[], faults=problem.faults, warnings=()
        )
        return Reply(document=answer)
    return Reply(
        document=ConfigurationChecked(
            valid=True,
            partitions=[one.partition for one in found.configurations],
            faults=(),
            warnings=found.warnings,
        )
    )


async def in_force(served: Served, call: Call) -> Reply:
    """Answer with the configuration in force at a moment."""
    place = await standing(served, call)
    if place.elsewhere is not None:
        return place.elsewhere
    found = await served.past.ask(served.past.configuration(place.seq))
    return Reply(
        document=ConfigurationInForce(
            seq=found.seq, time=found.time, configuration=found.spec, document=found.document
        ),
        lasting=place.seq is not None,
    )


async def described(served: Served, call: Call) -> Reply:
    """Answer what a configuration would do at a moment."""
    place = await standing(served, call)
    if place.elsewhere is not None:
        return place.elsewhere
    new = loaded(call.body)
    seq = served.past.tail.seq if place.seq is None else place.seq

    async def describing() -> ConfigurationDifference:
        state = (await served.past.history.pinned(seq)).engine.state
        old = state.configuration
        return describe(None, _one(new, None if old is None else old.partition), state)

    found = await served.past.ask(describing())
    return Reply(
        document=ConfigurationDescribed(
            seq=seq, difference=found, sentences=list(found.sentences())
        )
    )


def _one(found: Loaded, partition: str | None) -> Configuration:
    """Return the configuration of a partition; a single one whatever it is called."""
    configurations = list(found.configurations)
    if len(configurations) > 1 and partition is not None:
        configurations = [one for one in configurations if one.partition == partition]
    if len(configurations) != 1:
        names = tuple(one.partition for one in found.configurations)
        detail = f"partition: the text holds {len(names)}, expected one of them to be chosen"
        raise ApiProblem("parameter-invalid", detail, in_query("partition"), expected=names)
    return configurations[0]


async def apply(served: Served, call: Call) -> Reply:
    """Propose a configuration; it is taken as a whole or refused as a whole."""
    served.must_be_ready()
    query: ApplyQuery = call.query
    found = loaded(call.body)
    if query.strict and found.warnings:
        detail = f"body: {len(found.warnings)} warnings, the first one: {found.warnings[0]}"
        raise ApiProblem("configuration-invalid", detail, in_body(), faults=found.warnings)
    if query.partition is not None and query.partition not in {
        one.partition for one in found.configurations
    }:
        raise ApiProblem(
            "parameter-invalid",
            f"partition: the text holds none called {query.partition}",
            in_query("partition"),
            expected=tuple(one.partition for one in found.configurations),
        )
    proposed = ConfigurationApplied(
        configuration=_one(found, query.partition),
        document=found.text if len(found.text) <= MAX_DOCUMENT else "",
        message=query.message,
    )
    return await put(served, call, proposed, query.wait)


OPERATIONS = (
    Operation(
        name="configurationInForce",
        method="GET",
        path="/v1/at/{moment}/configuration",
        handler=in_force,
        summary="The configuration in force at a moment, with its text",
        answers=(Answered(200, "The configuration", ConfigurationInForce), REDIRECT),
        problems=MOMENT_PROBLEMS,
    ),
    Operation(
        name="configurationCheck",
        right="any",
        method="POST",
        path="/v1/configuration/check",
        handler=check,
        summary="Whether a configuration is valid by itself",
        body=str,
        body_types=TEXTS,
        raw=True,
        answers=(Answered(200, "Whether it is", ConfigurationChecked),),
        problems=("body-invalid",),
    ),
    Operation(
        name="configurationDiff",
        method="POST",
        path="/v1/at/{moment}/configuration/diff",
        handler=described,
        summary="What a configuration would do at a moment",
        body=str,
        body_types=TEXTS,
        raw=True,
        answers=(Answered(200, "What it would do", ConfigurationDescribed), REDIRECT),
        problems=(*MOMENT_PROBLEMS, "body-invalid", "configuration-invalid"),
    ),
    Operation(
        name="configurationApply",
        right="admin",
        method="POST",
        path="/v1/configuration",
        handler=apply,
        summary="Propose a configuration; Idempotency-Key is the id of the proposal",
        query=ApplyQuery,
        body=str,
        body_types=TEXTS,
        raw=True,
        answers=(
            Answered(200, "It was answered", ProposalTaken),
            Answered(202, "It is in the inbox, and has no answer yet", ProposalTaken),
        ),
        problems=("body-invalid", "configuration-invalid", "read-only", "inbox-refused"),
    ),
)
