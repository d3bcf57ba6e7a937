"""What-if: the recorded inputs under another configuration, or other rules.

How the two worlds are run side by side, and what is supposed on the way, stands in
`replays.checking.worlds`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from events import vocabulary as v
from events.chain import ChainReader
from events.configuration import Configuration
from replays.checking.tried import ConfigurationRefused, TriedConfiguration
from replays.checking.worlds import DEFAULT_EVICTION_MS, WhatIf, WhatIfAnswer
from replays.history.finding import last_configuration
from replays.history.moments import END, Moment
from replays.history.steps import copy

if TYPE_CHECKING:
    from collections.abc import Callable

    from events.chain import RecordedStep
    from replays.history.rebuild import History


class WhatIfQuestion(Struct, frozen=True, kw_only=True):
    """What would have been different under another configuration, or other rules?

    Attributes:
        configurations: Those of a file; the one of the partition is tried, in place of the one in
            force at the start. A single one is tried whatever partition it names. None: those that
            were in force.
        rules: Version of the rules that decide all of it; None: those in force at each place.
        start: From when on; None: from where a configuration was applied last, or for rules alone
            from the beginning.
        end: Up to which moment the log is taken.
        throughout: The configuration stays in force where others were applied later on; otherwise
            these take its place, and what follows says nothing of it.
    """

    configurations: tuple[Configuration, ...] = ()
    rules: int | None = None
    start: Moment | None = None
    end: Moment = END
    throughout: bool = False


class EvictionTimes:
    """How long recorded evictions took, from telling a victim to its end."""

    def __init__(self) -> None:
        """Begin with none."""
        self._told: dict[str, int] = {}
        self._took: list[int] = []

    def take(self, step: RecordedStep) -> None:
        """Take the next step of the log."""
        for event in step.events:
            if isinstance(event, v.PreemptionDecided | v.QuotaPreemptionDecided):
                self._told.update((victim.id, step.time) for victim in event.victims)
            elif type(event) is v.EvictionObserved:
                self._told.setdefault(event.allocation, step.time)
            elif type(event) is v.AllocationReleased and event.allocation in self._told:
                self._took.append(step.time - self._told.pop(event.allocation))

    def median_ms(self) -> int:
        """Return the median (the lower one of two middle ones), milliseconds; `DEFAULT_EVICTION_MS` where there was none."""
        took = sorted(self._took)
        return took[(len(took) - 1) // 2] if took else DEFAULT_EVICTION_MS


async def what_if(
    history: History,
    question: WhatIfQuestion,
    progress: Callable[[RecordedStep], None] | None = None,
) -> WhatIfAnswer:
    """Run the recorded inputs under another configuration, or other rules.

    Args:
        history: The log.
        question: Which configuration and rules, and over which stretch.
        progress: Called after every step.

    Raises:
        ConfigurationRefused: The configuration cannot be applied.
        NotTried: It never came into force.
        WrittenByNewer: This release does not know the rules to try.
    """
    begin = question.start
    if begin is None:
        begin = await last_configuration(history) if question.configurations else Moment(seq=0)
    recorded, reader = await history.boundary(begin)
    tried = None
    if question.configurations:
        configuration = _of_partition(question.configurations, recorded.state.configuration)
        tried = TriedConfiguration(configuration, throughout=question.throughout)
    # The steps are read twice rather than kept: what is tried may be a month.
    evictions = EvictionTimes()
    seq = reader.head.next_seq - 1
    async for step in history.steps(ChainReader(reader.head), question.end):
        evictions.take(step)
        seq = step.head.next_seq - 1
    run = WhatIf(recorded, copy(recorded), tried, evictions.median_ms(), question.rules)
    # Not beyond what was read the first time: the log may have grown.
    async for step in history.steps(reader, Moment(seq=seq)):
        run.take(step)
        if progress is not None:
            progress(step)
    return run.answer()


def _of_partition(
    configurations: tuple[Configuration, ...], in_force: Configuration | None
) -> Configuration:
    """Return the configuration of a partition."""
    partition = in_force.partition if in_force is not None else "default"
    found = [one for one in configurations if one.partition == partition] or configurations
    if len(found) != 1:
        names = ", ".join(one.partition for one in configurations)
        message = f"partitions {names} found, expected one called {partition}"
        raise ConfigurationRefused(message)
    return found[0]
