"""The temporal tables of a read model, as `sql/schema.sql` has them."""

from __future__ import annotations

from projections.temporal import Temporal


class Tables:
    """One table each; the first column of each is its key."""

    def __init__(self) -> None:
        """Begin with nothing in them."""
        self.configurations = Temporal(
            "configurations",
            ("format", "configuration", "document", "proposal", "source", "actor", "message"),
        )
        self.queues = Temporal(
            "queues",
            ("queue", "parent", "place", "leaf", "dynamic", "draining", "max_applications", "guaranteed", "maximum", "nominal",
             "borrowing_limit", "lending_limit", "quota", "weight_nano", "lendable"),
        )  # fmt: skip
        self.user_limits = Temporal(
            "user_limits",
            ("user_limit", "queue", "kind", "name", "place", "maximum", "max_applications"),
        )
        self.usage = Temporal(
            "queue_usage",
            ("queue", "usage", "pending", "preempting", "pending_asks", "allocations", "applications"),
        )  # fmt: skip
        self.totals = Temporal("queue_totals", ("queue", "usage", "pending"))
        self.nodes = Temporal("nodes", ("node", "capacity", "labels", "schedulable"))
        self.applications = Temporal(
            "applications", ("application", "queue", "user", "groups", "created"), forked=True
        )
        self.asks = Temporal(
            "asks",
            ("ask", "application", "queue", "resources", "priority", "created", "required_node", "outcome"),
            forked=True,
        )  # fmt: skip
        self.attempts = Temporal(
            "attempts", ("ask", "first_cycle", "preempted", "failed"), forked=True
        )
        self.allocations = Temporal(
            "allocations",
            ("allocation", "application", "queue", "node", "resources", "priority", "created", "bound",
             "eviction_requested", "victim_of", "quota_of", "outcome"),
            forked=True,
        )  # fmt: skip
        self.reservations = Temporal("reservations", ("ask", "node"), forked=True)
        self.timers = Temporal("timers", ("timer", "due", "kind", "subject", "cause"), forked=True)
        self.pauses = Temporal(
            "pauses", ("application", "queue", "until", "asks", "threshold", "outcome")
        )
        self.temporal = (
            self.configurations, self.queues, self.user_limits, self.usage, self.totals, self.nodes, self.applications, self.asks,
            self.attempts, self.allocations, self.reservations, self.timers, self.pauses,
        )  # fmt: skip
