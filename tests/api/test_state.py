"""The state at any moment over HTTP is the one that `evsched at` shows, for ever."""

from __future__ import annotations

import asyncio
import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.api.state_routes import VIEW_NAMES
from evsched.cli.main import run
from replays.history.at import AtQuestion, at
from replays.history.moments import Moment, format_time
from replays.history.rebuild import History
from replays.history.rows import document
from tests.api.histories import histories, kueue, trees, yunikorn
from tests.api.served import kept, serving, serving_steps
from tests.examples import examples
from tests.replays.logs import read, sealed, story, taken, written


async def compared(steps, folder, seed, moments):
    """Compare random moments with the question of `evsched at`, and the latest with the last one."""
    dice = Random(seed)
    end = steps[-1][1][-1].seq
    history = History(await written(sealed(steps)))
    async with serving_steps(steps, folder) as client:
        for _ in range(moments):
            seq = dice.randint(0, end)
            for name in dice.sample(sorted(VIEW_NAMES), 2):
                found = (await client.get(f"/v1/at/{seq}/{name}?limit=10000")).json()
                question = AtQuestion(moment=Moment(seq=seq), view=VIEW_NAMES[name])
                answer = await at(history, question)
                rows = [document(row) for row in answer.rows.by_view()[VIEW_NAMES[name]]]
                assert found["rows"] == rows, (seq, name)
                assert (found["seq"], found["time"]) == (answer.seq, answer.time)
        for name in VIEW_NAMES:
            latest = (await client.get(f"/v1/at/latest/{name}")).json()
            last = (await client.get(f"/v1/at/{end}/{name}")).json()
            assert latest["rows"] == last["rows"]


@given(st.tuples(trees(), histories), st.integers())
@examples(6)
def test_every_moment_of_a_tree_of_queues_is_as_at_shows_it(tmp_path_factory, drawn, seed):
    """Moments in the middle of steps too; and the latest is that of the last event."""
    folder = tmp_path_factory.mktemp("served")
    asyncio.run(compared(yunikorn(drawn), folder, seed, 17))


@pytest.mark.parametrize("seed", [1, 2])
def test_every_moment_of_cluster_queues_is_as_at_shows_it(tmp_path, seed):
    """With quotas, borrowing and shares, for classic and fair sharing."""
    asyncio.run(compared(kueue(seed), tmp_path, seed, 50))


