"""YuniKorn's addresses, of now and of any moment, as a client asks them."""

from __future__ import annotations

import asyncio
import json

import pytest
import pytest_asyncio

from events import vocabulary as v
from events.configuration import KueueSpec
from events.streams import open_log
from evsched.api.yunikorn.routes import READ
from evsched.api.yunikorn.streaming import event_lines
from tests.api.served import kept, served_over, serving, serving_steps
from tests.api.yunikorn.views import story, told, view_of
from tests.core.histories import START
from tests.replays.logs import sealed, taken

NAMES = {
    "partition": "default",
    "queue": "root.prod",
    "application": "spark",
    "node": "n1",
    "user": "ann",
    "state": "active",
}


@pytest_asyncio.fixture(name="client", scope="module", loop_scope="module")
async def client_of_story(tmp_path_factory):
    """Yield a client of a server over the small story."""
    async with serving_steps(told(), tmp_path_factory.mktemp("served")) as client:
        yield client


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("path", [path for path in READ if "group/" not in path])
async def test_every_route_answers_now_and_at_a_moment_for_ever(client, path):
    """Each route answers with JSON; at a seq the answer may be kept for ever, and an ETag that is known saves the bytes."""
    address = f"/ws/v1/{path.format(**NAMES)}"
    now = await client.get(address)
    assert now.status_code == 200, now.text
    assert now.headers["content-type"] == "application/json"
    assert now.headers["cache-control"] == "no-cache"
    assert "access-control-allow-origin" not in now.headers
    seq = client.served.past.tail.seq
    then = await client.get(f"/at/{seq}{address}")
    assert then.content == now.content
    assert "immutable" in then.headers["cache-control"]
    again = await client.get(f"/at/{seq}{address}", headers={"if-none-match": then.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


async def test_answers_travel_in_time(client, tmp_path):
    """At each moment the queues are those of the view of that moment; before the first configuration there is none."""
    found = story()
    for seq in (3, 12, 16):
        answer = await client.get(f"/at/{seq}/ws/v1/partition/default/queue/root.prod?subtree")
        with view_of(tmp_path / f"{seq}.db", found, seq) as view:
            expected = view.queue("default", "root.prod", subtree=True)
        assert answer.json()["currentPriority"] == expected.current_priority
        assert answer.json().get("pendingResource", {}) == expected.pending_resource
    none = await client.get("/at/0/ws/v1/clusters")
    assert (none.status_code, none.json()["message"]) == (404, "no configuration was applied yet")


async def test_a_time_is_answered_with_its_seq(client):
    """A time, and time before the end, redirect to the same address at the seq."""
    answer = await client.get("/at/-1m/ws/v1/partition/default/queues")
    assert answer.status_code == 307
    assert answer.headers["location"] == "/at/18/ws/v1/partition/default/queues"
    wrong = await client.get("/at/tomorrow/ws/v1/clusters")
    assert (wrong.status_code, wrong.json()["status_code"]) == (400, 400)
    ahead = await client.get("/at/99999/ws/v1/clusters")
    assert ahead.status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("partition/x/queues", 404, "Partition not found"),
        ("partition/default/queue/root.x", 404, "Queue not found"),
        ("partition/default/queue/root.%252F..%252F", 404, "Queue not found"),
        ("partition/default/node/%3Cscript%3E", 404, "Node not found"),
        ("partition/default/usage/user/zoe", 404, "User not found"),
        ("partition/default/applications/gone", 400, "Only following application states"),
        ("partition/default/applications/active?status=odd", 400, "Only following active"),
        ("partition/default/queue/root/applications/completed", 400, "Only following"),
        ("events/batch?count=0", 400, '0 is not a valid value for "count"'),
        ("events/batch?count=-1", 400, "invalid syntax"),
        ("events/batch?start=x", 400, "invalid syntax"),
    ],
)
async def test_errors_have_yunikorns_form(client, path, status, said):
    """An error is YuniKorn's document with the status of the answer; hostile names are data and nothing else."""
    answer = await client.get(f"/ws/v1/{path}")
    found = answer.json()
    assert (answer.status_code, found["status_code"]) == (status, status)
    assert said in found["message"]
    assert answer.headers["content-type"] == "application/json"


async def test_a_queue_is_found_by_an_escaped_name(client):
    """A name that is escaped, once or twice, is the same name."""
    for name in ("root%2Ebatch%2Etest", "root%252Ebatch%252Etest"):
        answer = await client.get(f"/ws/v1/partition/default/queue/{name}/applications")
        assert [one["applicationID"] for one in answer.json()] == ["app-batch.test", "late"]


async def test_the_configuration_is_yaml_or_json(client):
    """Without asking for JSON the configuration is YAML; both say the same to people and programs."""
    answer = await client.get("/ws/v1/config")
    assert answer.headers["content-type"].startswith("application/x-yaml")
    assert "deadlockdetectionenabled: false" in answer.text
    asked = await client.get("/ws/v1/config", headers={"accept": "application/json"})
    assert asked.json()["partitions"][0]["name"] == "default"


