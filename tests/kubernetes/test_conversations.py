"""Conversations with a real API server, recorded by `make test-kubernetes` and held again byte for byte without one."""

import asyncio
from contextlib import suppress

import pytest

from events.streams import Streams
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.vocabulary import InputRejected, ObservationGap
from evsched.agents.kubernetes import reflecting
from evsched.agents.kubernetes.masking import Masking
from evsched.agents.kubernetes.reading import Reading
from evsched.agents.kubernetes.recording import ClusterRecording
from tests.kubernetes.conversation import FOLDER, Held
from tests.kubernetes.model import logged
from tests.kubernetes.observer import Observer

GAPS = {
    "eviction": set(),
    "from-the-first-list": set(),
    "history-is-gone": {"Node", "Pod"},
    "network-is-cut": set(),
}
"""Conversation to the kinds of which something was not seen."""


def test_every_conversation_is_held_again():
    """Each file is named in the table, and each name of the table has its file."""
    assert {file.name.removesuffix(".jsonl.zst") for file in FOLDER.iterdir()} == set(GAPS)


@pytest.mark.parametrize("name", GAPS)
async def test_the_log_says_what_the_cluster_was_in_the_end(name, monkeypatch):
    """The same bytes lead to the same log: equal object by object, gaps where there were gaps, nothing refused."""
    monkeypatch.setattr(reflecting, "FIRST_WAIT_S", 0.0)
    store = MemoryStore()
    observer = Observer(Streams(MemoryLog(store), MemoryInbox(store)))
    await observer.start()
    held = Held(FOLDER / f"{name}.jsonl.zst")
    streams = Streams(MemoryLog(store), MemoryInbox(store))
    recording = ClusterRecording(streams, held, Reading(masking=Masking()))
    agent = asyncio.create_task(recording.run())
    cluster = {
        part: {key: tuple(value) if isinstance(value, list) else value for key, value in of.items()}
        for part, of in held.cluster.items()
    }
    await observer.until(lambda: not held.unsaid and logged(observer.engine) == cluster)
    agent.cancel()
    with suppress(asyncio.CancelledError):
        await agent
    await observer.stop()
    assert [one for one in observer.events if isinstance(one, InputRejected)] == []
    gaps = {one.kind for one in observer.events if isinstance(one, ObservationGap) and one.before}
    assert gaps == GAPS[name]
