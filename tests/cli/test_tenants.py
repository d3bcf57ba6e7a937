"""Every question of the documents, asked of two tenants with 40 queues and 200 asks; the answers are derived by hand.

The world, with the reasons for all numbers, is `tests.replays.tenants`.
"""

from __future__ import annotations

import asyncio
import json

import pytest

from evsched.cli.main import run
from tests.replays.logs import exported, sealed
from tests.replays.tenants import QUEUES, steps

NO_NODE = "No node has room; the nearest, n0, lacks 1 vcore."


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a folder with the log, its read model, the configuration and another one, and asks to plan."""
    folder = tmp_path_factory.mktemp("tenants")
    file = asyncio.run(exported(sealed(steps()), folder / "log.jsonl"))
    (folder / "queues.yaml").write_text(QUEUES)
    (folder / "next.yaml").write_text(
        QUEUES.replace("maxresources: {vcore: 30}", "maxresources: {vcore: 20}")
    )
    plans = {
        "ann": '{ask: new, application: ann-1, resources: {vcore: "1"}}',
        "eve": '{ask: new, application: eve-2, queue: root.red.team03, user: eve, resources: {vcore: "1"}}',
        "zed": '{ask: new, application: zed-2, user: zed, resources: {vcore: "1"}}',
    }
    for name, text in plans.items():
        (folder / f"{name}.yaml").write_text(text)
    assert run(["project", "rebuild", "--log", str(file), "--db", str(folder / "audit.db")]) == 0
    return folder


def queue_rows(rows):
    """Return usage in cores and how many asks wait, of the queues in which there is any."""
    return {
        row["queue"].removeprefix("root."): (
            row["usage"].get("vcore", 0) // 1000,
            row["pending_asks"],
        )
        for row in rows
        if row["usage"] or row["pending_asks"]
    }


def summary(rows):
    """Return what an explanation says."""
    return rows[0]["explanation"]["summary"]


def held(rows):
    """Return how many asks were explained and which codes hold them."""
    found = rows[0]["overview"]
    return (
        found["waiting"],
        found["running"],
        sorted({code for one in found["held"] for code in one["causes"]}),
    )


ANN = "Queue root.red: 1 vcore requested, 6 used or promised of user ann, its limit is 6."
GROUP = (
    "Queue root.blue: 1 vcore requested, 30 used or promised of group blue-dev, its limit is 30."
)

ONE_APPLICATION = "Queue root.red: 1 applications of user ann run or start, maxapplications is 1."

QUESTIONS = {
    "how many queues are there": (["at", "end", "queues"], 0, len, 40),
    "who used what before blue came": (
        ["at", "BEFORE", "queues", "--queue", "root.red"], 0,
        lambda rows: {name: queue_rows(rows)[name] for name in ("red", "red.team01", "red.team02")},
        {"red": (40, 55), "red.team01": (6, 3), "red.team02": (5, 1)},
    ),
    "who uses what now": (
        ["at", "end", "queues"], 0,
        lambda rows: {name: one for name, one in queue_rows(rows).items() if "." not in name},
        {"root": (80, 90), "red": (10, 55), "blue": (30, 10), "shared": (40, 25)},
    ),
    "what runs in shared": (["at", "end", "allocations", "--queue", "root.shared"], 0, len, 40),
    "where were applications placed": (
        ["at", "end", "apps", "--queue", "root.shared"], 0,
        lambda rows: sorted(row["application"] for row in rows), ["mia-1", "sam-1", "zed-1"],
    ),
    "what is known now": (
        ["status"], 0, lambda rows: (rows[0]["allocations"], rows[0]["waiting"], len(rows[0]["queues"])), (80, 90, 40),
    ),
    "why does ann's seventh ask wait": (["explain", "ann-7"], 0, summary, f"{ANN} {NO_NODE} Both have to change."),
    "why does her second application wait": (
        ["explain", "ann-10"], 0, summary,
        f"{ANN} {ONE_APPLICATION} {NO_NODE} All of this has to change.",
    ),
    "why did rob wait before blue came": (
        ["explain", "rob-18-5", "--at", "BEFORE"], 0, summary,
        f"Queue root.red: 1 vcore requested, 40 used, 40 allowed. {NO_NODE} Both have to change.",
    ),
    "why does sam wait": (["explain", "sam-65"], 0, summary, NO_NODE),
    "why does bea wait": (["explain", "bea-40"], 0, summary, f"{GROUP} {NO_NODE} Both have to change."),
    "what holds a tenant": (["explain", "root.blue"], 0, held, (10, 30, ["limit", "no-node"])),
    "what holds a user": (["explain", "ann", "--kind", "user"], 0, held, (4, 6, ["limit", "no-node"])),
    "what would become of one more of ann's": (
        ["plan", "PATH/ann.yaml"], 1, lambda rows: [one["code"] for one in rows[0]["causes"]], ["limit", "no-node"],
    ),
    "may eve come in": (["plan", "PATH/eve.yaml"], 1, lambda rows: rows[0]["outcome"], "refused"),
    "where would zed be placed": (["plan", "PATH/zed.yaml"], 1, lambda rows: rows[0]["queue"], "root.shared"),
    "since when is red full": (
        ["bisect", "queue root.red usage.vcore >= max.vcore"], 0,
        lambda rows: rows[0]["event"]["ask"].startswith("rob-"), True,
    ),
    "since when is shared at its guarantee": (
        ["bisect", "queue root.shared usage.vcore >= guaranteed.vcore"], 0,
        lambda rows: rows[0]["event"]["ask"], "sam-40",
    ),
    "what ended while blue got its share": (
        ["diff", "BEFORE", "end", "--only", "allocations"], 0,
        lambda rows: sorted({(one["what"], one["key"][:3]) for one in rows}), [("came", "bea"), ("went", "rob")],
    ),
    "who preempted": (
        ["audit", "who-preempted"], 0,
        lambda rows: (len(rows), {row["queue"].split(".")[1] for row in rows}), (30, {"red"}),
    ),
    "who was preempted in shared": (["audit", "who-preempted", "--queue", "root.shared"], 0, len, 0),
    "who was refused": (["audit", "rejected-inputs"], 0, len, 1),
    "who changed the queues, and why": (
        ["audit", "config-history"], 0,
        lambda rows: [(row["actor"], row["message"]) for row in rows], [("ops", "two tenants")],
    ),
    "who still waits in blue": (["audit", "still-waiting", "--queue", "root.blue"], 0, len, 10),
    "which events were about blue": (
        ["log", "show", "--queue", "root.blue", "--type", "AllocationBound"], 0, len, 30,
    ),
    "what would 20 cores for blue have changed": (
        ["whatif", "--config", "PATH/next.yaml", "--from", "start"], 1,
        lambda rows: [rows[0][side]["root.blue.team01"]["bound"] for side in ("supposed", "recorded")],
        [20, 30],
    ),
    "is the log what was decided": (["verify"], 0, lambda rows: (rows[0]["difference"], rows[0]["damage"]), (None, None)),
}  # fmt: skip


@pytest.fixture(scope="module")
def before():
    """Return the event before the first ask of blue."""
    found = [
        event.seq for _, events, _ in steps() for event in events
        if getattr(event, "application", "") == "bea-1"
    ]  # fmt: skip
    return str(found[0] - 1)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_is_the_one_derived_by_hand(question, world, before, capsys):
    """Asked as the documents ask, answered as a document a line."""
    command, code, found, expected = QUESTIONS[question]
    words = [word.replace("PATH", str(world)).replace("BEFORE", before) for word in command]
    place = (
        ["--db", str(world / "audit.db")]
        if words[0] == "audit"
        else ["--log", str(world / "log.jsonl")]
    )
    capsys.readouterr()
    assert run([*words, *place, "--json"]) == code
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found(rows) == expected
