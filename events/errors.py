"""What can go wrong with a log or an inbox, by who is at fault.

::

    StreamError
    ├── CallerError               the program that calls us, or a file that it named
    │   ├── ProposalTooLarge
    │   ├── ReadOnly
    │   ├── UnknownScheme
    │   ├── CredentialsUnusable
    │   └── TargetDiffers
    ├── StreamConfigurationError        who set the broker, the log or the rights up
    │   ├── StreamMissing
    │   ├── TopicMisconfigured
    │   ├── AccessDenied
    │   └── InboxDetached
    ├── LogDamaged                the log itself: it was altered, cut, mixed up or replaced
    │   ├── PositionLost
    │   └── StateDiffers
    ├── WrittenByNewer            this process: a newer release wrote what it does not know
    ├── EnvironmentFault          the network, the disk, the broker
    │   ├── LogUnreachable
    │   ├── LogBusy
    │   └── LogFull
    └── NotLeading                somebody else leads, or nobody knows
        ├── LeadershipLost
        └── OutcomeUnknown

`AppendRefused` (also a StreamError) means that a record was definitely not written. All facts are
attributes.
"""

from __future__ import annotations


class StreamError(Exception):
    """Base of everything that a log or an inbox raises."""


class CallerError(StreamError):
    """The caller asked for something that cannot be, or named a file that does not hold what it should."""


class ProposalTooLarge(CallerError):
    """A proposal is larger than an inbox takes.

    Attributes:
        id: Id of the proposal, empty when it has none.
        size: Its bytes.
        limit: The most it may have.
    """

    def __init__(self, id: str, size: int, limit: int) -> None:  # noqa: A002 - the field is called so everywhere
        self.id, self.size, self.limit = id, size, limit
        super().__init__(
            f"proposal {id or 'without id'}: has {size} bytes, at most {limit} are taken"
        )


class ReadOnly(CallerError):
    """The log can only be read.

    Attributes:
        source: Where it lies.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        super().__init__(f"log {source}: can only be read")


class UnknownScheme(CallerError):
    """No adapter knows this address.

    Attributes:
        url: The address.
        expected: The forms that are known.
    """

    def __init__(self, url: str, expected: str) -> None:
        self.url, self.expected = url, expected
        super().__init__(f"address {url}: not understood, expected {expected}")


class CredentialsUnusable(CallerError):
    """A file with certificates or a key is missing, or does not hold what it should; nothing was connected.

    Attributes:
        file: Its path.
        reason: What is wrong with it.
    """

    def __init__(self, file: str, reason: str) -> None:
        self.file, self.reason = file, reason
        super().__init__(f"credentials {file}: {reason}")


class TargetDiffers(CallerError):
    """A log that a file is to be written into holds something else than a beginning of it; nothing was written.

    Attributes:
        name: The log.
        number: Of the first record that differs, from 1 on.
        position: Where it stands.
        found: Its hash.
        expected: Hash of the file's record of that number; empty: the file has no more.
    """

    def __init__(self, name: str, number: int, position: int, found: str, expected: str) -> None:
        self.name, self.number, self.position, self.found, self.expected = (
            name,
            number,
            position,
            found,
            expected,
        )
        wanted = f"{expected} as in the file" if expected else "none, as the file ends before it"
        super().__init__(
            f"log {name}: record {number} at position {position} has hash {found}, expected {wanted}"
        )


class StreamConfigurationError(StreamError):
    """The streams are not set up as they must be."""


class StreamMissing(StreamConfigurationError):
    """A topic or table does not exist.

    Attributes:
        name: The topic, or the file.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"stream {name}: does not exist, create it first")


class TopicMisconfigured(StreamConfigurationError):
    """A topic or file has a setting under which history could be lost.

    Attributes:
        topic: The topic, or the file.
        setting: Name of the setting.
        found: Its value.
        expected: What it must be.
    """

    def __init__(self, topic: str, setting: str, found: str, expected: str) -> None:
        self.topic, self.setting, self.found, self.expected = topic, setting, found, expected
        super().__init__(f"topic {topic}: {setting} is {found}, expected {expected}")


