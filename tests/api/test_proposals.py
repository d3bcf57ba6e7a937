"""Proposals and configurations over HTTP: each is answered once, whoever asks again gets the same answer."""

from __future__ import annotations

import asyncio
import json

import pytest
from msgspec.structs import replace

from events.frame import encode_event
from evsched.config import load_texts
from evsched.config.difference import describe
from replays.history.moments import Moment
from replays.history.rebuild import History
from tests.api.served import kept, led, serving, serving_steps
from tests.replays.logs import sealed, story, written
from tests.service.inputs import application, cluster, node

JSON = {"content-type": "application/json"}
YAML = {"content-type": "application/yaml"}
QUEUES = """
partitions:
  - name: default
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: test
            resources: {max: {vcore: 2}}
"""


@pytest.fixture
async def client(tmp_path):
    """Return a client of a server of a log that has a leader."""
    url = f"sqlite://{tmp_path / 'log.db'}"
    await kept([], url)
    async with led(url), serving(url, tmp_path) as client:
        yield client


async def test_a_proposal_is_taken_and_answered(client):
    """202 when it is in the inbox; with `wait` the answer and the seq of the event that gives it."""
    for one in cluster(1):
        found = await client.post("/v1/proposals?wait=20", content=encode_event(one), headers=JSON)
        document = found.json()
        assert (found.status_code, document["answer"]) == (200, "accepted"), document
        at = document["seq"] - 1
        (line,) = (
            await client.get(f"/v1/events?form=ndjson&after={at}&until={at + 1}")
        ).text.splitlines()
        told = json.loads(line)["event"]
        assert told["proposal"] == document["proposal"]
        assert one.proposal in ("", told["proposal"])
        assert told["source"] == "/evsched/api"
    found = await client.post("/v1/proposals", content=encode_event(node("n2")), headers=JSON)
    assert (found.status_code, set(found.json())) == (202, {"proposal", "position"})
    again = encode_event(replace(application("web"), proposal="again"))
    refused = await client.post("/v1/proposals?wait=20", content=again, headers=JSON)
    assert refused.json()["answer"] == "refused"


async def test_the_same_key_is_answered_once(client):
    """Sent again and again, also at once, a proposal happens once, and all hear of the first answer."""
    headers = {**JSON, "idempotency-key": '"order-66"'}
    content = encode_event(node()).replace(b'"proposal":"node:node-1",', b"")
    sent = [
        client.post("/v1/proposals?wait=20", content=content, headers=headers) for _ in range(3)
    ]
    answers = [one.json() for one in await asyncio.gather(*sent)]
    again = (await client.post("/v1/proposals?wait=20", content=content, headers=headers)).json()
    for one in [*answers, again]:
        assert (one["proposal"], one["answer"]) == ("order-66", "accepted")
        assert one["seq"] == answers[0]["seq"]
    rows = (await client.get("/v1/at/latest/nodes")).json()["rows"]
    assert [row["node"] for row in rows] == ["node-1"]


MISTAKES = (
    (b"{", {}, 400, ""),
    (b'{"type":"Nothing"}', {}, 400, ""),
    (b'{"type":"NodeRemoved","node":"n","colour":1}', {}, 400, ""),
    (b'{"type":"NodeRemoved","node":"n","seq":7}', {}, 400, ""),
    (
        b'{"type":"NodeRemoved","node":"n","proposal":"a"}',
        {"idempotency-key": "b"},
        400,
        "idempotency-key",
    ),
    (b'{"type":"NodeRemoved","node":"n"}', {"idempotency-key": ""}, 400, "idempotency-key"),
    (b'{"type":"NodeRemoved","node":"n"}', {"idempotency-key": "x" * 300}, 400, "idempotency-key"),
)


async def test_what_is_no_proposal_is_not_sent(client):
    """It is refused with its place, and the inbox stays empty."""
    for body, headers, status, name in MISTAKES:
        found = await client.post("/v1/proposals", content=body, headers={**JSON, **headers})
        assert (found.status_code, found.json()["place"]["name"]) == (status, name), found.text
    found = await client.post("/v1/proposals?wait=99", content=b"{}", headers=JSON)
    assert found.json()["place"]["name"] == "wait"
    sent = await client.post("/v1/proposals", content=encode_event(node()), headers=JSON)
    assert sent.json()["position"] == 0


async def test_nothing_is_proposed_to_an_exported_log(tmp_path):
    """It has no inbox."""
    async with serving_steps(story(), tmp_path) as client:
        client.served.open_streams = None
        found = await client.post("/v1/proposals", content=encode_event(node()), headers=JSON)
        assert (found.status_code, found.json()["type"]) == (409, "/v1/problems/read-only")


async def test_a_configuration_is_checked_compared_and_applied(client):
    """All faults with their lines; what it would do as `config diff` says it; then it is in force, with its text."""
    await client.post("/v1/proposals?wait=20", content=encode_event(cluster()[0]), headers=JSON)
    bad = QUEUES.replace("vcore: 2", "vcore: two").replace("submitacl", "submitall")
    found = (await client.post("/v1/configuration/check", content=bad, headers=YAML)).json()
    assert (found["valid"], len(found["faults"])) == (False, 2)
    assert {fault["line"] for fault in found["faults"]} == {6, 9}
    refused = await client.post("/v1/configuration", content=bad, headers=YAML)
    assert refused.status_code == 422
    assert len(refused.json()["faults"]) == 2
    good = (await client.post("/v1/configuration/check", content=QUEUES, headers=YAML)).json()
    assert (good["valid"], good["partitions"]) == (True, ["default"])
    differs = await client.post("/v1/at/latest/configuration/diff", content=QUEUES, headers=YAML)
    assert "root.test" in " ".join(differs.json()["sentences"])
    applied = await client.post(
        "/v1/configuration?wait=20&message=smaller", content=QUEUES, headers=YAML
    )
    assert applied.json()["answer"] == "accepted"
    seq = applied.json()["seq"]
    stored = await client.get(f"/v1/at/{seq}/configuration")
    assert stored.json()["document"] == QUEUES
    assert "immutable" in stored.headers["cache-control"]
    (before,) = [(await client.get(f"/v1/at/{seq - 1}/configuration")).json()]
    assert before["document"] != QUEUES


async def test_a_difference_is_that_of_the_command(tmp_path):
    """For a moment of the past, as `describe` has it there."""
    (tried,) = load_texts([("body", QUEUES)]).configurations
    history = History(await written(sealed(story())))
    async with serving_steps(story(), tmp_path) as client:
        for seq in (12, 30):
            found = await client.post(
                f"/v1/at/{seq}/configuration/diff", content=QUEUES, headers=YAML
            )
            state = (await history.at(Moment(seq=seq))).state
            expected = describe(None, tried, state)
            assert found.json()["sentences"] == list(expected.sentences())
