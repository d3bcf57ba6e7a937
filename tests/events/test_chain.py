"""The chain of frames: every damage is found, every race has one winner, whatever the order in which things happen."""

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.chain import START, ChainReader, RecordedStep, Sealed, cut_into_frames, fence
from events.errors import LogDamaged
from events.frame import Frame, decode_frame, encode_frame, frame_hash
from events.vocabulary import InboxAttached, LeaderStarted, NodeRegistered, NodeRemoved, NodeUpdated


class Writer:
    """A leader without streams: it writes into a list and knows only what it has read."""

    def __init__(self, name: str, log: list[bytes]) -> None:
        self.name = name
        self.log = log
        self.reader = ChainReader()
        self._fences = 0
        self._seen = 0

    def read(self) -> list[RecordedStep]:
        """Read to the end."""
        begin = self._seen
        steps = [
            self.reader.accept(data, position)
            for position, data in enumerate(self.log[begin:], start=begin)
        ]
        self._seen = len(self.log)
        return [step for step in steps if step is not None]

    def fence(self, time: int = 1) -> Sealed:
        """Return a fence on what was read, by an id that is new."""
        self._fences += 1
        name = f"{self.name}{self._fences}"
        started = LeaderStarted(term=0, leader=name, checkpoint_every=0)
        return fence(self.reader, started, log_id=f"log of {name}", time=time)

    def lead(self) -> None:
        """Read, write a fence, read it."""
        self.read()
        self.log.append(self.fence().data)
        self.read()

    def step(self, count: int = 1, *, limit: int = 500_000, size: int = 1) -> tuple[Sealed, ...]:
        """Return the frames of a step of so many events on what was read."""
        head = self.reader.head
        events = tuple(
            NodeUpdated(seq=head.next_seq + index, node="n", labels={"l": "x" * size})
            for index in range(count)
        )
        return cut_into_frames(
            head,
            events,
            time=head.time + 1,
            decided=True,
            inbox_next=head.inbox_next + 1,
            limit=limit,
        )

    def write(self, count: int = 1, **how: int) -> None:
        """Write a step and read it."""
        self.log.extend(sealed.data for sealed in self.step(count, **how))
        self.read()


def a_log(steps: int = 4) -> list[bytes]:
    """Return a log with a genesis frame, some steps, a second term and some more."""
    log: list[bytes] = []
    for name in ("a", "b"):
        writer = Writer(name, log)
        writer.lead()
        for index in range(steps):
            writer.write(index)
    return log


def read(log: list[bytes]) -> tuple[ChainReader, list[RecordedStep]]:
    """Return a reader at the end of this log and the steps it accepted."""
    reader = ChainReader()
    steps = [reader.accept(data, position) for position, data in enumerate(log)]
    return reader, [step for step in steps if step is not None]


def test_a_sound_log_is_read_whole() -> None:
    """Every frame counts, `seq` is gapless, the head is that of the last frame."""
    log = a_log()
    reader, steps = read(log)
    assert len(steps) == len(log) == 10
    assert reader.ignored == 0
    assert [event.seq for step in steps for event in step.events] == list(
        range(1, reader.head.next_seq)
    )
    assert (reader.head.frame, reader.head.position, reader.head.term) == (10, 9, 2)
    assert reader.head.hash == frame_hash(log[-1])


def changed(data: bytes, **fields: object) -> bytes:
    """Return a frame's bytes with other fields."""
    return encode_frame(msgspec.structs.replace(decode_frame(data), **fields))