async def test_events_are_read_in_batches_without_gaps(client):
    """Ids count from 0 and go up to the last event; batch after batch a client sees each record once."""
    first = (await client.get("/ws/v1/events/batch?count=5")).json()
    last = client.served.past.tail.seq - 1
    assert (first["LowestID"], first["HighestID"]) == (0, last)
    assert len(first["EventRecords"]) == 5
    rest = (await client.get("/ws/v1/events/batch?start=5")).json()
    whole = (await client.get("/ws/v1/events/batch")).json()
    assert first["EventRecords"] + rest["EventRecords"] == whole["EventRecords"]
    assert len(whole["EventRecords"]) == last + 1
    released = next(one for one in whole["EventRecords"] if one.get("eventChangeDetail") == 500)
    assert (released["objectID"], released["referenceID"]) == ("done", "short")
    then = (await client.get("/at/5/ws/v1/events/batch")).json()
    assert (then["HighestID"], len(then["EventRecords"])) == (4, 5)


async def test_a_configuration_is_validated_without_being_applied(client):
    """A queues.yaml is allowed or refused with the reason, with status 200 either way; nothing changes."""
    good = "partitions: [{name: default, queues: [{name: root, submitacl: '*'}]}]"
    answer = await client.post("/ws/v1/validate-conf", content=good)
    assert (answer.status_code, answer.json()) == (200, {"allowed": True})
    answer = await client.post("/ws/v1/validate-conf", content=b"partitions: [{queues: 3}]")
    assert (answer.status_code, answer.json()["allowed"]) == (200, False)
    assert "queues.yaml" in answer.json()["reason"]
    answer = await client.post("/ws/v1/validate-conf", content=b"\xff\xfe")
    assert answer.json()["allowed"] is False
    answer = await client.post("/ws/v1/validate-conf", content=b"x" * 4_000_001)
    assert answer.status_code == 400


async def test_metrics_are_served_in_both_forms(client):
    """A scrape is plain text or OpenMetrics, as it is asked for, here and where YuniKorn has it."""
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "evsched_ready 1.0" in answer.text
    assert 'yunikorn_root_prod_queue_app{state="running"} 1.0' in answer.text
    there = await client.get("/ws/v1/metrics", headers={"accept": "application/openmetrics-text"})
    assert there.headers["content-type"].startswith("application/openmetrics-text")
    assert there.text.endswith("# EOF\n")


async def test_a_kueue_configuration_has_a_clear_problem(tmp_path):
    """Every route says of which format the configuration is and where to ask instead; its metrics are Kueue's."""
    applied = v.ConfigurationApplied(configuration=KueueSpec())
    async with serving_steps(taken(KueueSpec(), [(0, [applied], False)]), tmp_path) as client:
        answer = await client.get("/ws/v1/partition/default/queues")
        assert answer.status_code == 404
        assert "format kueue, expected yunikorn" in answer.json()["message"]
        metrics = (await client.get("/metrics")).text
    assert "kueue_pending_workloads" in metrics
    assert "yunikorn_" not in metrics


async def test_the_stream_has_the_last_records_and_every_new_one(tmp_path):
    """The first line is the log's id, then come as many of the last records as were asked for, then each new one, once."""
    records = sealed(told())
    url = f"sqlite://{tmp_path / 'log.db'}"
    await kept(records[:3], url)
    served = served_over(url, tmp_path)
    async with serving(url, tmp_path, served):
        before = served.past.tail.seq
        lines = event_lines(served, 2)
        found = [json.loads(await anext(lines))]
        found += [json.loads(line) for line in (await anext(lines)).splitlines()]
        assert found[0] == {"InstanceUUID": "log-of-a-test"}
        assert len(found) == 3
        log = open_log(url)
        for record in records[3:]:
            await log.append(record.data)
        await log.close()
        last = story()[-1].events[-1].seq
        async with asyncio.timeout(20):
            while len(found) - 3 < last - before:
                found += [json.loads(line) for line in (await anext(lines)).splitlines()]
        assert len(found) - 3 == last - before
        assert found[-1]["objectID"] == "n2"
        assert found[-1]["timestampNano"] == (START + 93_000) * 1_000_000
        served.past.tail.stop()
        await lines.aclose()


async def test_the_files_of_the_web_interface_are_served_from_the_same_origin(tmp_path):
    """Their first page has its base where it lies; nothing outside the folder is served, and our own policy stays elsewhere."""
    files = tmp_path / "web"
    (files / "assets").mkdir(parents=True)
    (files / "index.html").write_text('<html><base href="/"><script src="main.js"></script>')
    (files / "main.js").write_text("fetch('/ws/v1/clusters')")
    (tmp_path / "secret").write_text("no")
    url = f"sqlite://{tmp_path / 'log.db'}"
    await kept(sealed(told()), url)
    served = served_over(url, tmp_path)
    served.yunikorn_web = files
    async with serving(url, tmp_path, served) as client:
        page = await client.get("/yunikorn/")
        assert '<base href="/yunikorn/">' in page.text
        assert "'unsafe-inline'" in page.headers["content-security-policy"]
        assert (await client.get("/yunikorn/main.js")).text == "fetch('/ws/v1/clusters')"
        assert (await client.get("/yunikorn")).headers["location"] == "/yunikorn/"
        for path in ("/yunikorn/..%2Fsecret", "/yunikorn/%2e%2e/secret", "/yunikorn/none.js"):
            assert (await client.get(path)).status_code == 404
        other = await client.get("/ws/v1/clusters")
        assert "unsafe-inline" not in other.headers["content-security-policy"]
