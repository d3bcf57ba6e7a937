"""Scenario files: a cluster, what happens to it, and optionally what must come out.

The format is strict where a slip would change the outcome: every item, step and expectation is a
closed record, so that a misspelt key is refused with its path instead of being ignored. Unknown
keys at the top are carried and ignored, because files of other origin bring notes there; what
another scheduler was ``observed`` to do may carry diagnostics for the same reason.

Numbers of nodes, running and pending items are base units (see `events.configuration`); seconds are
relative to ``start``.
"""

from __future__ import annotations

import gzip
import re
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from events.configuration import Amounts
from events.pods import PodFacts, Taints
from events.vocabulary import Name, PodSet, Priority
from evsched.config.document import read_value
from evsched.config.errors import ConfigurationError, Fault
from evsched.core.duration import DurationError, parse_duration_ms

DEFAULT_START = "2026-01-01T00:00:00Z"
MAX_FILE_BYTES = 512 * 1024 * 1024
SUFFIXES = (".json", ".yaml", ".yml", ".json.gz")
"""How the names of scenario files end."""

_FAR = 10**12
ScenarioSeconds = (
    Annotated[int, Meta(ge=-_FAR, le=_FAR)] | Annotated[float, Meta(ge=-_FAR, le=_FAR)]
)


class ScenarioError(ValueError):
    """A scenario file breaks the format. The fault is that of whoever wrote it.

    Attributes:
        file: Its name.
        problem: What was found and expected, with the field's path.
    """

    def __init__(self, file: str, problem: str) -> None:
        self.file = file
        self.problem = problem
        super().__init__(f"scenario {file}: {problem}")


class Closed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the records in which an unknown key is an error."""


DOCUMENTS = {"yunikorn": "queues", "kueue": "objects", "custom": "custom"}
"""The key of a configuration's document, by format."""


class ConfigDocument(Closed, frozen=True, kw_only=True):
    """A configuration in a policy language, still in that language; ``custom`` is that of an added family."""

    format: Literal["yunikorn", "kueue", "custom"]
    queues: dict[str, Any] | UnsetType = UNSET
    objects: list[Any] | UnsetType = UNSET
    custom: dict[str, Any] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Check that the document of the format is there, and only that one."""
        want = DOCUMENTS[self.format]
        if getattr(self, want) is UNSET:
            raise ValueError(f"format {self.format} needs the key `{want}`")
        for other in DOCUMENTS.values():
            if other != want and getattr(self, other) is not UNSET:
                raise ValueError(f"format {self.format} takes `{want}`, found `{other}`")

    @property
    def document(self) -> Any:
        """The document itself: a queues.yaml mapping, a list of manifests, or family and sections."""
        return getattr(self, DOCUMENTS[self.format])


class NodeItem(Closed, frozen=True, kw_only=True):
    """A node; capacity in base units."""

    name: Name
    capacity: Amounts
    labels: dict[str, str] = {}
    schedulable: bool = True
    taints: Taints = ()
    ready: bool = True


class Item(Closed, frozen=True, kw_only=True):
    """What running and pending items share."""

    id: Name
    application: Annotated[str, Meta(max_length=253)] = ""
    queue: str = ""
    user: str = "nobody"
    groups: tuple[str, ...] = ()
    resources: Amounts = {}
    priority: Priority = 0
    allow_preemption: bool = True
    originator: bool = False
    required_node: Name | None = None
    created: ScenarioSeconds = 0
    uid: Name | None = None
    flavors: dict[str, str] | None = None
    podsets: tuple[PodSet, ...] = ()
    pod: PodFacts | None = None


class RunningItem(Item, frozen=True, kw_only=True):
    """An allocation that exists at second 0."""

    node: Name | None = None
    admitted: ScenarioSeconds | None = None
    preempting: bool = False
    evicted: bool = False


class PendingItem(Item, frozen=True, kw_only=True):
    """An ask that waits."""

    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    preempt_resources: tuple[str, ...] | None = None

    @property
    def has_flavors(self) -> bool:
        """Whether its flavors are given, so that only the victim search is asked for."""
        return self.flavors is not None or any(
            podset.flavors is not None for podset in self.podsets
        )


class Reservation(Closed, frozen=True, kw_only=True):
    """A node that is kept for an ask at second 0."""

    ask: Name
    node: Name


class Evictions(Closed, frozen=True, kw_only=True):
    """When victims leave."""

    confirm_after: str

    def __post_init__(self) -> None:
        """Check the duration."""
        _duration(self.confirm_after)

    @property
    def confirm_after_ms(self) -> int:
        """The same in milliseconds."""
        return _duration(self.confirm_after)


class ScenarioStep(Closed, frozen=True, kw_only=True):
    """One thing that happens; exactly one key is set."""

    advance: str | UnsetType = UNSET
    config: ConfigDocument | UnsetType = UNSET
    submit: tuple[PendingItem, ...] | UnsetType = UNSET
    withdraw: tuple[Name, ...] | UnsetType = UNSET
    release: tuple[Name, ...] | UnsetType = UNSET
    node: NodeItem | UnsetType = UNSET
    remove_node: Name | UnsetType = UNSET
    restart: Literal[True] | UnsetType = UNSET
    cycle: Literal[1] | UnsetType = UNSET

    def __post_init__(self) -> None:
        """Check that one thing happens, and that a duration is one."""
        found = self.keys
        if len(found) != 1:
            names = ", ".join(self.__struct_fields__)
            raise ValueError(
                f"found {', '.join(found) or 'nothing'}, expected exactly one of {names}"
            )
        if self.advance is not UNSET:
            _duration(self.advance)

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are set."""
        return tuple(name for name in self.__struct_fields__ if getattr(self, name) is not UNSET)


