"""The places where streams can be kept; a test that takes `place` runs once for each."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.events.places import Place

KINDS = ("memory", "sqlite", "kafka")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Return the name of an adapter."""
    return request.param


@pytest.fixture
async def another_place(
    kind: str, request: pytest.FixtureRequest, kafka_topic_name: str, tmp_path: Path
) -> AsyncIterator[Callable[[], Place]]:
    """Return a function that makes places, each different from the others."""
    made = 0
    async with AsyncExitStack() as stack:

        def make() -> Place:
            nonlocal made
            made += 1
            if kind == "memory":
                return Place(kind, f"memory://{kafka_topic_name}-{made}", stack)
            if kind == "sqlite":
                return Place(kind, f"sqlite://{tmp_path}/{made}.sqlite", stack)
            bootstrap = request.getfixturevalue("kafka_bootstrap")
            return Place(kind, f"kafka://{bootstrap}/{kafka_topic_name}-{made}", stack)

        yield make


@pytest.fixture
def place(another_place: Callable[[], Place]) -> Place:
    """Return a place with nothing in it."""
    return another_place()
