"""What-if and verify as jobs: with progress, cancellable, with the answers of the commands."""

from __future__ import annotations

import asyncio
import threading

import msgspec

from evsched.api import jobs
from evsched.config import load_texts
from replays.checking.verify import VerifyQuestion, verify_log
from replays.checking.whatif import WhatIfQuestion, what_if
from replays.history.moments import Moment
from replays.history.rebuild import History
from tests.api.served import serving_steps
from tests.api.test_proposals import QUEUES
from tests.replays.logs import sealed, story, written


async def over(client, address):
    """Return how a job stands once it is over."""
    while True:
        found = (await client.get(address)).json()
        if found["state"] not in ("waiting", "running"):
            return found
        await asyncio.sleep(0.01)


def plain(answer):
    """Return an answer as JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(answer))


async def test_the_answers_are_those_of_the_commands(tmp_path):
    """Of what-if for a configuration and for rules, and of verify, which is remembered."""
    history = History(await written(sealed(story())))
    (tried,) = load_texts([("body", QUEUES)]).configurations
    questions = (
        ({"document": QUEUES}, WhatIfQuestion(configurations=(tried,), end=Moment(seq=35))),
        ({"rules": 2, "to": "35"}, WhatIfQuestion(rules=2, end=Moment(seq=35))),
        (
            {"document": QUEUES, "from": "12", "to": "30"},
            WhatIfQuestion(configurations=(tried,), start=Moment(seq=12), end=Moment(seq=30)),
        ),
        (
            {"document": QUEUES, "from": "start", "throughout": True},
            WhatIfQuestion(
                configurations=(tried,), start=Moment(seq=0), end=Moment(seq=35), throughout=True
            ),
        ),
    )
    async with serving_steps(story(), tmp_path) as client:
        assert (await client.get("/v1/verify")).json() is None
        for body, question in questions:
            begun = await client.post("/v1/whatif", json=body)
            assert begun.status_code == 202
            found = await over(client, begun.headers["location"])
            assert found["state"] == "done", found
            assert found["answer"] == plain(await what_if(history, question))
        begun = await client.post("/v1/verify", json={})
        found = await over(client, begun.headers["location"])
        expected = plain(await verify_log(history, VerifyQuestion()))
        assert found["answer"] == expected == (await client.get("/v1/verify")).json()
        assert (found["seq"], found["end"]) == (35, 35)


async def test_a_job_that_is_cancelled_ends(tmp_path, monkeypatch):
    """At its next step where it runs, at once where it waits; and so many wait, and no more."""
    reached, go_on = threading.Event(), threading.Event()
    before = jobs.Job.progress

    def held(self, step):
        reached.set()
        assert go_on.wait(10)
        before(self, step)

    monkeypatch.setattr(jobs.Job, "progress", held)
    monkeypatch.setattr(jobs, "WAITING", 3)
    async with serving_steps(story(), tmp_path) as client:
        begun = [await client.post("/v1/verify", json={}) for _ in range(4)]
        assert [one.status_code for one in begun] == [202, 202, 202, 429]
        await asyncio.to_thread(reached.wait, 10)
        running, waiting, last = (one.headers["location"] for one in begun[:3])
        assert (await client.get(running)).json()["state"] == "running"
        assert (await client.delete(waiting)).json()["state"] == "cancelled"
        await client.delete(running)
        go_on.set()
        assert (await over(client, running))["state"] == "cancelled"
        assert (await over(client, last))["state"] == "done"
        assert (await client.get("/v1/jobs/verify-9")).status_code == 404


async def test_what_cannot_be_tried_says_why(tmp_path):
    """At once where the request is at fault, by the job where the log is."""
    async with serving_steps(story(), tmp_path) as client:
        for body, status, name in (
            ({}, 400, "document"),
            ({"rules": 77}, 400, "rules"),
            ({"rules": 2, "throughout": True}, 400, "document"),
            ({"document": "partitions: 7"}, 422, "partitions"),
            ({"rules": 2, "from": "99"}, 404, "from"),
            ({"rules": 2, "colour": 1}, 400, "colour"),
        ):
            found = await client.post("/v1/whatif", json=body)
            assert found.status_code == status, found.text
            assert found.json()["place"]["name"] == name
        begun = await client.post("/v1/whatif", json={"document": QUEUES, "from": "35"})
        found = await over(client, begun.headers["location"])
        assert (found["state"], found["reason"]) == ("failed", "nothing happens")
