"""A part of the recorded cluster through a real Kafka, as `scripts/trace_run.py` does it with all of it."""

import csv
import random

import pytest

from scripts.trace_run import Settings, trace_run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

PODS = 300
NODES = 40
TIMES = ("creation_time", "deletion_time", "scheduled_time")
CLASSES = ("LS", "LS", "BE", "Burstable", "Guaranteed")


def made_up(folder):
    """Write a small trace of our own in the same form, in which there is not room for everybody; return its two files."""
    chance = random.Random(11)
    nodes, pods = folder / "nodes.csv", folder / "pods.csv"
    with nodes.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["sn", "cpu_milli", "memory_mib", "gpu", "model"])
        rows.writerows([f"n{number}", 32_000, 131_072, 4, "X1"] for number in range(NODES))
    with pods.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos", *TIMES])
        for number in range(PODS):
            creation = number * 100 + chance.randrange(100)
            shape = [
                chance.choice([2000, 8000, 16_000]),
                chance.choice([4096, 32_768]),
                chance.choice([0, 1, 2]),
                1000,
            ]
            times = [creation, creation + chance.randrange(2000, 40_000), creation]
            rows.writerow([f"p{number:04}", *shape, chance.choice(CLASSES), *times])
    return nodes, pods


def hold(report):
    """Hold a report against what must be true."""
    assert report.holds, report
    assert report.acknowledged > report.kills


async def test_a_trace_of_our_own_comes_through_with_kills(
    kafka_bootstrap, kafka_topic_name, tmp_path
):
    """Every pod is bound, preempted or waits for a stated reason; nothing is lost or doubled; two readers agree."""
    nodes, pods = made_up(tmp_path)
    url = f"kafka://{kafka_bootstrap}/{kafka_topic_name}"
    hold(await trace_run(Settings(nodes=nodes, pods=pods, url=url, seconds=5, kills=2), tmp_path))


async def test_a_part_of_the_recorded_trace_comes_through(
    kafka_bootstrap, kafka_topic_name, tmp_path, shared_folder
):
    """The same with a part of the real one."""
    nodes, pods = (
        shared_folder / "traces" / name
        for name in ("openb_node_list_all_node.csv", "openb_pod_list_default.csv")
    )
    url = f"kafka://{kafka_bootstrap}/{kafka_topic_name}"
    settings = Settings(
        nodes=nodes, pods=pods, url=url, limit=PODS * 2, seconds=6, kills=2, lives=1000, squeeze=16
    )
    hold(await trace_run(settings, tmp_path))
