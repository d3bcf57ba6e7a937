"""The rules that decide, one frozen value for each version.

A log outlives the code that wrote it. So the version of the rules in force is part of the log
(``LeaderStarted``, ``RulesAdopted``), and every constant and reading that decides is a field here:
whoever reads an old log decides by the values of its version. A released version never changes. A
correction is a new version, with a sentence in `Rules.changes` for those who consider adopting it.

Folds never look at rules, so a reader that does not know a version still knows the state. What an
event means to the state is fixed by its type: a constant that a fold needs is part of that meaning
(the grace time before an eviction is repeated, how many proposal ids are remembered). Should one
of those have to change, the event gains an optional field that carries it.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from events.errors import WrittenByNewer


class Rules(Struct, frozen=True, kw_only=True, gc=False):
    """Everything that decides and may differ between two logs.

    Attributes:
        version: 1, 2, 3, …
        record: Version of the record of the state that digests in the log cover
            (`evsched.core.snapshot`).
        changes: What this version decides otherwise than the one before, a sentence each.
        patience_ms: How long an ask waits for room that is being freed for others, before it may
            preempt elsewhere.
        ask_budget: Most candidates that are looked at for one ask, over all nodes. A plan found
            until then is still lawful and minimal; the event says that the search was cut.
        node_budget: Most candidates that are looked at on one node.
        nodes_in_vain: Once there is a plan, most nodes that are searched one after the other
            without finding a cheaper one.
        age_unit_ms: Between nodes, the ages of victims are compared in whole multiples of this.
        nominates: Whether an ask that fits into what evictions leave is promised that room, and waits
            for it as long as they are within their grace; False: it waits ``patience_ms``.
        raw_kept: How many characters of an unreadable proposal the log keeps.
        claim_at_start: (Kueue, fair sharing) Whether a ClusterQueue reclaims its nominal quota is
            asked once, before a search takes anything; False: before each victim anew, so that
            victims of its own queue count.
        keeps_victims: (Kueue) An ask in flight waits for the victims that it has, as long as they
            are enough. False: a cycle searches victims for it anew each time.
        cycle_budget: (Kueue) How much work one cycle may be: a queue that a search looks at counts
            1, a workload that is considered ``look_cost``. What is left goes on in the next step.
            0: no limit.
        look_cost: See ``cycle_budget``.
        skips_hopeless: (Kueue) A cycle passes over workloads that an earlier one looked at and for
            which neither room nor victims could be enough now.
        folds_tags: (YuniKorn) Whether a placement rule finds a tag whatever the case of its letters.
        node_rules: (YuniKorn) Whether taints of nodes, and what pods say of where they may run,
            decide (`evsched.core.node_rules`).
    """

    version: int
    record: int
    changes: tuple[str, ...]
    patience_ms: int
    ask_budget: int
    node_budget: int
    nodes_in_vain: int
    age_unit_ms: int
    nominates: bool
    raw_kept: int
    claim_at_start: bool
    keeps_victims: bool
    cycle_budget: int
    look_cost: int
    skips_hopeless: bool
    folds_tags: bool
    node_rules: bool


_FIRST = Rules(
    version=1,
    record=1,
    changes=("The rules of 0.1.0; a log that names none was decided by them.",),
    patience_ms=1_000,
    ask_budget=50_000,
    node_budget=5_000,
    nodes_in_vain=64,
    age_unit_ms=3_600_000,
    nominates=False,
    raw_kept=1024,
    claim_at_start=False,
    keeps_victims=False,
    cycle_budget=0,
    look_cost=32,
    skips_hopeless=False,
    folds_tags=False,
    node_rules=False,
)

_SECOND = replace(
    _FIRST,
    version=2,
    record=2,
    changes=(
        (
            "YuniKorn: an ask that fits into room that is being freed for others is nominated to it. It"
            " evicts nothing as long as those evictions are within their grace (before: for 1 s), and"
            " nothing else is promised that room."
        ),
        (
            "Kueue, fair sharing: a ClusterQueue reclaims its nominal quota, without regard to shares,"
            " only where the workload fits into it before anything of its own is preempted. A victim"
            " elsewhere that follows one of its own is preempted for InCohortFairSharing, as by Kueue."
        ),
        (
            "Kueue: an ask that preempts waits for the victims that it has, as long as they are"
            " enough, instead of choosing anew in each cycle."
        ),
        (
            "Kueue: a cycle that would be long goes on in the next step, after the inputs that came"
            " meanwhile; workloads of higher priority have their turn first."
        ),
        (
            "Kueue: after something ended, only workloads are looked at again for which room or victims"
            " could be enough; those behind them in their queues need not wait a cycle for each."
        ),
        (
            "YuniKorn: a placement rule by tag finds the tag whatever the case of its letters, as"
            " YuniKorn does."
        ),
        (
            "YuniKorn: taints and tolerations, node selectors, required node affinity and anti-affinity"
            " over the hostname decide where a pod may run, in logs that say them."
        ),
        "Digests also cover the order of reservations, quota runs, dynamic queues and failed asks.",
    ),
    nominates=True,
    claim_at_start=True,
    keeps_victims=True,
    cycle_budget=3_000,
    skips_hopeless=True,
    folds_tags=True,
    node_rules=True,
)

_VERSIONS = (_FIRST, _SECOND)

RULES: dict[int, Rules] = {rules.version: rules for rules in _VERSIONS}
"""Every version that this release decides by."""

FIRST = _VERSIONS[0].version
"""The rules of a log that names none."""

NEWEST = _VERSIONS[-1].version
"""The last of them."""


def rules_of(version: int) -> Rules:
    """Return the rules of a version.

    Raises:
        WrittenByNewer: This release does not know them, so it cannot decide.
    """
    found = RULES.get(version)
    if found is None:
        raise WrittenByNewer(
            f"rules {version} are in force, this release knows {FIRST} to {NEWEST}"
        )
    return found