class AccessDenied(StreamConfigurationError):
    """The broker or the file system refused us the right, or we refused a broker that is not who it should be.

    Attributes:
        name: The topic, the broker or the file.
        reason: What it said, or what is wrong with it.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"stream {name}: access denied: {reason}")


class InboxDetached(StreamConfigurationError):
    """The inbox is not the one that the log reads, or not whole any more; nothing of it is read, and nothing passed over.

    Attributes:
        name: The inbox.
        reason: What was found and what was expected.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(
            f"inbox {name}: {reason} (`evsched log attach-inbox` lets the log read the inbox that is there)"
        )


class LogDamaged(StreamError):
    """The log is not what a leader wrote; nothing from this position on can be believed.

    Attributes:
        position: Where it shows; -1 when it is not at one place.
        reason: What was found and what was expected.
    """

    def __init__(self, position: int, reason: str) -> None:
        self.position, self.reason = position, reason
        place = f" at position {position}" if position >= 0 else ""
        super().__init__(f"log: damaged{place}: {reason}")


class PositionLost(LogDamaged):
    """A position that was there once is not there any more: the head or the tail of the stream was lost."""


class StateDiffers(LogDamaged):
    """Events or digests of the log do not fit a reader's state: the log is wrong, or the snapshot that the reader began from."""


class WrittenByNewer(StreamError):
    """A newer release wrote what this one does not know: the log is whole, this process is too old for it.

    Attributes:
        unknown: What is not known, as a phrase.
        position: Where it stands in the log; -1 when it is not at one place.
        release: The release that wrote it; empty when the log does not name it.
    """

    def __init__(self, unknown: str, position: int = -1, release: str = "") -> None:
        self.unknown, self.position, self.release = unknown, position, release
        place = f" at position {position}" if position >= 0 else ""
        who = f"release {release}: " if release else ""
        super().__init__(f"log: written by a newer evsched ({who}{unknown}){place}")


class EnvironmentFault(StreamError):
    """The network, the broker or the disk does not do its part; trying again later may help."""


class LogUnreachable(EnvironmentFault):
    """The broker or the file did not answer.

    Attributes:
        name: The log, inbox or broker.
        reason: What was tried, and what came back.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"stream {name}: unreachable: {reason}")


class LogBusy(EnvironmentFault):
    """Another process holds the file locked for longer than we wait.

    Attributes:
        name: The file.
        reason: What SQLite said.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"stream {name}: locked by another process: {reason}")


class LogFull(EnvironmentFault):
    """There is no room left.

    Attributes:
        name: The file.
        reason: What SQLite said.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"stream {name}: no room left: {reason}")


class AppendRefused(StreamError):
    """A record was definitely not written, and nothing with it.

    Attributes:
        name: The log or inbox.
        reason: Why.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"stream {name}: record refused: {reason}")


class StepUnprovable(StreamError):
    """A step was not written, because no reader could make of its bytes what was decided.

    Nothing of it is in the log. The fault is ours, or of an input that was let in and should not
    have been; the state that has taken the step is of no use any more.

    Attributes:
        frame: Number of the frame that was to be written.
        seq: Of the first event that is at fault; 0 when it is the frame itself.
        event: Its type, empty when it is the frame itself.
        reason: What went wrong, with the place in the event where that is known.
    """

    def __init__(self, frame: int, seq: int, event: str, reason: str) -> None:
        self.frame, self.seq, self.event, self.reason = frame, seq, event, reason
        place = f"event {seq}, {event}" if seq else "its header"
        super().__init__(f"frame {frame}: was not written, {place} cannot be read back: {reason}")


class NotLeading(StreamError):
    """We do not lead, so nothing may be acknowledged."""


class LeadershipLost(NotLeading):
    """Another leader's term is in force.

    Attributes:
        term: The term we led, 0 when we never did.
        by_term: The term in force, 0 when it is our own that ended.
        by_leader: Who owns it.
    """

    def __init__(self, term: int, by_term: int = 0, by_leader: str = "") -> None:
        self.term, self.by_term, self.by_leader = term, by_term, by_leader
        who = (
            f": term {by_term} of leader {by_leader} is in force" if by_leader else ": it has ended"
        )
        super().__init__(f"term {term}: not leading{who}")


class OutcomeUnknown(NotLeading):
    """Whether a record was written cannot be said; only reading the log tells.

    Attributes:
        name: The log or inbox.
        reason: What happened instead of an answer.
    """

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"stream {name}: outcome of a write unknown: {reason}")
