"""The consumer in docs/consuming.md works, against a real broker, with all that a log may hold."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

from msgspec.structs import replace

from events.chain import cut_into_frames
from events.frame import decode_frame, decode_input
from events.streams import open_streams
from replays.history.sealing import Sealer
from tests.docs.pages import blocks
from tests.replays.logs import story


def records():
    """Return a log in which steps are cut into frames and an event into fragments, with frames of a leader that was overtaken."""
    sealer, written = Sealer("log-for-a-consumer"), []
    for number, (time, events, inbox_next) in enumerate(story()):
        head = sealer.reader.head
        if number in {1, 2, 5}:
            # So small a frame that the configuration does not fit into one.
            frames = cut_into_frames(
                head, events, time=time, decided=True, inbox_next=inbox_next, limit=700
            )
            for sealed in frames:
                sealer.reader.accept(sealed.data, sealer.reader.tip.position + 1)
                written.append(sealed.data)
        else:
            written += [record.data for record in sealer.seal(time, events, inbox_next=inbox_next)]
        if sealer.reader.head.term == 2:
            late = replace(head, term=1, leader="leader-1")
            written += [
                one.data
                for one in cut_into_frames(
                    late, events, time=time, decided=True, inbox_next=inbox_next
                )
            ]
    parts = [decode_frame(data) for data in written]
    assert any(part.fragment for part in parts)
    assert any(not part.last and part.events for part in parts)
    return written


async def fill(bootstrap, name):
    """Make the topics and write the log."""
    async with open_streams(f"kafka://{bootstrap}/{name}") as streams:
        await streams.log.create()
        for data in records():
            await streams.log.append(data)


def test_the_consumer_of_the_page_sees_every_event_once(
    kafka_bootstrap, kafka_topic_name, tmp_path
):
    """Every event that counts, in order, and none of those that do not."""
    (code,) = blocks("consuming.md", "python")
    (tmp_path / "consumer.py").write_text(code)
    asyncio.run(fill(kafka_bootstrap, kafka_topic_name))
    expected = [event for _, events, _ in story() for event in events]
    command = [sys.executable, str(tmp_path / "consumer.py"), kafka_bootstrap, kafka_topic_name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        lines = [process.stdout.readline() for _ in expected]
        process.kill()
    found = [json.loads(line.split(maxsplit=3)[3]) for line in lines]
    assert [event["seq"] for event in found] == [event.seq for event in expected]
    assert [event["type"] for event in found] == [type(event).__name__ for event in expected]


def test_the_proposals_of_the_page_are_some():
    """The JSON that an agent sends, and what a node and a pod say of themselves."""
    found = [decode_input(block) for block in blocks("consuming.md", "json")]
    assert [type(one).__name__ for one in found] == [
        "AllocationReleased",
        "NodeRegistered",
        "AskSubmitted",
    ]
