"""A small cluster as proposals: two tenants, one node."""

from events.vocabulary import (
    AllocationReleased,
    AnyInput,
    ApplicationSubmitted,
    AskSubmitted,
    ConfigurationApplied,
    NodeRegistered,
)
from evsched.config import from_mapping


def queues(web_cores: int = 10, delay: str = "60s", name: str = "") -> AnyInput:
    """Return a configuration: research with a guarantee of 4 cores, web with this maximum and delay."""
    web = {
        "name": "web",
        "resources": {"max": {"vcore": str(web_cores)}},
        "properties": {"quota.preemption.delay": delay},
    }
    research = {"name": "research", "resources": {"guaranteed": {"vcore": "4"}}}
    root = {"name": "root", "submitacl": "*", "queues": [research, web]}
    partition = {
        "name": "default",
        "preemption": {"quotapreemptionenabled": True},
        "queues": [root],
    }
    (configuration,) = from_mapping("yunikorn", {"partitions": [partition]}, "test")
    return ConfigurationApplied(configuration=configuration, proposal=name)


def node(name: str = "node-1", cores: int = 10) -> AnyInput:
    """Return a node of this size."""
    return NodeRegistered(node=name, capacity={"vcore": cores * 1000}, proposal=f"node:{name}")


def application(queue: str) -> AnyInput:
    """Return the one application of a queue."""
    return ApplicationSubmitted(
        application=queue, queue=f"root.{queue}", user=queue, proposal=f"app:{queue}"
    )


def ask(name: str, queue: str = "web", cores: int = 2) -> AnyInput:
    """Return an ask of a queue's application."""
    return AskSubmitted(
        ask=name,
        application=queue,
        queue=f"root.{queue}",
        user=queue,
        resources={"vcore": cores * 1000},
        proposal=f"ask:{name}",
    )


def release(name: str) -> AnyInput:
    """Return the end of an allocation."""
    return AllocationReleased(allocation=name, reason="completed", proposal=f"end:{name}")


def cluster(web_pods: int = 5) -> list[AnyInput]:
    """Return queues, a node of 10 cores, both applications, and pods of 2 cores in web."""
    return [
        queues(),
        node(),
        application("web"),
        application("research"),
        *(ask(f"web-{one}") for one in range(web_pods)),
    ]
