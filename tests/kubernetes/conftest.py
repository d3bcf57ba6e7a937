"""The cluster that the tests of one run share: a control plane of their own, or the one of ``EVSCHED_TEST_KUBECONFIG``."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

GIVEN = "EVSCHED_TEST_KUBECONFIG"


@pytest.fixture(scope="session")
def control_plane() -> Iterator[object]:
    """Return a running cluster; each test uses a namespace and nodes of its own."""
    # lightkube comes with an extra, and whoever runs none of these tests need not have it.
    from tests.kubernetes.api import GivenCluster  # noqa: PLC0415
    from tests.kubernetes.controlplane import ControlPlane  # noqa: PLC0415

    if os.environ.get(GIVEN):
        plane = GivenCluster(Path(os.environ[GIVEN]))
        yield plane
        plane.stop()
        return
    plane = ControlPlane()
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


@pytest.fixture
async def world(control_plane):
    """Return a world with three nodes that nothing records yet."""
    from tests.kubernetes.world import World  # noqa: PLC0415 - as above

    made = World(control_plane)
    try:
        await made.open(nodes=3)
        yield made
    finally:
        await made.close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out, on a cluster that is given, the tests that stop its API server or cut the way to it."""
    if not os.environ.get(GIVEN):
        return
    own = [item for item in items if item.get_closest_marker("own_control_plane")]
    items[:] = [item for item in items if item not in own]
    config.hook.pytest_deselected(items=own)