class VictimExpected(Closed, frozen=True, kw_only=True):
    """A victim, with the reason when that matters."""

    id: Name
    reason: str | None = None


class PreemptionExpected(Closed, frozen=True, kw_only=True):
    """What one ask must preempt; no victims: nobody."""

    ask: Name
    node: Name | None = None
    victims: tuple[VictimExpected | str, ...]


class QuotaExpected(Closed, frozen=True, kw_only=True):
    """Whom quota enforcement must tell to go."""

    queue: Name
    victims: tuple[VictimExpected | str, ...]


class PodSetExpected(Closed, frozen=True, kw_only=True):
    """The flavors that a podset must get."""

    name: Name
    flavors: dict[str, str]


class BoundExpected(Closed, frozen=True, kw_only=True):
    """What must be bound or admitted; node None: any."""

    ask: Name
    node: Name | None = None
    flavors: dict[str, str] | None = None
    podsets: tuple[PodSetExpected, ...] = ()


class Expectation(Closed, frozen=True, kw_only=True):
    """What must come out; a list that is None is not compared."""

    preemptions: tuple[PreemptionExpected, ...] | None = None
    quota: tuple[QuotaExpected, ...] | None = None
    bound: tuple[BoundExpected, ...] | None = None
    order: tuple[tuple[str, ...], ...] | None = None
    any_of: tuple[Expectation, ...] | None = None


class Observation(Struct, frozen=True, kw_only=True):
    """What another scheduler did, in the shape of an expectation; diagnostics beside it are ignored."""

    preemptions: tuple[PreemptionExpected, ...] | None = None
    quota: tuple[QuotaExpected, ...] | None = None
    bound: tuple[BoundExpected, ...] | None = None
    order: tuple[tuple[str, ...], ...] | None = None
    any_of: tuple[Observation, ...] | None = None


class Scenario(Struct, frozen=True, kw_only=True):
    """A whole scenario file."""

    scenario: Literal[1]
    name: str
    config: ConfigDocument
    nodes: tuple[NodeItem, ...] = ()
    running: tuple[RunningItem, ...] = ()
    pending: tuple[PendingItem, ...] = ()
    reserved: tuple[Reservation, ...] = ()
    evictions: Literal["hold"] | Evictions = "hold"
    steps: tuple[ScenarioStep, ...] = ()
    start: str = DEFAULT_START
    expect: Expectation | None = None
    observed: Observation | None = None

    def __post_init__(self) -> None:
        """Check the start and that a step fits the policy language."""
        _epoch_ms(self.start)
        if self.config.format != "kueue" and self.has_cycle:
            raise ValueError("found a step `cycle`, which is for format kueue only")

    @property
    def start_ms(self) -> int:
        """Second 0, in milliseconds since the epoch."""
        return _epoch_ms(self.start)

    @property
    def has_cycle(self) -> bool:
        """Whether single cycles are asked for, so that the engine must not decide by itself."""
        return any(step.cycle is not UNSET for step in self.steps)

    @property
    def search_only(self) -> bool:
        """Whether asks bring their flavors, which asks for the victim search alone (Kueue, no single cycles)."""
        submitted = (
            item for step in self.steps if step.submit is not UNSET for item in step.submit
        )
        asks = (*self.pending, *submitted)
        return (
            self.config.format == "kueue"
            and not self.has_cycle
            and any(item.has_flavors for item in asks)
        )


