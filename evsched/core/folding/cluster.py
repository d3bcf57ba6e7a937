"""What configurations, nodes and queues do to the state.

These are the rare events, and the ones with the widest effect: each may help any ask that waits.
So they set `State.retry_needed`, and where an index cannot be told what changed it is thrown away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.core.registry import admits_by_quota, family_of
from evsched.core.trees import install
from evsched.core.workloads import Node

if TYPE_CHECKING:
    from events import vocabulary as v
    from evsched.core.queues import Queue
    from evsched.core.state import State


def configuration_applied(state: State, event: v.ConfigurationApplied) -> None:
    """A configuration came into force.

    The queue tree is built anew and everything that runs or waits is put into it
    (`trees.install`). With Kueue every tree of cohorts is looked at again, and a cycle that was
    cut by its budget is not gone on with: what it had left to do was worked out under other
    quotas.
    """
    install(state, event.configuration)
    state.retry_needed = True
    # New quotas are something new for every tree of cohorts.
    by_quota = admits_by_quota(event.configuration)
    state.dirty_cohorts = dict.fromkeys(state.root.children) if by_quota else {}
    state.unfinished = {}


def rules_adopted(state: State, event: v.RulesAdopted) -> None:
    """Other rules came into force: what was tried in vain under the former ones is tried again.

    Only the decisions that follow depend on them. No fold does, so that a log is read in the same
    way whatever its rules are (docs/adr/0040).
    """
    state.rules_version = event.rules
    state.retry_needed = True
    if admits_by_quota(state.configuration):
        state.dirty_cohorts = dict.fromkeys(state.root.children)
    # What an index has worked out may hold a reading of the former rules.
    state.index = None


def node_registered(state: State, event: v.NodeRegistered) -> None:
    """A node joined.

    Its capacity is added to the cluster's total, on which fair maxima and the share of queues
    without a guarantee depend.
    """
    shape = state.shape(event.capacity)
    node = Node(event.node, state.width)
    node.resources = event.capacity
    node.labels = event.labels
    node.schedulable = event.schedulable
    node.taints, node.ready = event.taints, event.ready
    for index, amount in shape.pairs:
        node.capacity[index] = amount
        state.total[index] += amount
    state.nodes[event.node] = node
    if state.index is not None:
        state.index.node_joined(node)
    state.retry_needed = True


def node_updated(state: State, event: v.NodeUpdated) -> None:
    """A node changed.

    What the event leaves out stays as it was. A capacity replaces the former one as a whole: a
    type that is not named any more is 0. It may fall below what runs on the node; nothing is
    evicted for that, but the node takes nothing until enough has ended.
    """
    node = state.nodes[event.node]
    if event.capacity is not None:
        shape = state.shape(event.capacity)
        for index, amount in enumerate(node.capacity):
            state.total[index] -= amount
            node.capacity[index] = 0
        for index, amount in shape.pairs:
            node.capacity[index] = amount
            state.total[index] += amount
        node.resources = event.capacity
    if event.labels is not None:
        node.labels = event.labels
    if event.schedulable is not None:
        node.schedulable = event.schedulable
    if event.taints is not None:
        node.taints = event.taints
    if event.ready is not None:
        node.ready = event.ready
    node_changed(state, node)
    state.retry_needed = True


def node_removed(state: State, event: v.NodeRemoved) -> None:
    """A node is gone; what ran there is released by the events that follow.

    Until then those allocations name a node that is unknown, so a reader that counts keeps it
    aside (`State.lost`) for their ends.
    """
    node = state.nodes.pop(event.node)
    if state.counting and node.allocations:
        state.lost[event.node] = node
    for index, amount in enumerate(node.capacity):
        state.total[index] -= amount
    if state.index is not None:
        state.index.node_left(node)
    state.retry_needed = True


def queue_created(state: State, event: v.QueueCreated) -> None:
    """A dynamic queue was created by a placement rule.

    Which queues exist besides those of the configuration is truth: a log is read without asking
    the placement rules again.
    """
    state.dynamic[event.queue] = event.parent
    assert state.configuration is not None  # a placement rule made it
    family = family_of(state.configuration)
    family.add_queue(state, event.queue, parent=event.parent, draining=False)


def queue_removed(state: State, event: v.QueueRemoved) -> None:
    """A dynamic or draining queue went, as nothing ran or waited in it any more."""
    state.dynamic.pop(event.queue, None)
    state.templates.pop(event.queue, None)
    queue = state.queues.pop(event.queue)
    if queue.parent is not None:
        queue.parent.children.pop(queue.name, None)
    if state.index is not None:
        state.index.queue_removed(event.queue)


def mark_dirty(state: State, leaf: Queue) -> None:
    """Note that something ended in the tree of a leaf (Kueue).

    What waits there in vain is looked at again in the next cycle, and nothing outside that tree:
    cohorts of different trees share no quota.
    """
    if leaf.quota is not None:
        state.dirty_cohorts[leaf.quota.tree] = None


def node_changed(state: State, node: Node) -> None:
    """Tell the index, where there is one, that a node changed."""
    if state.index is not None:
        state.index.node_changed(node)
