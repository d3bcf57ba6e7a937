"""The configuration that a what-if tries: how it comes into force, and over which stretch it stays.

It takes the place of the one that the first step applies, or else is applied right before that step.
What is applied later in the log takes its place, as it did there; or, where the candidate is kept in
force throughout, gives way to it each time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from events import vocabulary as v
from replays.history.steps import is_proposed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from events.chain import RecordedStep
    from events.configuration import Configuration
    from evsched.core.engine import Engine


class ConfigurationRefused(Exception):
    """The configuration to try is not valid in this log; the message says why."""


class NotTried(Exception):
    """Nothing happened in the part of the log that was looked at, or no configuration was in force there."""


class TriedStretch(Struct, frozen=True, kw_only=True):
    """From where to where in the log a candidate was in force.

    Attributes:
        first: ``seq`` of the event whose place it took, or before which it was applied.
        begin: Time of that frame, milliseconds.
        last: ``seq`` of the event by which another configuration was applied; None: it stayed in
            force up to the end of what was taken.
        end: Time of that frame, milliseconds; None as ``last``.
        replaced: How many configurations that were applied later gave way to it.
    """

    first: int
    begin: int
    last: int | None = None
    end: int | None = None
    replaced: int = 0


class TriedConfiguration:
    """A configuration to try in the supposed world, step by step.

    Attributes:
        stretch: Over which it was in force so far; None: it is not yet.
    """

    def __init__(self, configuration: Configuration, *, throughout: bool = False) -> None:
        """Prepare to try it; ``throughout``: in place of all that are applied later as well."""
        self._configuration = configuration
        self._throughout = throughout
        self._tried: list[v.ConfigurationApplied] = []
        self.stretch: TriedStretch | None = None

    def enter(self, step: RecordedStep, proposals: list[v.Proposal], supposed: Engine) -> bool:
        """Let it take its place among the proposals of a step, or before it.

        Args:
            step: The next step of the log.
            proposals: What it took in, in the order of its answers; changed where the candidate
                takes a place.
            supposed: The engine of the supposed world, before the step.

        Returns:
            Whether the two worlds differ from here on.

        Raises:
            ConfigurationRefused: It cannot be applied before the step.
        """
        self._tried = []
        if self.stretch is not None and not (self._throughout and self.stretch.last is None):
            return False
        answers = [event for event in step.events if is_proposed(event)]
        accepted = [
            index for index, event in enumerate(answers) if type(event) is v.ConfigurationApplied
        ]
        if self.stretch is None:
            if not accepted:
                return self._apply_before(step, supposed)
            # Of several in one step the last one is in force behind it.
            accepted = accepted[-1:]
            self.stretch = TriedStretch(first=answers[accepted[0]].seq, begin=step.time)
        elif accepted:
            replaced = self.stretch.replaced + len(accepted)
            self.stretch = replace(self.stretch, replaced=replaced)
        for index in accepted:
            self._take_place(proposals, index)
        return False

    def _take_place(self, proposals: list[v.Proposal], index: int) -> None:
        """Put the candidate into a proposal; one that holds it already stays as it is."""
        proposal = proposals[index]
        proposed = proposal.input
        if (
            isinstance(proposed, v.ConfigurationApplied)
            and proposed.configuration != self._configuration
        ):
            tried = replace(proposed, configuration=self._configuration, document="")
            self._tried.append(tried)
            proposals[index] = replace(proposal, input=tried)

    def _apply_before(self, step: RecordedStep, supposed: Engine) -> bool:
        """Apply it in a step of its own, where some configuration is in force; return whether that changes anything."""
        in_force = supposed.state.configuration
        if in_force is None:
            return False
        first = step.events[0].seq if step.events else step.head.next_seq
        self.stretch = TriedStretch(first=first, begin=step.time)
        if in_force == self._configuration:
            return False
        tried = v.ConfigurationApplied(configuration=self._configuration)
        time = max(step.time - 1, supposed.state.time)
        events = supposed.step(time, [v.Proposal(input=tried)], decide=False)
        for event in events:
            if isinstance(event, v.InputRejected):
                raise ConfigurationRefused(event.reason)
        return True

    def follow(self, step: RecordedStep, events: Iterable[v.AnyEvent]) -> None:
        """Notice what became of it in a step.

        Args:
            step: The step of the log.
            events: What the supposed world made of it.

        Raises:
            ConfigurationRefused: It was not accepted there.
        """
        if self.stretch is None or self.stretch.last is not None:
            return
        for event in events:
            if isinstance(event, v.InputRejected) and event.input in self._tried:
                raise ConfigurationRefused(event.reason)
        in_force = [
            event.configuration for event in events if type(event) is v.ConfigurationApplied
        ]
        if in_force and in_force[-1] != self._configuration:
            applied = [event.seq for event in step.events if type(event) is v.ConfigurationApplied]
            # Where only the supposed world accepted it, the log holds a refusal there.
            last = applied[-1] if applied else step.head.next_seq - 1
            self.stretch = replace(self.stretch, last=last, end=step.time)