def read_scenario(path: Path) -> Scenario:
    """Return the scenario in this file: YAML where the name says so, JSON otherwise (``.gz``: compressed).

    Raises:
        ScenarioError: The file cannot be read, is neither JSON nor YAML, or breaks the format; with
            the field's path.
    """
    try:
        data = path.read_bytes()
        if path.suffix == ".gz":
            data = _unzip(data)
    except OSError as error:
        raise ScenarioError(str(path), error.strerror or str(error)) from error
    return parse_scenario(data, str(path), is_yaml=path.suffix in {".yaml", ".yml"})


def parse_scenario(data: bytes, file: str, *, is_yaml: bool = False) -> Scenario:
    """Return the scenario in these bytes; ``file`` names them in errors.

    Raises:
        ScenarioError: As `read_scenario`.
    """
    try:
        if not is_yaml:
            return msgspec.json.decode(data, type=Scenario)
        document = read_value(data.decode(), file, MAX_FILE_BYTES)
        return msgspec.convert(document, Scenario)
    except msgspec.ValidationError as error:
        problem = str(error)
        if "[...]" in problem:
            problem = _with_key(problem, document) if is_yaml else _with_key_of(problem, data)
        raise ScenarioError(file, problem) from error
    except ConfigurationError as error:
        raise ScenarioError(file, "; ".join(map(_placed, error.faults))) from error
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ScenarioError(file, " ".join(str(error).split()) or type(error).__name__) from error


def _placed(fault: Fault) -> str:
    """Return a fault with its line and path; `ScenarioError` names the file."""
    places = [f"line {fault.line}"] if fault.line else []
    return ": ".join([", ".join([*places, *filter(None, [fault.path])]), fault.message]).lstrip(
        ": "
    )


def seconds_to_ms(seconds: float) -> int:
    """Return seconds as integer milliseconds, to the nearest one."""
    return seconds * 1000 if isinstance(seconds, int) else round(seconds * 1000)


_PATH = re.compile(r"`\$([^`]*?)\[\.\.\.\][^`]*`$")
"""Where msgspec says a problem is, up to the key that it leaves out."""


def _with_key_of(problem: str, data: bytes) -> str:
    """Return the same for JSON, which may be none behind the place of the problem: msgspec reads no further."""
    try:
        document = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return problem
    return _with_key(problem, document)


def _with_key(problem: str, document: Any) -> str:
    """Return what msgspec says, with the key of a mapping where its path has ``[...]``: the one that fails by itself."""
    path = _PATH.search(problem)
    if path is None:
        return problem  # the dots stand in a value that the problem quotes
    place: Any = document
    for part in re.findall(r"[^.\[\]]+", path[1]):
        place = place[int(part) if isinstance(place, list) else part]
    items = dict(place)
    for key, value in items.items():
        place.clear()
        place[key] = value
        try:
            msgspec.convert(document, Scenario)
        except msgspec.ValidationError as error:
            if str(error) == problem:
                return problem.replace("[...]", f".{key}", 1)
    return problem


def _duration(text: str) -> int:
    try:
        found = parse_duration_ms(text)
    except DurationError as error:
        raise ValueError(str(error)) from error
    if found < 0:
        raise ValueError(f"found {text!r}, expected a duration of 0s or more")
    return found


def _epoch_ms(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(
            f"start: found {text!r}, expected an RFC 3339 time such as {DEFAULT_START}"
        ) from error
    if moment.tzinfo is None:
        raise ValueError(
            f"start: found {text!r} without an offset, expected an RFC 3339 time such as {DEFAULT_START}"
        )
    return int(moment.timestamp()) * 1000 + moment.microsecond // 1000


def _unzip(data: bytes) -> bytes:
    """Return what is in a gzip file, up to a size that a scenario never has."""
    import io  # noqa: PLC0415 - rare

    with gzip.open(io.BytesIO(data)) as file:
        plain = file.read(MAX_FILE_BYTES + 1)
    if len(plain) > MAX_FILE_BYTES:
        raise OSError(0, f"holds more than {MAX_FILE_BYTES} bytes")
    return plain
