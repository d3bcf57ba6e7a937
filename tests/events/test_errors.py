"""Errors: by who is at fault, with the facts as attributes and the subject first."""

import inspect

import pytest

from events import errors

EXAMPLES = {
    errors.ProposalTooLarge("p", 9, 5): "proposal p: has 9 bytes, at most 5 are taken",
    errors.ReadOnly("x.jsonl"): "log x.jsonl: can only be read",
    errors.UnknownScheme("a://b", "c://d"): "address a://b: not understood, expected c://d",
    errors.CredentialsUnusable("ca.pem", "gone"): "credentials ca.pem: gone",
    errors.StreamMissing("t"): "stream t: does not exist, create it first",
    errors.TargetDiffers(
        "t", 2, 7, "aa", "bb"
    ): "log t: record 2 at position 7 has hash aa, expected bb as in the file",
    errors.TargetDiffers("t", 2, 7, "a", ""): (
        "log t: record 2 at position 7 has hash a, expected none, as the file ends before it"
    ),
    errors.TopicMisconfigured("t", "s", "1", "2"): "topic t: s is 1, expected 2",
    errors.AccessDenied("t", "no"): "stream t: access denied: no",
    errors.InboxDetached("t", "no"): (
        "inbox t: no (`evsched log attach-inbox` lets the log read the inbox that is there)"
    ),
    errors.LogDamaged(7, "hole"): "log: damaged at position 7: hole",
    errors.LogDamaged(-1, "hole"): "log: damaged: hole",
    errors.PositionLost(7, "gone"): "log: damaged at position 7: gone",
    errors.StateDiffers(7, "digest"): "log: damaged at position 7: digest",
    errors.WrittenByNewer("x", 7, "0.3"): (
        "log: written by a newer evsched (release 0.3: x) at position 7"
    ),
    errors.WrittenByNewer("x"): "log: written by a newer evsched (x)",
    errors.LogUnreachable("t", "no"): "stream t: unreachable: no",
    errors.LogBusy("t", "no"): "stream t: locked by another process: no",
    errors.LogFull("t", "no"): "stream t: no room left: no",
    errors.AppendRefused("t", "no"): "stream t: record refused: no",
    errors.StepUnprovable(5, 7, "E", "no"): (
        "frame 5: was not written, event 7, E cannot be read back: no"
    ),
    errors.StepUnprovable(5, 0, "", "no"): (
        "frame 5: was not written, its header cannot be read back: no"
    ),
    errors.LeadershipLost(3, 4, "b"): "term 3: not leading: term 4 of leader b is in force",
    errors.LeadershipLost(3): "term 3: not leading: it has ended",
    errors.OutcomeUnknown("t", "no"): "stream t: outcome of a write unknown: no",
}


@pytest.mark.parametrize(("error", "said"), EXAMPLES.items())
def test_the_sentence_names_the_subject_first(error: errors.StreamError, said: str) -> None:
    """What was found and what was expected, in words for people; the facts again for programs."""
    assert str(error) == said
    assert {str(fact) for fact in vars(error).values() if fact not in (-1, 0, "")} <= set(
        said.translate(str.maketrans(":,()", "    ")).split()
    ) | {"9", "5", "a://b", "c://d"}


def test_there_is_an_example_of_every_error() -> None:
    """Each class that can be raised."""
    grouping = {
        errors.StreamError,
        errors.CallerError,
        errors.StreamConfigurationError,
        errors.EnvironmentFault,
        errors.NotLeading,
    }
    classes = {
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.StreamError)
    }
    assert classes - grouping == {type(error) for error in EXAMPLES}


@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        (
            errors.CallerError,
            (
                errors.ProposalTooLarge,
                errors.ReadOnly,
                errors.UnknownScheme,
                errors.CredentialsUnusable,
            ),
        ),
        (errors.CallerError, (errors.TargetDiffers,)),
        (errors.StreamConfigurationError, (errors.StreamMissing, errors.TopicMisconfigured)),
        (errors.StreamConfigurationError, (errors.AccessDenied,)),
        (errors.EnvironmentFault, (errors.LogUnreachable, errors.LogBusy, errors.LogFull)),
        (errors.NotLeading, (errors.LeadershipLost, errors.OutcomeUnknown)),
        (errors.LogDamaged, (errors.PositionLost,)),
    ],
)
def test_errors_are_grouped_by_who_is_at_fault(
    fault: type[Exception], kinds: tuple[type[Exception], ...]
) -> None:
    """So that whoever handles them can ask for the fault."""
    assert all(issubclass(kind, fault) for kind in kinds)