FORGERIES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "is no JSON": (lambda data: data[:-1], "no frame can be read"),
    "is no text": (lambda data: b"\xff" + data, "no frame can be read"),
    "is of another log": (
        lambda data: changed(data, log_id="other"),
        "frame of log other, this is log log of a1",
    ),
    "has a number too high": (
        lambda data: changed(data, frame=9),
        "frame 9 found after frame 3, expected 4",
    ),
    "has a number too low": (
        lambda data: changed(data, frame=3),
        "frame 3 found after frame 3, expected 4",
    ),
    "follows another frame": (lambda data: changed(data, prev="0" * 32), "the one before has"),
    "has a term that skips one": (
        lambda data: changed(data, term=3, leader="x"),
        "term 3 found after term 1",
    ),
    "begins a term without a fence": (
        lambda data: changed(data, term=2, leader="x"),
        "expected a LeaderStarted alone",
    ),
    "is before the last one": (lambda data: changed(data, time=0), "time 0 found after time 3"),
    "takes the inbox back": (
        lambda data: changed(data, inbox_next=0),
        "inbox_next went back from 2 to 0",
    ),
    "leaves out an event": (
        lambda data: changed(data, events=decode_frame(data).events[1:]),
        "event 4 found, expected 3",
    ),
    "repeats an event": (
        lambda data: changed(data, events=decode_frame(data).events[:1] * 2),
        "event 3 found, expected 4",
    ),
    "ends an event that never began": (
        lambda data: changed(data, events=(), fragment="}", fragment_ends=True, last=False),
        "no event in its pieces",
    ),
    "is a step of one piece": (
        lambda data: changed(
            data,
            events=(),
            fragment='{"type":"NodeRemoved","node":"n","seq":3}',
            fragment_ends=True,
        ),
        "a piece of an event in a step of one frame",
    ),
    "ends in the middle of an event": (
        lambda data: changed(data, events=(), fragment="{"),
        "do not go on",
    ),
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_frame_that(forgery: str) -> None:
    """A frame that cannot stand there stops the reader with the place and the reason."""
    forge, said = FORGERIES[forgery]
    log = a_log()
    log[3] = forge(log[3])
    with pytest.raises(LogDamaged) as caught:
        read(log)
    assert caught.value.position == 3
    assert said in caught.value.reason


@given(
    place=st.integers(0, 9),
    kind=st.sampled_from(["remove", "double", "swap", "alter"]),
    letter=st.integers(0, 10_000),
)
def test_no_damage_goes_unseen(place: int, kind: str, letter: int) -> None:
    """Removing, doubling, swapping or altering any one frame is found, except at the tail, which others remember."""
    log = a_log()
    before = list(log)
    if kind == "remove":
        del log[place]
    elif kind == "double":
        log.insert(place, log[place])
    elif kind == "swap":
        other = (place + 1) % len(log)
        log[place], log[other] = log[other], log[place]
    else:
        data = bytearray(log[place])
        data[letter % len(data)] ^= 1 + letter % 127
        log[place] = bytes(data)
    try:
        reader, steps = read(log)
    except LogDamaged:
        return
    # What is not found must have changed nobody's state, or be the tail, which a snapshot or a
    # heartbeat remembers.
    whole = read(before)[1]
    assert [step.events for step in steps[:-1]] == [step.events for step in whole[: len(steps) - 1]]
    assert len(steps) >= len(whole) - 1
    assert kind == "double" or place >= len(log) - 1
    assert reader.head.hash != read(before)[0].head.hash or kind == "double"


