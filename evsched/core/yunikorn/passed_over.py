"""Why candidates were passed over, for `explain`: what the search rules out all at once, said one by one.

The codes are those of the laws (``law2`` … ``law7``; of law 4 each half has its own) and of the rules beside them: ``own-leaf``,
``disabled``, ``required-node``, ``leaving``, ``no-shared-type`` for allocations; ``unschedulable``, ``node-rule``,
``node-short``, ``node-free`` for nodes; ``max`` for a queue on the asker's path whose maximum is in
the way. ``eligible`` marks an allocation that could be a victim, ``node-candidate`` a node on which
the eligible ones together would make room.
"""

from __future__ import annotations

from evsched.core.node_access import refusal
from evsched.core.state import State
from evsched.core.step import Tracer
from evsched.core.workloads import Allocation, Ask, Node
from evsched.core.yunikorn import laws
from evsched.core.yunikorn.laws import Asker
from evsched.core.yunikorn.maxima import shortages


def note(state: State, ask: Ask, tracer: Tracer) -> None:
    """Tell a tracer about every queue, allocation and node that is considered for an ask.

    It costs a pass over all nodes and allocations, so it is done only for asks that an explanation
    is wanted of. What is found is what the search would find: the laws are the same functions.

    Where law 4 rules a plan out on every node, only that and the maxima in the way are noted.
    """
    asker = Asker(state, ask)
    names = state.types.names
    for short in shortages(asker.leaf, asker.pairs):
        tracer.note(
            short.queue.path, "max", ask=ask.id, resource=names[short.kind], over=short.amount
        )
    if ask.required_node is not None:
        node = state.nodes.get(ask.required_node)
        if node is not None:
            _note_node(state, asker, ask, node, tracer)
        return
    guarantor = asker.guarantor
    if guarantor is None or not laws.law4_below_guarantee(asker):
        path = asker.leaf.path if guarantor is None else guarantor.path
        guaranteed = {} if guarantor is None else state.types.named(guarantor.guaranteed.items())
        half = "law4-no-guarantee" if guarantor is None else "law4-not-below"
        tracer.note(path, half, ask=ask.id, guaranteed=guaranteed)
        return
    for leaf in state.root.leaves():
        found = laws.leaf_objection(asker, leaf)
        if found == "law5":
            at = laws.law5_queue(asker, leaf).path
            tracer.note(at, found, ask=ask.id, at=at)
        elif found is not None:
            tracer.note(leaf.path, found, ask=ask.id)
    for name in sorted(state.nodes):
        _note_node(state, asker, ask, state.nodes[name], tracer)


def _note_node(state: State, asker: Asker, ask: Ask, node: Node, tracer: Tracer) -> None:
    """Tell about one node and what runs there.

    The room is counted up as if every eligible allocation left. A node that is short even then can
    never be part of a plan; one that is not, is a candidate, which the laws of several victims
    together may still rule out.
    """
    refused = refusal(state, ask, node)
    if refused is not None:
        closed = refused.code == "unschedulable"
        why = {} if closed else {"rule": refused.code, "detail": refused.detail}
        tracer.note(node.name, "unschedulable" if closed else "node-rule", ask=ask.id, **why)
        return
    shapes = state.types.shapes
    room = node.room_after(shapes, ask.id)
    free = all(room[index] >= amount for index, amount in asker.pairs)
    for allocation in node.allocations.values():
        found = (
            _required_objection(state, asker, allocation)
            if ask.required_node
            else laws.objection(state, asker, allocation)
        )
        facts = {"node": node.name, "queue": allocation.queue, "priority": allocation.priority}
        if found == "law5":
            facts["at"] = laws.law5_queue(asker, state.queues[allocation.queue]).path
        tracer.note(allocation.id, found or "eligible", ask=ask.id, **facts)
        if found is None:
            for index, amount in shapes[allocation.shape].pairs:
                room[index] += amount
    short = {index: amount - room[index] for index, amount in asker.pairs if room[index] < amount}
    if short:
        tracer.note(node.name, "node-short", ask=ask.id, lacking=state.types.named(short.items()))
    else:
        tracer.note(node.name, "node-free" if free else "node-candidate", ask=ask.id)


def _required_objection(state: State, asker: Asker, allocation: Allocation) -> str | None:
    """Return why an allocation on a required node is spared; None where it is not.

    Only what holds for asks that may run there alone: neither guarantees nor fences protect from
    them (seed preemption_design, "Preemption Logic").
    """
    if allocation.eviction_requested:
        return "leaving"
    if not laws.not_bound_to_node(allocation):
        return "required-node"
    if not laws.shares_a_type(asker, state.types.shapes[allocation.shape].pairs):
        return "no-shared-type"
    return "law6" if allocation.priority > asker.priority else None