async def test_the_rows_are_what_the_command_prints(tmp_path, capsys):
    """`evsched at --json` prints a document a line, and these are the rows."""
    async with serving_steps(story(), tmp_path) as client:
        rows = (await client.get("/v1/at/21/allocations?queue=root.test")).json()["rows"]
    command = ["at", "21", "allocations", "--queue", "root.test", "--json"]
    log = str(tmp_path / "log.db")
    assert await asyncio.to_thread(run, [*command, "--log", log]) == 0
    assert rows == [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows


async def test_a_time_leads_to_its_seq(tmp_path):
    """By a time, by time before the end; for ever only where nothing more can come with that time."""
    steps = read(sealed(story()))
    async with serving_steps(story(), tmp_path) as client:
        for number, step in enumerate(steps):
            last = max(one.head.next_seq - 1 for one in steps if one.time == step.time)
            for text in (format_time(step.time), f"-{steps[-1].time - step.time}ms"):
                found = await client.get(f"/v1/at/{text}/asks?limit=3")
                assert found.status_code == 307
                assert found.headers["location"] == f"/v1/at/{last}/asks?limit=3", number
            earlier = step.time < steps[-1].time
            lasting = (await client.get(f"/v1/at/{format_time(step.time)}/asks")).headers
            assert ("immutable" in lasting["cache-control"]) is earlier
        assert (await client.get("/v1/at/1970-01-01/asks")).headers["location"] == "/v1/at/0/asks"


async def test_what_belongs_to_a_seq_may_be_kept_for_ever(tmp_path):
    """It says so, and is not sent again to whoever has it; what is about the latest is not."""
    async with serving_steps(story(), tmp_path) as client:
        found = await client.get("/v1/at/20/queues")
        assert found.headers["cache-control"] == "max-age=31536000, immutable"
        tag = found.headers["etag"]
        for header in (tag, f'"other", W/{tag}', "*"):
            again = await client.get("/v1/at/20/queues", headers={"if-none-match": header})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        other = await client.get("/v1/at/20/queues", headers={"if-none-match": '"other"'})
        assert other.content == found.content
        latest = await client.get("/v1/at/latest/queues")
        assert latest.headers["cache-control"] == "no-cache"
        assert "etag" not in latest.headers


async def test_an_etag_outlives_the_server_and_its_files(tmp_path):
    """The same bytes after a restart, with read model and snapshots made anew, and over a log that was exported and imported."""
    addresses = [f"/v1/at/{seq}/{view}" for seq in (7, 21, 35) for view in (*VIEW_NAMES, "loads")]
    url, copy = (f"sqlite://{tmp_path / name}" for name in ("log.db", "copy.db"))
    await kept(sealed(story()), url)
    for command in (
        ["export", str(tmp_path / "log.jsonl"), "--log", url],
        ["import", str(tmp_path / "log.jsonl"), "--log", copy],
    ):
        assert await asyncio.to_thread(run, ["log", *command]) == 0
    seen = []
    for attempt, log in (("first", url), ("first", url), ("anew", url), ("copy", copy)):
        folder = tmp_path / attempt
        folder.mkdir(exist_ok=True)
        async with serving(log, folder) as client:
            answers = [await client.get(address) for address in addresses]
        seen.append([(one.headers["etag"], one.content) for one in answers])
    assert seen[0] == seen[1] == seen[2] == seen[3]


async def test_columns_of_nodes_belong_to_a_seq_too(tmp_path):
    """They are kept for ever like rows; of the latest they are those of the last event."""
    async with serving_steps(story(), tmp_path) as client:
        found = await client.get("/v1/at/20/loads?resource=vcore")
        rows = (await client.get("/v1/at/20/nodes")).json()["rows"]
        assert found.json()["used"] == [row["used"].get("vcore", 0) for row in rows]
        assert found.json()["nodes"] == [row["node"] for row in rows] != []
        assert "immutable" in found.headers["cache-control"]
        latest = await client.get("/v1/at/latest/loads?limit=1")
        assert (latest.json()["seq"], len(latest.json()["nodes"])) == (35, 1)
        assert latest.headers["cache-control"] == "no-cache"
        assert (await client.get("/v1/at/36/loads")).status_code == 404


async def test_whoever_sees_everything_has_no_state_rebuilt(tmp_path, monkeypatch):
    """What masks nothing needs no state of the past: explanations, differences and timelines are as they are found."""
    async with serving_steps(story(), tmp_path) as client:
        monkeypatch.setattr(type(client.served.past), "_state", None)
        for address in (
            "/v1/timeline?end=20",
            "/v1/diff?from=12&to=20",
            "/v1/at/20/explain/test-1",
        ):
            assert (await client.get(address)).status_code == 200, address


async def test_pages_of_a_list_make_up_the_whole(tmp_path):
    """In order, each row once, all at the seq of the first page even where that was asked of the latest."""
    async with serving_steps(story(), tmp_path) as client:
        whole = (await client.get("/v1/at/35/config")).json()["rows"]
        rows, address, pages = [], "/v1/at/latest/config?limit=2", 0
        while address is not None:
            page = (await client.get(address)).json()
            assert page["seq"] == 35
            assert page["total"] == len(whole)
            rows += page["rows"]
            address = page["next"]
            pages += 1
        assert rows == whole
        assert pages == (len(whole) + 1) // 2


async def test_a_row_by_its_key(tmp_path):
    """Alone, also where the key has a slash in it."""
    async with serving_steps(story(), tmp_path) as client:
        found = (await client.get("/v1/at/20/queues/root.test")).json()
        assert [row["queue"] for row in found["rows"]] == ["root.test"]
        assert found["total"] == 1
    (tmp_path / "kueue").mkdir()
    async with serving_steps(kueue(1, 1), tmp_path / "kueue") as client:
        names = [row["queue"] for row in (await client.get("/v1/at/latest/queues")).json()["rows"]]
        cohort = next(name for name in names if "/" in name)
        found = (await client.get(f"/v1/at/latest/queues/{cohort}")).json()
        assert [row["queue"] for row in found["rows"]] == [cohort]


MISTAKES = (
    ("/v1/at/yesterday/asks", 400, "moment-invalid", "path", "moment"),
    ("/v1/at/36/asks", 404, "moment-ahead", "path", "moment"),
    ("/v1/at/20/pods", 404, "not-found", "path", "view"),
    ("/v1/at/20/asks/nobody", 404, "unknown-name", "path", "key"),
    ("/v1/at/20/asks?queue=root.none", 404, "unknown-name", "query", "queue"),
    ("/v1/at/20/nodes?queue=root.test", 400, "parameter-invalid", "query", "queue"),
    ("/v1/at/20/asks?limit=0", 400, "parameter-invalid", "query", "limit"),
    ("/v1/at/20/asks?limit=1&limit=2", 400, "parameter-invalid", "query", "limit"),
    ("/v1/at/20/asks?colour=red", 400, "parameter-invalid", "query", "colour"),
    ("/v1/at/20/asks?after=nobody", 400, "parameter-invalid", "query", "after"),
    ("/v1/log?a=b", 400, "parameter-invalid", "query", "a"),
    ("/v1/none", 404, "not-found", "path", ""),
)


async def test_a_mistake_gets_its_place(tmp_path):
    """A problem document whose type can be looked up, with the part of the request that is at fault."""
    async with serving_steps(story(), tmp_path) as client:
        for address, status, name, where, part in MISTAKES:
            found = await client.get(address)
            assert found.headers["content-type"] == "application/problem+json"
            problem = found.json()
            assert (found.status_code, problem["status"]) == (status, status), address
            assert problem["type"] == f"/v1/problems/{name}", address
            assert problem["place"] == {"where": where, "name": part}, address
            meaning = (await client.get(problem["type"])).json()
            assert (meaning["title"], meaning["status"]) == (problem["title"], status)


async def test_moments_within_a_step_are_asked_one_after_the_other(tmp_path):
    """Between its submission and placement an application is in no state to go on from; each moment is right all the same."""
    submitted = v.ApplicationSubmitted(application="one", queue="root.prod", user="someone")
    ask = v.AskSubmitted(ask="one-1", application="one", resources={"vcore": 1000})
    spec = YunikornSpec(root=QueueSpec(name="root", parent=True, queues=(QueueSpec(name="prod"),)))
    steps = taken(spec, [(10, [submitted, ask], False)])
    end = steps[-1][1][-1].seq
    history = History(await written(sealed(steps)))
    async with serving_steps(steps, tmp_path) as client:
        for seq in range(1, end + 1):
            found = (await client.get(f"/v1/at/{seq}/applications")).json()
            answer = await at(history, AtQuestion(moment=Moment(seq=seq), view="apps"))
            assert found["rows"] == [document(row) for row in answer.rows.by_view()["apps"]], seq
