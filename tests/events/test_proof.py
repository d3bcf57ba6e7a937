"""The proof of a step: what cannot be read back is not written, and the error says what it is."""

import pytest

from events.chain import START, cut_into_frames
from events.configuration import QueueSpec, YunikornSpec
from events.errors import StepUnprovable
from events.frame import decode_frame
from events.streams.memory import open_memory
from events.vocabulary import AnyEvent, AskWithdrawn, ConfigurationApplied, InputRejected
from tests.events.world import lead, steps_of, write

FINE = AskWithdrawn(seq=1, ask="fine")


def deep(levels: int) -> ConfigurationApplied:
    """Return a configuration of so many queues below each other."""
    queue = QueueSpec(name="q")
    for _ in range(levels):
        queue = QueueSpec(name="q", parent=True, queues=(queue,))
    return ConfigurationApplied(configuration=YunikornSpec(root=queue))


UNREADABLE: dict[str, tuple[AnyEvent, str]] = {
    "an input that nests too deep": (
        InputRejected(seq=2, reason="", input=deep(36)),
        "is nested more than 75 deep",
    ),
    "an input that no stack is deep enough for": (
        InputRejected(seq=2, reason="", input=deep(5000)),
        "Recursion",
    ),
    "an integer beyond its bounds": (
        ConfigurationApplied(
            seq=2,
            configuration=YunikornSpec(root=QueueSpec(name="root"), eviction_grace_ms=2**64 - 1),
        ),
        "$.configuration.eviction_grace_ms",
    ),
    "half a surrogate": (AskWithdrawn(seq=2, ask="\ud800"), "surrogates"),
    "a name that is none": (AskWithdrawn(seq=2, ask=""), "$.ask"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_step_that_no_reader_could_read_is_not_made_into_frames(case: str) -> None:
    """The error names the frame, the event at fault, its type, and the place in it."""
    event, place = UNREADABLE[case]
    with pytest.raises(StepUnprovable) as caught:
        cut_into_frames(START, (FINE, event), time=1, decided=True, inbox_next=0)
    error = caught.value
    assert (error.frame, error.seq, error.event) == (1, 2, type(event).__name__)
    assert place in error.reason


def test_a_header_that_no_reader_could_read_is_told_as_such() -> None:
    """Where every event can be read by itself, it is the frame."""
    with pytest.raises(StepUnprovable, match="its header cannot be read back") as caught:
        cut_into_frames(START, (FINE,), time=2**60, decided=True, inbox_next=0)
    assert caught.value.seq == 0


def test_a_step_that_is_proved_is_what_readers_get() -> None:
    """The proof changes nothing: the frame holds the events as they are."""
    (sealed,) = cut_into_frames(START, (FINE,), time=1, decided=True, inbox_next=0)
    assert decode_frame(sealed.data).events == (FINE,)


async def test_a_leader_writes_nothing_of_a_step_that_is_not_proved() -> None:
    """The log is as it was, and the leader goes on in it."""
    log = open_memory("", 0).log
    leader = await lead(log)
    await write(leader, "a")
    end = await log.end()
    bad = AskWithdrawn(seq=leader.head.next_seq, ask="")
    with pytest.raises(StepUnprovable):
        await leader.append_step((bad,), time=2_000, decided=True, inbox_next=1)
    assert leader.alive
    assert await log.end() == end
    await write(leader, "b")
    assert len(await steps_of(log)) == 3
