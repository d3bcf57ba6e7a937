"""The API does what its documents say: no other status, no other form, and no fault whatever is asked."""

from __future__ import annotations

import asyncio
import json
import resource
import threading
from contextlib import contextmanager
from random import Random
from urllib.parse import parse_qsl

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from events.vocabulary import AnyEvent
from evsched.api import documents
from evsched.api.app import OPERATIONS
from evsched.api.problems import PROBLEM_TYPES
from tests.api.served import kept, listening, serving_steps
from tests.replays.logs import sealed, story

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_the_documents_are_those_of_the_operations():
    """`python -m evsched.api.documents` makes them anew."""
    for name, data in documents.written().items():
        assert (documents.FOLDER / name).read_bytes() == data, name


def test_everything_is_described():
    """Every operation with each of its parameters, every problem, every type of event."""
    found = documents.openapi()
    described = {
        one["operationId"]: one for path in found["paths"].values() for one in path.values()
    }
    assert set(described) == {one.name for one in OPERATIONS}
    for one in described.values():
        assert all(parameter["description"] for parameter in one["parameters"])
        assert {"401", "403", "503"} <= set(one["responses"])
    named = json.dumps(found)
    assert [name for name, kind in PROBLEM_TYPES.items() if kind.title not in named] == [
        "method-not-allowed"
    ]
    messages = documents.asyncapi()["components"]["messages"]
    assert set(messages) == {kind.__name__ for kind in AnyEvent.__args__}


async def test_the_documents_are_served(tmp_path):
    """As they lie in the package."""
    async with serving_steps(story(), tmp_path) as client:
        for name, data in documents.written().items():
            assert (await client.get(f"/v1/{name}")).content == data


@contextmanager
def elsewhere(folder):
    """Run a server of the story in a thread of its own and yield its address."""
    url = f"sqlite://{folder / 'log.db'}"
    started, done = threading.Event(), threading.Event()
    found = []

    async def serve():
        # The inbox is empty, as far as whoever proposes to this log can tell.
        await kept(sealed([(time, events, 0) for time, events, _ in story()]), url)
        async with listening(url, folder) as (address, _):
            found.append(address)
            started.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert started.wait(20)
        yield found[0]
    finally:
        done.set()
        thread.join()


def test_requests_made_from_the_document_are_answered_as_it_says(tmp_path):
    """Valid ones and others, of every operation; the stream of events in its forms that end."""
    with elsewhere(tmp_path) as address:
        schema = schemathesis.openapi.from_url(f"{address}/v1/openapi.json")
        for found in schema.get_all_operations():
            ask(found.ok())


ENDLESS = {"/v1/events": "form=ndjson&follow=false", "/v1/log/stream": "until=0"}
"""Streams that go on, and how they are asked for so that they end."""


def ask(operation):
    """Send some requests that the document allows, and compare the answers with it."""

    @settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
    @given(case=operation.as_strategy())
    def sent(case):
        ending = dict(parse_qsl(ENDLESS.get(case.operation.path, "")))
        case.query = {**(case.query or {}), **ending}
        case.call_and_validate(checks=CHECKS, timeout=20)

    sent()


def mutated(dice):
    """Return a request that somebody may send by mistake, or not by mistake."""
    operation = dice.choice(OPERATIONS)
    path = operation.path
    for name in ("moment", "view", "key:path", "subject:path", "name", "id"):
        path = path.replace(f"{{{name}}}", dice.choice(PIECES))
    query = "&".join(
        f"{dice.choice(NAMES)}={dice.choice(PIECES)}" for _ in range(dice.randint(0, 3))
    )
    body = bytearray(dice.choice(BODIES))
    for _ in range(dice.randint(0, 3)):
        if body:
            body[dice.randrange(len(body))] = dice.randrange(256)
    headers = {
        dice.choice(HEADERS): dice.choice(PIECES),
        "content-type": dice.choice(["application/json", "application/yaml", "text/plain", ""]),
    }
    address = f"{path}?{query}" if query else path
    if operation.path in ENDLESS:
        address += f"{'&' if query else '?'}{ENDLESS[operation.path]}"
    return dice.choice(["GET", "POST", operation.method]), address, headers, bytes(body)


PIECES = [
    "20", "0", "-1", "99999999999999999999999", "latest", "start", "-15m", "-1e9h", "2026-01-01", "asks", "queues", "config",
    "root.test", "test-1",
    "x" * 3000, "%00", "%ff", "%2e%2e%2f", "..", "a%0d%0ab", "'; DROP TABLE asks", "true", "null", "1.5", "",
]  # fmt: skip
NAMES = [
    "queue", "application", "node", "after", "limit", "from", "to", "until", "types", "form", "expression", "views", "at", "of",
    "wait", "colour", "start", "end", "buckets", "lanes", "scale",
]  # fmt: skip
HEADERS = ["last-event-id", "accept", "idempotency-key", "if-none-match", "x-odd", "authorization"]
BODIES = [
    b"", b"{", b"{}", b"[]", b"null", b'{"sql":"SELECT * FROM asks"}', b'{"sql":"SELECT 1","limit":1e99}', b"partitions: 7",
    b'{"type":"AskSubmitted","ask":"a","queue":"root.test","resources":{"vcore":1}}', b'{"type":"NodeRemoved","node":"n1"}',
    b"[" * 5000,
    b'{"document":"a: &a [*a]"}', b'{"rules":2}', b"\xff\xfe", b'{"from":"' + b"9" * 400 + b'"}',
]  # fmt: skip


async def sent(tmp_path, count, seed):
    """Send so many mutated requests and return how often each status was the answer."""
    dice = Random(seed)
    seen: dict[int, int] = {}
    async with serving_steps(story(), tmp_path) as client:
        for _ in range(count):
            method, address, headers, body = mutated(dice)
            try:
                request = client.build_request(method, address, headers=headers, content=body)
            except httpx.InvalidURL:
                continue
            found = await client.send(request)
            seen[found.status_code] = seen.get(found.status_code, 0) + 1
            assert found.status_code != 500, (method, address, headers, body)
            assert "Traceback" not in found.text
            if found.status_code >= 400 and not address.startswith("/ws"):
                assert found.json()["type"].startswith("/v1/problems/"), (address, found.text)
        assert (await client.get("/readyz")).status_code == 200
    return seen


async def test_mutated_requests_find_no_fault(tmp_path):
    """Each is answered, by a problem where it is at fault, and the server goes on."""
    seen = await sent(tmp_path, 400, 1)
    assert {200, 400, 404, 415} <= set(seen), seen


@pytest.mark.fuzz
async def test_ten_thousand_mutated_requests_find_no_fault(tmp_path):
    """And memory does not grow with them."""
    (tmp_path / "first").mkdir()
    await sent(tmp_path / "first", 1000, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (tmp_path / "then").mkdir()
    await sent(tmp_path / "then", 10_000, 3)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 100_000, f"{grown} kB"
