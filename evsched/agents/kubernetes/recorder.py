"""Works out what to propose so that the log says what the cluster is; without any I/O.

The recorder is told what the log says and what the cluster shows, in whatever order both arrive,
and answers with the inputs that lead from the one to the other. It compares states and follows no
sequence of changes. So a change that comes twice, an object that is listed again and a start from
nothing but the log are all the same to it.

What cannot be said yet is kept: a pod whose node the log does not know waits for the node, and what
was refused is worked out anew when the log has changed its mind about it, once. An id names kind,
version, uid and what is said, so that the same proposal sent twice is recognised as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from events.configuration import Configuration
from events.vocabulary import (
    AllocationReleased,
    AnyEvent,
    AnyInput,
    ConfigurationApplied,
    InputRejected,
    ObservationGap,
    RulesAdopted,
)
from evsched.agents.kubernetes import nodes
from evsched.agents.kubernetes.logged import NODE, SOURCE, TASK, Entity, LoggedCluster
from evsched.agents.kubernetes.nodes import TAINTS_DECIDE, NodeFacts, SeenNode
from evsched.agents.kubernetes.objects import NODES, PODS
from evsched.agents.kubernetes.steps import DEFAULT_CONFIGURATION, DELETED, end_of, task_steps
from evsched.agents.kubernetes.tasks import SeenTask


class Listing(Struct, frozen=True, kw_only=True):
    """All objects of a kind, as they were at one version.

    Attributes:
        before: The version up to which the watch had told everything; empty: there was none.
        reason: Why they were listed (again).
    """

    kind: str
    version: str
    objects: tuple[SeenNode | SeenTask, ...]
    before: str = ""
    reason: str = ""


class Recorder:
    """What is to be proposed.

    Attributes:
        view: What the log says.
        stuck: What the log refuses to take, with its reason, by name.
        doubtful: Why nodes and pods have to be listed again; empty: they need not be. Whoever lists
            them empties it.
    """

    def __init__(self, tasks: str = PODS.name) -> None:
        """Know nothing of the log or the cluster.

        Args:
            tasks: The kind of object that asks for resources: ``Pod``, or ``Workload`` with Kueue.
        """
        self._kinds = {NODE: NODES.name, TASK: tasks}
        self.view = LoggedCluster()
        self.stuck: dict[Entity, str] = {}
        self.doubtful = ""
        self._begun = False
        self._sent_ids: set[str] = set()
        self._lost_nodes: set[str] = set()
        self._nodes_version = 0
        self._kept: dict[Entity, SeenNode | SeenTask] = {}
        self._homeless: dict[str, set[str]] = {}
        self._refused_once: set[Entity] = set()
        self._marks: dict[Entity, int] = {}
        """The ``seq`` after which something is said again, which sets its id apart from the first time."""

    # ---------------------------------------------------------------------------- what the log says

    def take(self, event: AnyEvent) -> list[AnyInput]:
        """Take one event of the log; return what it makes necessary."""
        if isinstance(event, AllocationReleased) and event.cause:
            self._taken_along(event)
        self.view.take(event)
        if event.cause == 0:
            self._settle(event)
            self._recognise(event)
        match event:
            case InputRejected(input=refused) if event.source == SOURCE and refused is not None:
                return self._refused(event, refused)
            case ConfigurationApplied() if self.stuck:
                # A queue that was missing may be there now.
                again, self.stuck = tuple(self.stuck), {}
                self._marks |= dict.fromkeys(again, event.seq)
                return [step for subject in again for step in self._again(subject)]
            case RulesAdopted() if self._begun and event.rules == TAINTS_DECIDE:
                # A cordon is said in another way from here on.
                self.doubtful = f"rules {event.rules} were adopted"
                return []
            case _:
                return []

    def _taken_along(self, event: AllocationReleased) -> None:
        """Note a task that the log ended with its node, which its pod may outlive.

        Where the node is there again already, the lists since then were compared with a log that had
        not ended the task yet.
        """
        self._marks[Entity(TASK, event.allocation)] = event.seq
        if self.view.task(event.allocation) is not None:
            self.doubtful = f"{event.allocation} ended with a node that came back"

    def _settle(self, event: AnyEvent) -> None:
        """Forget an object of which the log says all that was proposed."""
        subject = None if isinstance(event, InputRejected) else _about(event)
        if subject is None or self.view.awaits(*subject):
            return
        self._refused_once.discard(subject)
        self._marks.pop(subject, None)
        seen = self._kept.get(subject)
        if seen is not None and not self._is_homeless(seen):
            del self._kept[subject]

    def _recognise(self, event: AnyEvent) -> None:
        """Doubt the last lists when the log takes what this recorder has not sent.

        An earlier one had proposed it, and it lay in the inbox while this one compared the lists with
        a log without it.
        """
        proposal = getattr(event, "proposal", "")
        if not self._begun or getattr(event, "source", "") != SOURCE or not proposal:
            return
        if proposal in self._sent_ids:
            self._sent_ids.discard(proposal)
        elif _about(event) is not None and not isinstance(event, InputRejected):
            self.doubtful = "an earlier agent's proposal was taken late"

    def _refused(self, event: InputRejected, refused: AnyInput) -> list[AnyInput]:
        """Work out anew what was refused: the log was not what it seemed when it was proposed.

        What is refused a second time, although the log's word on it has been read, is stuck until the
        object or the configuration changes.
        """
        subject = _about(refused)
        if subject is None or self.view.awaits(*subject) or subject not in self._kept:
            return []
        if subject in self._refused_once:
            self.stuck[subject] = event.reason
            return []
        self._refused_once.add(subject)
        self._marks[subject] = event.seq
        return self._again(subject)

    def _again(self, subject: Entity) -> list[AnyInput]:
        seen = self._kept.get(subject)
        return [] if seen is None else list(self._lead_to(subject, seen))

    # ----------------------------------------------------------------------- what the cluster shows

    def begin(self, *, has_queues: bool = False) -> list[AnyInput]:
        """Begin where the log ends; return what has to stand before everything else.

        That is a configuration where the log has none.

        Args:
            has_queues: The cluster holds a configuration, so none has to be made up.
        """
        self._begun = True
        if has_queues or self.view.configuration is not None:
            return []
        return [self.configured(DEFAULT_CONFIGURATION, "", "default")]

    def configured(self, found: Configuration, document: str, mark: str) -> ConfigurationApplied:
        """Return a configuration that the cluster holds, as a proposal.

        Args:
            found: As it was read.
            document: Its text.
            mark: Of the object that held it: kind, version and uid.
        """
        proposal = f"{SOURCE}:{mark}:configuration"
        return ConfigurationApplied(configuration=found, document=document, proposal=proposal)

    def listed(self, listing: Listing) -> list[AnyInput]:
        """Return what leads from the log to a whole list, behind the gap that it closes.

        The first list of a log closes the one that began before the log did: from its version on
        the record is complete.
        """
        kind = NODE if listing.kind == NODES.name else TASK
        subjects = {Entity(kind, _name(seen)): seen for seen in listing.objects}
        known = {Entity(kind, name) for name in self.view.names(kind)}
        steps: list[AnyInput] = []
        differing = 0
        for subject, seen in subjects.items():
            found = self.saw(seen)
            steps += found
            differing += bool(found) and subject in known
        vanished = 0
        for subject in sorted((known | set(self._kept)) - set(subjects)):
            if subject.kind == kind:
                found = list(self._gone(subject, listing.version))
                steps += found
                vanished += bool(found)
        if kind == NODE:
            self._nodes_version = max(self._nodes_version, _number(listing.version))
            steps += self._review()
        before = listing.before or str(self.view.versions.get(listing.kind, ""))
        if before == listing.version:
            return steps
        appeared = len(set(subjects) - known)
        gap = ObservationGap(
            kind=listing.kind,
            before=before,
            after=listing.version,
            listed=len(subjects),
            appeared=appeared,
            changed=differing,
            vanished=vanished,
            reason=listing.reason,
            proposal=f"{SOURCE}:{listing.kind}:{listing.version}:{before}:gap",
        )
        return [gap, *steps]

    def saw(self, seen: SeenNode | SeenTask) -> list[AnyInput]:
        """Return what leads from the log to an object as it was seen."""
        subject = Entity(NODE if isinstance(seen, SeenNode) else TASK, _name(seen))
        self.stuck.pop(subject, None)
        self._refused_once.discard(subject)
        steps = list(self._lead_to(subject, seen))
        if isinstance(seen, SeenNode):
            self._came_or_went(seen.name, there=seen.facts is not None)
            self._nodes_version = max(self._nodes_version, _number(seen.version))
            steps += self._review()
        return steps

    def _came_or_went(self, node: str, *, there: bool) -> None:
        """Note a node that is gone. When it comes back, pods may still be bound to it that the log has ended with it."""
        if not there:
            self._lost_nodes.add(node)
        elif node in self._lost_nodes:
            self._lost_nodes.discard(node)
            self.doubtful = f"node {node} came back"

    # ------------------------------------------------------------------------------ the differences

    def _lead_to(self, subject: Entity, seen: SeenNode | SeenTask) -> Iterator[AnyInput]:
        """Yield, as proposals, what leads from what is known to what was seen; it counts as sent."""
        if isinstance(seen, SeenNode):
            made: Iterable[AnyInput] = self._node(seen.name, seen.facts)
        else:
            if self._is_homeless(seen):
                self._homeless.setdefault(seen.node, set()).add(seen.task)
            made = task_steps(self.view, seen, is_lost=self._is_lost(seen))
        mark = f"{SOURCE}:{self._kinds[subject.kind]}:{seen.version}:{seen.uid}"
        yield from self._sent(made, mark, self._marks.get(subject, 0))
        if isinstance(seen, SeenTask) and seen.stage == "over":
            self._marks.pop(subject, None)
        # Only what is under way or has no node yet is kept; everything else the log says.
        if self.view.awaits(*subject) or self._is_homeless(seen):
            self._kept[subject] = seen
        else:
            self._kept.pop(subject, None)

    def _gone(self, subject: Entity, version: str) -> Iterator[AnyInput]:
        """Yield what leads from what is known to nothing, for what a list no longer holds."""
        self._kept.pop(subject, None)
        self.stuck.pop(subject, None)
        self._marks.pop(subject, None)
        if subject.kind == NODE:
            self._came_or_went(subject.name, there=False)
            made: Iterable[AnyInput] = self._node(subject.name, None)
            # The log does not keep the uid of a node, and a name may be too long for an id.
            uid = blake2b(subject.name.encode(), digest_size=8).hexdigest()
        else:
            known = self.view.task(subject.name)
            if known is None or not known.ours:
                return
            made, uid = (end_of(subject.name, known, DELETED),), known.uid
        yield from self._sent(made, f"{SOURCE}:{self._kinds[subject.kind]}:{version}:{uid}", 0)

    def _node(self, name: str, facts: NodeFacts | None) -> Iterable[AnyInput]:
        return nodes.steps(name, self.view.node(name), facts, by_taints=self._by_taints)

    @property
    def _by_taints(self) -> bool:
        return self.view.rules >= TAINTS_DECIDE

    def _sent(self, made: Iterable[AnyInput], mark: str, after: int) -> Iterator[AnyInput]:
        """Yield inputs with their ids, and expect each before the next is worked out."""
        again = f":{after}" if after else ""
        for number, step in enumerate(made):
            proposed = replace(step, proposal=f"{mark}:{type(step).__name__}{number or ''}{again}")
            self.view.expect(proposed)
            self._sent_ids.add(proposed.proposal)
            yield proposed

    def _is_homeless(self, seen: SeenNode | SeenTask) -> bool:
        return (
            isinstance(seen, SeenTask)
            and bool(seen.node)
            and seen.stage == "bound"
            and self.view.node(seen.node) is None
        )

    def _is_lost(self, seen: SeenTask) -> bool:
        """Tell whether the node of a homeless pod is gone, and not one that nothing was heard of yet.

        Versions of pods and nodes count the same changes: what was bound before a version up to
        which all nodes are known was bound to one that is gone by then.
        """
        return seen.node in self._lost_nodes or _number(seen.version) <= self._nodes_version

    def _review(self) -> list[AnyInput]:
        """Return what can be said, after news of nodes, of the pods whose node was not known."""
        steps: list[AnyInput] = []
        for node, tasks in sorted(self._homeless.items()):
            del self._homeless[node]
            for task in sorted(tasks):
                # Those that have no home yet enter themselves again.
                steps += self._again(Entity(TASK, task))
        return steps


def _number(version: str) -> int:
    """Return a resourceVersion as the number that it is; what is none is before all others."""
    return int(version) if version.isdigit() else 0


def _name(seen: SeenNode | SeenTask) -> str:
    return seen.name if isinstance(seen, SeenNode) else seen.task


def _about(proposed: AnyEvent) -> Entity | None:
    """Return what a proposal of ours was about: a node or a task; None: something else."""
    node, task = getattr(proposed, "node", None), getattr(proposed, "ask", "")
    task = task or getattr(proposed, "allocation", "")
    if task:
        return Entity(TASK, task)
    return Entity(NODE, node) if node else None
