"""A cluster of two tenants with access lists: alice has root.prod, bob has root.test, and neither sees the other's."""

from __future__ import annotations

import hashlib

from events import vocabulary as v
from events.configuration import QueueSpec, YunikornSpec
from evsched.api.calls import Principal
from evsched.api.identity import AccessSettings, Identities, Named
from tests.replays.logs import taken

WHO = {
    "alice": Principal(subject="alice"),
    "bob": Principal(subject="bob"),
    "carol": Principal(subject="carol", groups=("auditors",)),
    "dave": Principal(subject="dave", groups=("ops",)),
    "mallory": Principal(subject="mallory"),
}
"""A tenant each, an auditor, an administrator, and one without any right."""

SECRETS = {
    "prod": {"root.prod", "prod", "prod-1", "prod-2", "alice"},
    "test": {"root.test", "test", "test-1", "test-2", "test-3", "test-4", "bob"},
}
"""Names that are foreign to the other tenant."""


def spec(bob="bob", maximum=9000):
    """Return the configuration; ``bob`` may submit to root.test."""
    test = QueueSpec(
        name="test", maximum={"vcore": maximum}, submit_acl=bob,
        properties={"quota.preemption.delay": "10s"},
    )  # fmt: skip
    prod = QueueSpec(
        name="prod", guaranteed={"vcore": 6000}, submit_acl="alice",
        properties={"preemption.delay": "5s"},
    )  # fmt: skip
    root = QueueSpec(name="root", parent=True, admin_acl=" ops", queues=(prod, test))
    return YunikornSpec(root=root, quota_preemption_enabled=True)


def pod(name, leaf, user):
    """Return an ask of a tenant."""
    return v.AskSubmitted(
        ask=name, application=leaf, queue=f"root.{leaf}", resources={"vcore": 2000}, user=user
    )


def steps():
    """Return the steps: prod takes from test, test's maximum is lowered, and carol's right to nothing changes."""
    smaller = v.NodeUpdated(node="n1", capacity={"vcore": 8000})
    history = [
        (0, [v.NodeRemoved(node="n2"), smaller], False),
        (0, [pod("test-1", "test", "bob"), pod("test-2", "test", "bob")], False),
        (1000, [pod("test-3", "test", "bob"), pod("test-4", "test", "bob")], False),
        (1000, [pod("prod-1", "prod", "alice")], False),
        (7000, [], False),
        (500, [v.AllocationReleased(allocation="test-4", reason="preempted")], False),
        (1000, [v.ConfigurationApplied(configuration=spec(maximum=2000))], False),
        (12_000, [pod("prod-2", "prod", "alice")], False),
        (1000, [], False),
    ]
    # The inbox is empty, as far as whoever proposes to this log can tell.
    return [(time, events, 0) for time, events, _ in taken(spec(), history)]


def identities():
    """Return tokens of all of them (each the name itself), and who is auditor."""
    settings = AccessSettings(tokens="tokens", audit=Named(groups=("auditors",)))
    hashed = {hashlib.sha256(name.encode()).hexdigest(): who for name, who in WHO.items()}
    return Identities(settings, hashed)


def bearer(name):
    """Return the headers with which somebody asks."""
    return {"authorization": f"Bearer {name}"}