@given(st.integers(0, 9))
def test_a_kept_head_reads_on_as_if_from_the_start(index: int) -> None:
    """A reader that starts from the head of any step gets the rest of the steps."""
    log = a_log()
    _, steps = read(log)
    reader = ChainReader(steps[index].head)
    rest = [reader.accept(data, position) for position, data in enumerate(log) if position > index]
    assert rest == steps[index + 1 :]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2), st.sampled_from(["read", "fence", "step", "parts", "lost", "late"])
        ),
        max_size=60,
    )
)
def test_racing_leaders_never_damage_the_log(moves: list[tuple[int, str]]) -> None:
    """Three processes read, fence and write whenever they like, with delayed and half written steps: all readers agree.

    A writer may only write a step while it believes to lead, as `Leadership` does; what it believes
    may be long outdated.
    """
    log: list[bytes] = []
    writers = [Writer(name, log) for name in "abc"]
    delayed: list[bytes] = []
    for who, move in moves:
        writer = writers[who]
        mine = writer.reader.head.leader.startswith(writer.name)
        if move == "read":
            writer.read()
        elif move == "fence":
            log.append(writer.fence().data)
        elif move == "late":
            log.extend(delayed)
            delayed.clear()
        elif mine and not writer.reader.unfinished:
            frames = (
                [sealed.data for sealed in writer.step(6, limit=2_000, size=200)]
                if move == "parts"
                else [writer.step()[0].data]
            )
            written = frames[:-1] if move == "lost" or (len(frames) > 1 and who == 2) else frames
            log.extend(written)
            # Whoever does not know what became of its write leads anew, under another name.
            writers[who] = Writer(writer.name + "'", log)
            writers[who].read()
            if written == frames:
                writers[who] = writer
                writer.read()
            else:
                delayed.extend(frames[len(written) :])
    reader, steps = read(log)
    for writer in writers:
        writer.read()
        assert writer.reader.head == reader.head
    assert [event.seq for step in steps for event in step.events] == list(
        range(1, reader.head.next_seq)
    )
    assert [step.head.term for step in steps] == sorted(step.head.term for step in steps)
    started = [event for step in steps for event in step.events if isinstance(event, LeaderStarted)]
    assert [event.term for event in started] == list(range(1, len(started) + 1)), (
        "one owner for each term"
    )


names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


