"""What all tests share: a real Kafka, names for its topics, the scenarios that lie beside the repository, hypothesis profiles.

Scenarios: `../shared/cases` is no part of a clone. Where it is absent, the tests that want it are
not collected; in CI (`CI=true`) its absence is a failure. A test that takes the argument
`shared_case` runs once for each file of the folders that its marker names:

    @pytest.mark.cases("yunikorn/designed")
    def test_agrees(shared_case: Path) -> None: ...
"""

import gc
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.examples import load_profile
from tests.kafka.broker import GivenBroker, KafkaBroker, own_broker, shared_broker
from tests.kafka.guarded import GuardedBroker, guarded_broker

SHARED = Path(__file__).resolve().parents[2] / "shared"
_LOSES = {"guarded", "mortal_kafka"}
"""What a test asks for whose connections are refused or cut off."""
_WANTS_SHARED = {"shared_folder", "shared_cases", "shared_case"}

load_profile()


# --- Kafka ----------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def kafka_broker() -> Iterator[KafkaBroker | GivenBroker]:
    """Return a running Apache Kafka that all tests of this process share; nobody may kill it."""
    broker = shared_broker()
    yield broker
    broker.stop()


@pytest.fixture(scope="session")
def kafka_bootstrap(kafka_broker: KafkaBroker | GivenBroker) -> str:
    """Return the shared broker's address, host:port."""
    return kafka_broker.bootstrap


@pytest.fixture(scope="session")
def guarded() -> Iterator[GuardedBroker]:
    """Return a shared broker with a door for each way of proving who one is (`tests.kafka.guarded`); it is not killed."""
    made = guarded_broker()
    yield made
    made.broker.stop()


@pytest.fixture
def guarded_kafka(guarded: GuardedBroker) -> KafkaBroker:
    """Return the same, at the address where it demands a password and checks rights."""
    return guarded.broker


@pytest.fixture(scope="session")
def _mortal_kafka() -> Iterator[KafkaBroker]:
    """Return the broker of `mortal_kafka`."""
    broker = own_broker()
    yield broker
    broker.stop()


@pytest.fixture
def mortal_kafka(_mortal_kafka: KafkaBroker) -> KafkaBroker:
    """Return a running broker that may be killed; the next test that asks for it finds it running again, with its data."""
    _mortal_kafka.start()
    return _mortal_kafka


@pytest.fixture
def kafka_topic_name(request: pytest.FixtureRequest) -> str:
    """Return a name for a topic, of this test and this run alone, legal as part of longer names too."""
    return f"{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())[:60].strip('-')}-{uuid.uuid4().hex[:8]}"


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Collect what such a test left open while it is still known whose it was: a warning about it is a failure."""
    if item.get_closest_marker("serial") or _LOSES & set(getattr(item, "fixturenames", ())):
        gc.collect()


# --- what lies beside the repository --------------------------------------------------------------


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """Return the folder beside the repository with scenarios, traces and tools."""
    return SHARED


@pytest.fixture(scope="session")
def shared_cases() -> Path:
    """Return the folder with the scenario files."""
    return SHARED / "cases"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker of the scenario tests."""
    config.addinivalue_line(
        "markers", "cases(folder, ...): folders of ../shared/cases, each file a `shared_case`"
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes `shared_case` once for each file of the folders that its marker `cases` names."""
    if "shared_case" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("cases")
    if marker is None:
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: takes shared_case, so it wants a marker cases(folder, ...)"
        )
    files = [
        file
        for folder in marker.args
        for file in sorted((SHARED / "cases" / folder).rglob("*.json"))
    ]
    if not files and (SHARED / "cases").is_dir():
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: no scenario in {', '.join(marker.args)} of {SHARED / 'cases'}"
        )
    metafunc.parametrize("shared_case", files, ids=[file.stem for file in files])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that want the folder beside the repository where it is absent; in CI, refuse to run."""
    if SHARED.is_dir():
        return
    absent = [item for item in items if _WANTS_SHARED & set(getattr(item, "fixturenames", ()))]
    if absent and os.environ.get("CI") == "true":
        raise pytest.UsageError(
            f"{SHARED}: absent, but {len(absent)} tests want it and this is CI (CI=true)"
        )
    items[:] = [item for item in items if item not in absent]
    config.hook.pytest_deselected(items=absent)
