"""The pods and nodes of a real GPU cluster as inputs: the "openb" trace in its published form, two CSV files.

What is in a row and what becomes of it:

- a node's ``cpu_milli``, ``memory_mib`` and ``gpu`` become ``vcore`` (millicores), ``memory``
  (bytes) and ``gpu`` in thousandths of a card, so that a share of a card is a whole number; its
  ``model`` becomes the label ``gpu-model``. That the thousandths of one pod have to lie on one card
  is not modelled: a node's cards count as one sum.
- a pod asks for its ``cpu_milli``, ``memory_mib`` and ``num_gpu`` times ``gpu_milli``. Its QoS
  class says how entitled it is, and so becomes its queue, its priority and (through `queues_yaml`)
  a guarantee; see `CLASSES`. The pods of a class form one application, as the pods of a namespace
  do that name none of their own.
- a pod comes at its ``creation_time`` and runs from ``scheduled_time`` (or ``creation_time``, when
  it never ran) to ``deletion_time``, in seconds from the start of the trace, all of them divided by
  the speed.

Proposal ids are made from names, so that importing the same files twice changes nothing.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from events.vocabulary import AnyInput, ApplicationSubmitted, AskSubmitted, NodeRegistered

MIB = 1024 * 1024
GPU_MILLI = 1000
_MAX_NUMBER = 2**40
"""More than any column can mean; with it, no product leaves the bounds of an amount."""


class QosClass(NamedTuple):
    """What a QoS class of the trace becomes.

    Attributes:
        percent: Share of the cluster that its queue is guaranteed; 0: none.
    """

    queue: str
    priority: int
    percent: int


CLASSES: Mapping[str, QosClass] = {
    "Guaranteed": QosClass("root.guaranteed", 100, 1),
    "LS": QosClass("root.latency-sensitive", 100, 65),
    "Burstable": QosClass("root.burstable", 50, 5),
    "BE": QosClass("root.best-effort", 0, 0),
}
"""By class: who is latency sensitive is guaranteed two thirds of the cluster, who takes what is left is guaranteed nothing."""

_NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos", "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip


class TraceError(ValueError):
    """A file of the trace is not what its name says; the fault is that of whoever named it.

    Attributes:
        file: Its path.
        line: From 1, the heading included; 0 when the file as a whole is meant.
    """

    def __init__(self, file: Path, line: int, problem: str) -> None:
        self.file = file
        self.line = line
        super().__init__(f"trace {file}{f':{line}' if line else ''}: {problem}")


class Node(Struct, frozen=True):
    """A row of the node list; amounts in base units."""

    name: str
    capacity: dict[str, int]
    model: str


class Pod(Struct, frozen=True):
    """A row of the pod list; amounts in base units, times in seconds from the start of the trace.

    Attributes:
        life: How long it ran, or would have run had it been bound at once.
    """

    name: str
    resources: dict[str, int]
    qos: str
    creation: int
    life: int


class Timed(NamedTuple):
    """An input and when it comes, in milliseconds from the start of the import."""

    at_ms: int
    input: AnyInput


def read_nodes(path: Path) -> list[Node]:
    """Return the nodes of a node list, in its order.

    Raises:
        TraceError: The file cannot be read, lacks a column, or a field is no number from 0.
    """
    return [
        Node(
            _name(path, line, row["sn"]),
            _amounts(path, line, row, _number(path, line, row, "gpu") * GPU_MILLI),
            row["model"],
        )
        for line, row in _rows(path, _NODE_COLUMNS)
    ]


def read_pods(path: Path) -> list[Pod]:
    """Return the pods of a pod list, by creation time and then in its order.

    Raises:
        TraceError: As `read_nodes`; also for a QoS class that is not in `CLASSES`.
    """
    pods = []
    for line, row in _rows(path, _POD_COLUMNS):
        if row["qos"] not in CLASSES:
            raise TraceError(
                path, line, f"qos: found {row['qos']!r}, expected one of {', '.join(CLASSES)}"
            )
        creation = _number(path, line, row, "creation_time")
        begin = _number(path, line, row, "scheduled_time") if row["scheduled_time"] else creation
        life = max(0, _number(path, line, row, "deletion_time") - begin)
        gpu = _number(path, line, row, "num_gpu") * _number(path, line, row, "gpu_milli")
        pods.append(
            Pod(
                _name(path, line, row["name"]),
                _amounts(path, line, row, gpu),
                row["qos"],
                creation,
                life,
            )
        )
    return sorted(pods, key=lambda pod: pod.creation)


def timed_inputs(nodes: Iterable[Node], pods: Iterable[Pod], speed: float) -> list[Timed]:
    """Return everything that has to be proposed, by time: first nodes and applications, then each pod at its time.

    Args:
        nodes: As `read_nodes` returns them.
        pods: As `read_pods` returns them.
        speed: Seconds of the trace that pass in one second; infinity: all at once. More than 0.
    """
    timed = [
        Timed(
            0,
            NodeRegistered(
                proposal=f"openb:node:{node.name}",
                node=node.name,
                capacity=node.capacity,
                labels={"gpu-model": node.model} if node.model else {},
            ),
        )
        for node in nodes
    ]
    timed += [Timed(0, _submission(name, one)) for name, one in CLASSES.items()]
    timed += [Timed(compressed_ms(pod.creation, speed), _ask(pod)) for pod in pods]
    return timed


def lives_ms(pods: Iterable[Pod], speed: float) -> dict[str, int]:
    """Return how long each pod runs, by name, in milliseconds; at least one."""
    return {pod.name: max(1, compressed_ms(pod.life, speed)) for pod in pods}


def compressed_ms(seconds: int, speed: float) -> int:
    """Return seconds of the trace as milliseconds at this speed, rounded down."""
    return int(seconds * 1000 / speed)


def queues_yaml(nodes: Sequence[Node]) -> str:
    """Return a queues.yaml that fits the trace: a leaf for each class, with its guarantee as a share of these nodes."""
    totals = {
        name: sum(node.capacity.get(name, 0) for node in nodes)
        for name in ("vcore", "memory", "gpu")
    }
    lines = [
        "# Queues for the openb trace: one leaf for each QoS class.",
        "partitions:",
        "  - name: default",
        "    queues:",
        "      - name: root",
        '        submitacl: "*"',
        "        queues:",
    ]
    for one in CLASSES.values():
        lines += [f"          - name: {one.queue.removeprefix('root.')}"]
        if one.percent:
            share = {name: total * one.percent // 100 for name, total in totals.items()}
            lines += [
                f"            # {one.percent} % of the cluster",
                "            resources:",
                "              guaranteed:",
                f'                vcore: "{share["vcore"]}m"',
                f'                memory: "{share["memory"]}"',
                f'                gpu: "{share["gpu"]}"',
                "            properties:",
                "              preemption.delay: 5s",
            ]
    return "\n".join(lines) + "\n"


def _submission(qos: str, one: QosClass) -> ApplicationSubmitted:
    return ApplicationSubmitted(
        proposal=f"openb:app:{qos}", application=_application(qos), queue=one.queue, user="openb"
    )


def _ask(pod: Pod) -> AskSubmitted:
    return AskSubmitted(
        proposal=f"openb:pod:{pod.name}",
        ask=pod.name,
        application=_application(pod.qos),
        queue=CLASSES[pod.qos].queue,
        user="openb",
        resources=pod.resources,
        priority=CLASSES[pod.qos].priority,
    )


def _application(qos: str) -> str:
    return f"openb-{qos.lower()}"


def _rows(path: Path, columns: Sequence[str]) -> list[tuple[int, dict[str, str]]]:
    """Return the rows of a CSV file with their line numbers."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
            if missing:
                raise TraceError(
                    path, 1, f"the column {missing[0]} is missing, expected {', '.join(columns)}"
                )
            return [
                (reader.line_num, {key: value or "" for key, value in row.items() if key})
                for row in reader
            ]
    except OSError as error:
        raise TraceError(path, 0, error.strerror or str(error)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise TraceError(path, 0, f"no CSV file in UTF-8: {error}") from error


def _amounts(path: Path, line: int, row: Mapping[str, str], gpu: int) -> dict[str, int]:
    amounts = {
        "vcore": _number(path, line, row, "cpu_milli"),
        "memory": _number(path, line, row, "memory_mib") * MIB,
        "gpu": gpu,
    }
    return {name: amount for name, amount in amounts.items() if amount}


def _number(path: Path, line: int, row: Mapping[str, str], column: str) -> int:
    text = row[column]
    if (
        not (text.isascii() and text.isdigit())
        or len(text) > len(str(_MAX_NUMBER))
        or int(text) > _MAX_NUMBER
    ):
        raise TraceError(
            path, line, f"{column}: found {text!r}, expected a whole number from 0 to {_MAX_NUMBER}"
        )
    return int(text)


def _name(path: Path, line: int, text: str) -> str:
    if not text:
        raise TraceError(path, line, "the name is empty")
    return text
