"""What an explanation is made of: why each workload was spared, and which limit holds at which level."""

from tests.core.kueue.plain import Partition, asks, cohort, queue, runs


class Notes:
    """Keeps what it is told: codes by subject, and the facts of each."""

    def __init__(self):
        """Start with nothing heard."""
        self.heard = []

    def wants(self, ask):
        """Hear of every ask."""
        return True

    def note(self, subject, code, **facts):
        """Keep a note."""
        self.heard.append((subject, code, facts))

    def codes(self, subject):
        """Return the codes about a subject, in order."""
        return [code for one, code, _ in self.heard if one == subject]

    def facts(self, subject, code):
        """Return the facts of the first note with this code."""
        return next(facts for one, found, facts in self.heard if (one, found) == (subject, code))


def heard(partition, *inputs):
    """Return what a tracer hears of a step."""
    partition.engine.tracer = notes = Notes()
    partition.does(*inputs)
    return notes


def test_every_workload_of_the_tree_says_why_it_is_spared():
    """By priority, as its queue or cohort stays within its quota, as it uses nothing contested; or it is a candidate."""
    mine = queue(
        "mine",
        "team",
        cpu=6,
        memory=9,
        within_cluster_queue="LowerPriority",
        reclaim_within_cohort="LowerPriority",
    )
    kept = cohort("kept", "team", cpu=4)
    partition = Partition(
        mine,
        queue("over", "team", cpu=0),
        queue("under", "team", cpu=3),
        queue("low", "kept", cpu=0),
        cohorts=(kept,),
    )
    partition.does(
        runs("high", "mine", 5, cpu=1), runs("idle", "mine", memory=1), runs("own", "mine", cpu=1),
        runs("theirs", "over", cpu=4), runs("strong", "over", 5, cpu=1),
        runs("modest", "under", cpu=1), runs("sheltered", "low", cpu=4),
    )  # fmt: skip
    notes = heard(partition, asks("ask", "mine", 3, cpu=3))
    assert notes.codes("high") == ["withinClusterQueue-priority"]
    assert notes.codes("idle") == ["uses-nothing-contested"]
    assert notes.codes("own")[0] == "candidate"
    assert notes.codes("theirs") == ["candidate"]
    assert notes.codes("strong") == ["reclaimWithinCohort-priority"]
    assert notes.codes("modest") == ["queue-within-nominal"]
    assert notes.codes("sheltered") == ["cohort-within-nominal"]
    assert notes.codes("ask") == ["flavor", "quota", "preempt"]


def test_the_limit_that_holds_is_named_with_its_level():
    """A borrowing limit of the queue, or the quota of the tree's top."""
    partition = Partition(
        queue("q", "team", cpu=(2, 1, None), within_cluster_queue="LowerPriority"),
        queue("o", "team", cpu=9),
    )
    partition.does(runs("x", "q", cpu=2))
    notes = heard(partition, asks("ask", "q", cpu=2))
    assert notes.facts("ask", "borrowing-limit")["queue"] == "q"
    partition = Partition(
        queue("q", "team", cpu=2, within_cluster_queue="LowerPriority"), queue("o", "team", cpu=1)
    )
    partition.does(runs("x", "q", cpu=2))
    notes = heard(partition, asks("ask", "q", cpu=2))
    assert notes.facts("ask", "quota") == {
        "queue": "cohort/team",
        "resource": "cpu",
        "used": 2,
        "quota": 3,
        "asked": 2,
    }


def test_a_tracer_changes_no_decision():
    """The same step with and without one gives the same events."""
    ends = []
    for tracer in (None, Notes()):
        partition = Partition(queue("q", cpu=4, within_cluster_queue="LowerPriority"))
        partition.engine.tracer = tracer
        partition.does(runs("a", "q", cpu=2), runs("b", "q", cpu=2))
        ends.append(partition.does(asks("ask", "q", 1, cpu=4)))
    assert ends[0] == ends[1]
