"""The timeline over HTTP is that of the library, for ever where it ends at a named event."""

from __future__ import annotations

import msgspec
import pytest

from replays.history.timeline import TimelineQuestion, timeline
from tests.api.served import reached, serving_steps
from tests.replays.logs import story


async def test_the_timeline_over_http_is_that_of_the_library(tmp_path):
    """A named end makes the answer immutable, the end of the log does not; both say the same here."""
    steps = story()
    end = steps[-1][1][-1].seq
    async with serving_steps(steps, tmp_path) as client:
        await reached(client, end)
        named = await client.get(f"/v1/timeline?start=2&end={end}&buckets=7&lanes=*")
        question = TimelineQuestion(start=2, end=end, buckets=7, lanes="*")
        answer = msgspec.json.encode(timeline(tmp_path / "model.db", question))
        assert named.content == answer
        assert "immutable" in named.headers["cache-control"]
        latest = await client.get("/v1/timeline?start=2&buckets=7&lanes=*")
        assert latest.content == answer
        assert latest.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("query", "status", "name"),
    [
        ("start=9&end=3", 400, "start"),
        ("buckets=0", 400, "buckets"),
        ("scale=weeks", 400, "scale"),
        ("end=999999", 404, "end"),
    ],
)
async def test_a_stretch_that_makes_no_sense_says_which_part(tmp_path, query, status, name):
    """Each fault names its parameter."""
    async with serving_steps(story(), tmp_path) as client:
        found = await client.get(f"/v1/timeline?{query}")
        assert (found.status_code, found.json()["place"]["name"]) == (status, name)
