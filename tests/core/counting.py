"""What indices know, in a form in which one that followed the events can be compared with a new one."""

from evsched.core.yunikorn.limits import Key, LimitIndex
from evsched.core.yunikorn.order_nodes import DemandBucket, QueueNode
from evsched.core.yunikorn.waiting import WaitingOrder


def counts_of(index: LimitIndex) -> tuple[dict[str, int], dict[Key, tuple[object, ...]]]:
    """Return asks in flight by application, and what counts by limit; an amount of 0 is as good as none."""
    return index._in_flight, {
        key: (
            {kind: n for kind, n in one.used.items() if n},
            {kind: n for kind, n in one.promised.items() if n},
            one.in_flight,
            one.running,
            one.starting,
        )
        for key, one in index._counted.items()
    }


def summary(order: WaitingOrder) -> dict[str, object]:
    """Return what an order that followed the events must share with one that is built from the state: it forgot what is gone."""
    queues = {
        path: (
            queue_node.levels,
            sorted(queue_node.app_nodes),
            sorted(
                (bucket.demand.shape.index, str(bucket.peers), bucket.groups)
                for bucket in buckets_of(queue_node)
            ),
        )
        for path, queue_node in order.queue_nodes.items()
        if queue_node.levels
    }
    watched = {
        str(key): sorted(group.app_node.application.id for group in one.watched)
        for key, one in order.demands.items()
    }
    app_nodes = {
        name: (app_node.open, app_node.paused) for name, app_node in sorted(order.app_nodes.items())
    }
    return {
        "queues": queues,
        "app_nodes": app_nodes,
        "demands": sorted(map(str, order.demands)),
        "watched": watched,
    }


def buckets_of(queue_node: QueueNode) -> list[DemandBucket]:
    """Return the buckets of a leaf."""
    return [bucket for here in queue_node.buckets.values() for bucket in here.values()]
