"""What the translation of objects goes by: the names of the log, and what other objects say."""

from __future__ import annotations

from msgspec import Struct, field

from evsched.agents.kubernetes.masking import Masking

ALLOW_PREEMPTION = "yunikorn.apache.org/allow-preemption"
"""Annotation of YuniKorn, on pods and on priority classes: ``false`` asks to be spared."""


class Reading(Struct, kw_only=True):
    """The names of the log, and what is known of objects that pods refer to.

    Attributes:
        masking: Names that are not wanted in the log.
        cpu: The log's name for ``cpu``: ``vcore`` where the configuration is a queues.yaml.
        spared: Priority classes whose pods ask to be spared.
        quotas: Namespace to the tags that YuniKorn makes of its annotations.
        workloads: The uid of each Workload of Kueue to its task, as Kueue names a preemptor by uid.
    """

    masking: Masking
    cpu: str = "vcore"
    spared: set[str] = field(default_factory=set)
    quotas: dict[str, dict[str, str]] = field(default_factory=dict)
    workloads: dict[str, str] = field(default_factory=dict)

    def named(self, amounts: dict[str, int]) -> dict[str, int]:
        """Return amounts by the log's names, in the order of these, so that equal ones are written equally."""
        return dict(
            sorted(
                (self.cpu if name == "cpu" else name, amount) for name, amount in amounts.items()
            )
        )
