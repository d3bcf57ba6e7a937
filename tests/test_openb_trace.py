"""The openb trace as inputs, on a trace of our own of the same form."""

import pytest
import yaml

from benchmarks.openb.trace import (
    CLASSES,
    TraceError,
    lives_ms,
    queues_yaml,
    read_nodes,
    read_pods,
    timed_inputs,
)
from events.vocabulary import ApplicationSubmitted, AskSubmitted, NodeRegistered
from evsched.config import from_mapping

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn-0,32000,1024,0,\nn-1,64000,2048,8,V100\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
PODS = f"""{HEAD}p-1,6000,16,1,460,,LS,Running,100,700,200
p-0,1000,8,0,0,,BE,Pending,50,60,
p-2,2000,8,8,1000,,Guaranteed,Failed,100,90,95
"""


@pytest.fixture
def trace(tmp_path):
    """Write the two files and return their paths."""
    nodes, pods = tmp_path / "nodes.csv", tmp_path / "pods.csv"
    nodes.write_text(NODES)
    pods.write_text(PODS)
    return nodes, pods


def test_a_row_becomes_amounts_in_base_units(trace):
    """Millicores, bytes, and thousandths of a card; what is zero is not asked for."""
    nodes, pods = read_nodes(trace[0]), read_pods(trace[1])
    assert nodes[0].capacity == {"vcore": 32_000, "memory": 1024 * 1024 * 1024}
    assert nodes[1].capacity == {"vcore": 64_000, "memory": 2048 * 1024 * 1024, "gpu": 8000}
    assert {pod.name: pod.resources.get("gpu") for pod in pods} == {
        "p-0": None,
        "p-1": 460,
        "p-2": 8000,
    }


def test_pods_come_by_time_and_live_as_recorded(trace):
    """By creation and then in file order; a life runs from scheduling, or else from creation, and is never negative."""
    pods = read_pods(trace[1])
    assert [pod.name for pod in pods] == ["p-0", "p-1", "p-2"]
    assert [pod.life for pod in pods] == [10, 500, 0]
    assert lives_ms(pods, 100) == {"p-0": 100, "p-1": 5000, "p-2": 1}


def test_inputs_are_timed_and_told_apart(trace):
    """Nodes and applications first, then each pod at its compressed time; ids come from names, so that a repetition shows."""
    timed = timed_inputs(read_nodes(trace[0]), read_pods(trace[1]), 100)
    kinds = [type(one.input) for one in timed]
    assert (
        kinds == [NodeRegistered] * 2 + [ApplicationSubmitted] * len(CLASSES) + [AskSubmitted] * 3
    )
    assert [one.at_ms for one in timed if isinstance(one.input, AskSubmitted)] == [500, 1000, 1000]
    assert len({one.input.proposal for one in timed}) == len(timed)
    asks = {one.input.ask: one.input for one in timed if isinstance(one.input, AskSubmitted)}
    assert (asks["p-1"].queue, asks["p-1"].priority) == ("root.latency-sensitive", 100)
    assert (asks["p-0"].queue, asks["p-0"].priority) == ("root.best-effort", 0)


def test_at_infinite_speed_everything_comes_at_once(trace):
    """Taken together the pods make the contention that the trace itself has not."""
    timed = timed_inputs(read_nodes(trace[0]), read_pods(trace[1]), float("inf"))
    assert {one.at_ms for one in timed} == {0}


def test_the_queues_that_fit_the_trace_are_a_valid_configuration(trace):
    """The guarantees are shares of the nodes at hand."""
    (configuration,) = from_mapping("yunikorn", yaml.safe_load(queues_yaml(read_nodes(trace[0]))))
    leaves = {queue.name: queue for queue in configuration.root.queues}
    assert {f"root.{name}" for name in leaves} == {one.queue for one in CLASSES.values()}
    assert leaves["latency-sensitive"].guaranteed == {
        "vcore": 62_400,
        "memory": 2_093_796_556,
        "gpu": 5200,
    }
    assert leaves["best-effort"].guaranteed is None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            HEAD + "p,x,1,0,0,,LS,Running,0,1,0\n",
            ":2: cpu_milli: found 'x', expected a whole number",
        ),
        (HEAD + "p,-1,1,0,0,,LS,Running,0,1,0\n", "cpu_milli: found '-1'"),
        (HEAD + "p,1,1,0,0,,Gold,Running,0,1,0\n", "qos: found 'Gold'"),
        (HEAD + "p,1,99999999999999999,0,0,,LS,Running,0,1,0\n", "memory_mib"),
        (HEAD + ",1,1,0,0,,LS,Running,0,1,0\n", "name is empty"),
        (HEAD + "p,1\n", "qos: found ''"),
        ("name,cpu_milli\np,1\n", "column memory_mib is missing"),
        ("", "column name is missing"),
    ],
)
def test_a_row_that_makes_no_sense_is_named(tmp_path, text, sentence):
    """With the file, the line and what was expected."""
    path = tmp_path / "pods.csv"
    path.write_text(text)
    with pytest.raises(TraceError) as refused:
        read_pods(path)
    assert sentence in str(refused.value)
    assert "pods.csv" in str(refused.value)


def test_a_missing_file_is_named(tmp_path):
    """The file is the subject of the sentence."""
    with pytest.raises(TraceError, match=r"nodes\.csv: No such file"):
        read_nodes(tmp_path / "nodes.csv")