@given(st.lists(st.tuples(names, st.integers(0, 3_000)), max_size=20), st.integers(1_500, 4_000))
def test_a_cut_step_is_put_together_again(parts: list[tuple[str, int]], limit: int) -> None:
    """Whatever the events and their sizes: no frame is over the limit, and the step is as it was."""
    writer = Writer("a", [])
    writer.lead()
    head = writer.reader.head
    events = tuple(
        NodeRegistered(seq=head.next_seq + index, node=name, capacity={}, labels={"l": name * size})
        for index, (name, size) in enumerate((name, size // len(name)) for name, size in parts)
    )
    frames = cut_into_frames(head, events, time=5, decided=False, inbox_next=3, limit=limit)
    assert max(len(sealed.data) for sealed in frames) <= limit
    assert [sealed.frame.last for sealed in frames] == [False] * (len(frames) - 1) + [True]
    for sealed in frames[:-1]:
        writer.log.append(sealed.data)
        assert writer.read() == []
        assert writer.reader.unfinished
    writer.log.append(frames[-1].data)
    (step,) = writer.read()
    assert (step.events, step.time, step.decided, step.head.inbox_next) == (events, 5, False, 3)


def test_parts_of_two_steps_do_not_mix() -> None:
    """The frames of a step agree on its time, on whether it decided, and on the inbox."""
    writer = Writer("a", [])
    writer.lead()
    first, second = writer.step(20, limit=2_000, size=200)[:2]
    for field in ({"time": 9}, {"decided": False}, {"inbox_next": 9}):
        reader, _ = read([*writer.log, first.data])
        with pytest.raises(LogDamaged, match="is not of the step that frame 2 began"):
            reader.accept(changed(second.data, **field), 2)


def test_a_fence_stands_alone_and_moves_no_inbox() -> None:
    """Otherwise a new leader could skip proposals, or decide before it leads."""
    writer = Writer("a", [])
    writer.lead()
    other = Writer("b", writer.log)
    other.read()
    good = other.fence().data
    events = decode_frame(good).events
    forged = {
        "expected a LeaderStarted alone": {"events": (*events, NodeRemoved(seq=3, node="n"))},
        "inbox_next 5 in a fence": {"inbox_next": 5},
        "the first of term 2": {"leader": ""},
    }
    for said, fields in forged.items():
        reader, _ = read(writer.log)
        with pytest.raises(LogDamaged, match=said):
            reader.accept(changed(good, **fields), 1)


def test_positions_only_grow() -> None:
    """A record that comes twice, or out of order, is damage."""
    reader = ChainReader()
    log = a_log()
    reader.accept(log[0], 5)
    with pytest.raises(LogDamaged, match="comes after position 5"):
        reader.accept(log[1], 5)


def test_what_is_passed_over_is_counted_with_its_reason() -> None:
    """So that a foreign or stale writer can be alarmed about."""
    log: list[bytes] = []
    old, new = Writer("a", log), Writer("b", log)
    old.lead()
    stale = old.step()[0].data
    new.lead()
    log.append(stale)
    log.append(Writer("c", log).fence().data)
    reader = ChainReader()
    for position, data in enumerate(log):
        reader.accept(data, position)
    assert reader.ignored == 2
    assert reader.last_ignored is not None
    assert reader.last_ignored.reason == "another frame began this log"
    assert START.frame == 0


def test_the_bytes_of_a_frame_are_stable() -> None:
    """Logs of released versions hold exactly this."""
    frame = Frame(
        log_id="l",
        term=1,
        leader="x",
        frame=2,
        prev="00",
        time=5,
        inbox_next=3,
        events=(NodeRemoved(seq=4, node="n"),),
    )
    expected = (
        b'{"log_id":"l","term":1,"leader":"x","frame":2,"prev":"00","time":5,"inbox_next":3,'
        b'"events":[{"type":"NodeRemoved","seq":4,"node":"n"}]}'
    )
    assert encode_frame(frame) == expected
    assert frame_hash(expected) == "9e3988fa868f9e7fc97bcb9eecf35d25"


# ------------------------------------------------------------------------------------------- inboxes


def attached(writer: Writer, inbox: str, position: int, *, says: int | None = None) -> bytes:
    """Return a step that attaches an inbox; ``says`` is the frame's own ``inbox_next`` where it differs."""
    head = writer.reader.head
    event = InboxAttached(seq=head.next_seq, inbox=inbox, position=position, replaces=head.inbox)
    inbox_next = position if says is None else says
    (sealed,) = cut_into_frames(
        head, (event,), time=head.time, decided=False, inbox_next=inbox_next
    )
    return sealed.data


def test_another_inbox_begins_another_count() -> None:
    """Only an event that says so lets ``inbox_next`` go back; the head names the inbox from then on."""
    writer = Writer("a", [])
    writer.lead()
    for _ in range(3):
        writer.write()
    assert (writer.reader.head.inbox, writer.reader.head.inbox_next) == ("", 3)
    writer.log.append(attached(writer, "new", 1))
    writer.read()
    assert (writer.reader.head.inbox, writer.reader.head.inbox_next) == ("new", 1)
    writer.lead()
    writer.write()
    assert (writer.reader.head.inbox, writer.reader.head.inbox_next) == ("new", 2)
    assert read(writer.log)[0].head == writer.reader.head


def test_an_attachment_says_what_its_frame_says() -> None:
    """Else nobody would know from where the proposals count."""
    writer = Writer("a", [])
    writer.lead()
    writer.write()
    with pytest.raises(LogDamaged, match="inbox_next 0, its InboxAttached says 1"):
        read([*writer.log, attached(writer, "new", 1, says=0)])


def test_a_term_does_not_change_the_inbox_by_itself() -> None:
    """A leader names the inbox that the log reads, or, as older ones, none."""
    writer = Writer("a", [])
    writer.lead()
    writer.log.append(attached(writer, "one", 0))
    writer.read()
    for name in ("", "one"):
        started = LeaderStarted(term=0, leader=f"b{name}", inbox=name)
        writer.log.append(fence(writer.reader, started, log_id="", time=1).data)
        writer.read()
        assert writer.reader.head.inbox == "one"
    started = LeaderStarted(term=0, leader="c", inbox="two")
    with pytest.raises(LogDamaged, match="its leader reads inbox two, the log one"):
        read([*writer.log, fence(writer.reader, started, log_id="", time=1).data])
