"""A third family: strict priority, and preemption by age.

An ask of the highest priority is served first, the oldest first among equals. One that has waited
as long as ``preemption: age_ms`` says preempts allocations of lower priority on one node, the
youngest first. The configuration has a section ``queues`` (leaf to how much it adds to a priority)
and a section ``preemption``. The family knows of no index: it looks at everything, each time.
"""

from events import vocabulary as v
from evsched.core.problem import Problem
from evsched.core.queues import Queue, Tree
from evsched.core.refusals import leaf_problem


class AgeFamily:
    """Strict priority with preemption by age (protocol `evsched.core.family.Family`)."""

    by_quota = False

    def problems(self, spec):
        """An age must be there, and every queue adds a number."""
        found = []
        if not isinstance(spec.sections.get("preemption", {}).get("age_ms"), int):
            message = "preemption: found no age_ms, expected milliseconds"
            found.append(Problem("preemption", "age_ms", message))
        for name, value in spec.sections.get("queues", {}).items():
            if not isinstance(value, int):
                message = f"queue {name}: found {value!r}, expected a number"
                found.append(Problem(f"queue {name}", "priority", message))
        return found

    def resource_types(self, spec):
        """The configuration names none."""
        return ()

    def remarks(self, spec):
        """Nothing is remarkable."""
        return []

    def build(self, spec, types):
        """All queues hang below root."""
        root = Queue("root", "root", None, leaf=False)
        queues = {"root": root}
        for name in spec.sections.get("queues", {}):
            leaf = queues[f"root.{name}"] = Queue(f"root.{name}", name, root, leaf=True)
            leaf.order = len(queues)
            root.children[name] = leaf
        return Tree(root, queues, {})

    def add_queue(self, state, path, *, parent, draining):
        """A queue that left the configuration drains below root."""
        if path not in state.queues:
            queue = Queue(path, path.rpartition(".")[2], state.root, leaf=not parent)
            queue.draining, queue.dynamic = draining, not draining
            state.attach(queue, state.root)
        return state.queues[path]

    def kept_leaves(self, state, spec):
        """Queues never become anything else."""
        return

    def evictions(self, spec):
        """A victim has 10 s, three times."""
        return 10_000, 3

    def preempts(self, spec):
        """Age is what it is about."""
        return True

    def enforces_quotas(self, spec):
        """There are no quotas."""
        return False

    def places(self, spec):
        """An application goes where it says."""
        return False

    def refuse(self, state, proposed):
        """An application must name a leaf."""
        if isinstance(proposed, v.ApplicationSubmitted):
            return leaf_problem(state, proposed.queue, f"application {proposed.application}")
        return None

    def completed(self, state, event):
        """Nothing is looked up."""
        return event

    def prepare(self, state, event):
        """Nothing has to be known of before."""

    def follow(self, step, event, prepared):
        """An application is placed in the queue that it names."""
        if isinstance(event, v.ApplicationSubmitted):
            step.emit(
                v.ApplicationPlaced,
                cause=event.seq,
                application=event.application,
                queue=event.queue,
            )

    def next_cycle(self, state):
        """A cycle is due when an ask reaches the age, or when something changed since it was tried."""
        dues = [
            state.last_cycle + 1000
            if ask.id in state.unschedulable_since
            else ask.created + self._age(state)
            for ask in state.asks.values()
            if ask.id not in state.preemptions
            and (state.retry_needed or ask.id not in state.unschedulable_since)
        ]
        return max(min(dues), state.last_cycle + 1000) if dues else None

    def cycle(self, step):
        """Every ask that is old enough may preempt once."""
        state, tried = step.state, []
        for ask in self._in_order(state):
            if ask.id in state.preemptions or ask.created + self._age(state) > step.time:
                continue
            plan = min(
                (self._plan(state, ask, node) for node in state.nodes.values()), default=None
            )
            if plan is None or plan[0]:
                tried.append(ask.id)
                continue
            victims = tuple(v.Victim(id=x.id, queue=x.queue, reason="age") for x in plan[3])
            step.emit(
                v.PreemptionDecided,
                cause=ask.seq,
                ask=ask.id,
                node=plan[2],
                victims=victims,
                algorithm="age",
            )
        step.emit(v.CycleStarted, cause=state.seq, kind="preemption", tried=tuple(tried))

    def fire(self, step, timer):
        """The family arms no timers."""
        raise AssertionError(timer)

    def look_ahead(self, state):
        """There is no index, so nothing is left to be done."""
        return False

    def allocate(self, step):
        """Bind the first ask that fits, until none does; one in flight fits on its node alone."""
        state = step.state
        for ask in self._in_order(state):
            flight = state.preemptions.get(ask.id)
            names = sorted(state.nodes) if flight is None else [flight.node]
            pairs = state.types.shapes[ask.shape].pairs
            node = next((name for name in names if state.nodes[name].fits(pairs, ask.id)), None)
            if node is not None:
                step.emit(v.AllocationBound, cause=ask.seq, ask=ask.id, node=node)
            elif step.tracer is not None:
                step.tracer.note(ask.id, "no-node")

    @staticmethod
    def _age(state):
        return state.configuration.sections["preemption"]["age_ms"]

    @staticmethod
    def _weight(state, task):
        added = state.configuration.sections["queues"].get(task.queue.rpartition(".")[2], 0)
        return task.priority + added

    def _in_order(self, state):
        """The asks by priority, then age, then id."""
        asks = state.asks.values()
        return sorted(asks, key=lambda ask: (-self._weight(state, ask), ask.created, ask.id))

    def _plan(self, state, ask, node):
        """What an ask could take on a node: (in vain, number of victims, name of the node, victims)."""
        lacking = {
            index: amount - node.available(index, ask.id)
            for index, amount in state.types.shapes[ask.shape].pairs
        }
        victims = []
        for one in sorted(node.allocations.values(), key=lambda one: (-one.created, one.id)):
            pairs = dict(state.types.shapes[one.shape].pairs)
            useful = any(lacking.get(index, 0) > 0 for index in pairs)
            if (
                useful
                and not one.eviction_requested
                and self._weight(state, one) < self._weight(state, ask)
            ):
                victims.append(one)
                lacking = {index: left - pairs.get(index, 0) for index, left in lacking.items()}
        in_vain = not victims or any(left > 0 for left in lacking.values())
        return in_vain, len(victims), node.name, victims
