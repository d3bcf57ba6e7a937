"""Makes recordings: scenario files, run as a leader would run them, with terms, fences and checkpoints."""

from __future__ import annotations

import shutil
from collections import Counter
from typing import TYPE_CHECKING

import msgspec
import zstandard

from events.chain import Head
from events.frame import decode_header, frame_hash
from events.streams.export import FORMAT, VERSION, ExportHeader, ExportLine
from evsched.config.document import read_value
from replays.history.sealing import Sealer
from replays.recordings import INDEX, Recording
from replays.scenarios.decisions import is_decision
from replays.scenarios.scenario import Scenario, ScenarioStep, read_scenario
from replays.scenarios.simulate import Simulation

if TYPE_CHECKING:
    from pathlib import Path

    from events.streams.protocols import Record
    from events.vocabulary import AnyEvent, AnyInput

CHECKPOINT_EVERY = 10

MORE = {
    ("cross_queue_preemption", "pseudo code"): "plan-one-node-only",
    ("cross_queue_preemption", "inside preemption policy"): "law-7-fence-lets-in",
    ("kueue_preemption", "classic preemption"): "kueue-within-lower-priority",
    ("kueue_preemption", "share value"): "kueue-fair-takes-from-the-largest-share",
    ("kueue_preemption", "preemption strategies"): "kueue-fair-final-share-spares-equal",
    ("preemption_design", "priority limitations"): "law-6-offset-raises-the-asker",
    ("preemption_design", "application settings"): "plan-originator-is-spared",
    ("priority_scheduling", "queue configuration"): "order-disabled-is-inherited",
    ("priority_scheduling", "extended application sorting"): "order-priority-across-applications",
    ("quota_enforcement", "preemption does not help"): "quota-usage-fits",
    ("quota_enforcement", "quota preemption delay"): "quota-second-change-restarts",
    ("quota_enforcement", "lowering parent queue quota"): "quota-parent-shares-fairly",
}
"""Sections that are shown by a scenario whose file names another one as its source."""


class Recorded(Simulation):
    """A run of a scenario whose steps can be taken again: all of them decide, and each beginning is a term."""

    def __init__(self, scenario: Scenario) -> None:
        """Begin with a fence."""
        super().__init__(scenario)
        self._by_itself = True
        self._lead()

    def _lead(self) -> None:
        term = self.engine.state.term + 1
        self._record(self.now, self.engine.lead(self.now, term, f"leader-{term}", CHECKPOINT_EVERY))

    def _happen(self, inputs: list[AnyInput]) -> None:
        if inputs:
            super()._happen(inputs)

    def _take(self, step: ScenarioStep) -> None:
        if step.cycle is not msgspec.UNSET:
            return
        super()._take(step)
        if step.restart is not msgspec.UNSET:
            self._lead()


def sources(folder: Path) -> dict[tuple[str, str], Path]:
    """Return, for each seed and section that a scenario in a folder names as its source, the first such file."""
    files = {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    found: dict[tuple[str, str], Path] = {}
    for path in files.values():
        source = read_value(path.read_text(encoding="utf-8"), str(path)).get("source", "")
        seed, _, section = source.partition(", ")
        found.setdefault((seed, section.partition(";")[0] or "in general"), path)
    found |= {place: files[name] for place, name in MORE.items()}
    return dict(sorted(found.items()))


def make(scenarios: Path, target: Path) -> list[Recording]:
    """Record one scenario for each section of each seed into ``target``, whose earlier content goes; return what was made."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    made = [_record(place, path, target) for place, path in sources(scenarios).items()]
    index = msgspec.json.format(msgspec.json.encode(made), indent=1)
    (target / INDEX).write_bytes(index + b"\n")
    return made


def _record(place: tuple[str, str], path: Path, target: Path) -> Recording:
    scenario = read_scenario(path)
    run = Recorded(scenario)
    run.run()
    name = "-".join(
        "".join(letter if letter.isalnum() else " " for letter in " ".join(place).lower()).split()
    )
    records, head = _sealed(f"recording-of-{name}", run.steps)
    (target / f"{name}.jsonl.zst").write_bytes(_file(records))
    events = [event for _, group in run.steps for event in group]
    return Recording(
        file=f"{name}.jsonl.zst",
        seed=place[0],
        section=place[1],
        shows=scenario.name,
        events=len(events),
        decisions=dict(
            sorted(Counter(type(event).__name__ for event in events if is_decision(event)).items())
        ),
        hash=head.hash,
        digest=run.engine.state.digest(),
    )


def _sealed(
    log_id: str, steps: list[tuple[int, tuple[AnyEvent, ...]]]
) -> tuple[list[Record], Head]:
    sealer = Sealer(log_id)
    records: list[Record] = []
    for time, events in steps:
        records.extend(sealer.seal(time, events))
    return records, sealer.reader.head


def _file(records: list[Record]) -> bytes:
    """Return the records as `evsched log export` writes them."""
    header = ExportHeader(
        format=FORMAT, version=VERSION, log_id=decode_header(records[0].data).log_id, partition=0
    )
    lines = [msgspec.json.encode(header)]
    lines += [
        msgspec.json.encode(
            ExportLine(
                position=record.position, hash=frame_hash(record.data), data=record.data.decode()
            )
        )
        for record in records
    ]
    return zstandard.ZstdCompressor(level=19).compress(b"\n".join(lines) + b"\n")
