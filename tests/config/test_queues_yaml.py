"""queues.yaml: what each key becomes, and that every fault names file, line, path, what was found and what was expected."""

from __future__ import annotations

import textwrap

import pytest

from events.configuration import (
    FilterSpec,
    LimitSpec,
    PaceSpec,
    PlacementRuleSpec,
    QueueSpec,
    TemplateSpec,
    YunikornSpec,
)
from evsched.config import ConfigurationError, from_mapping, load_mapping, load_texts

FULL = """\
checksum: "ABC"
partitions:
  - name: Default
    preemption:
      enabled: false
      quotapreemptionenabled: true
      quota.preemption.miss: 25
      pace: {interval: 5s, victims: 10, resources: {vcore: 4, memory: 8Gi}}
      eviction: {grace: 10s, attempts: 3}
      cost: default
    nodesortpolicy:
      type: binpacking
      resourceweights: {vcore: 1.5, memory: 0, gpu: "2"}
    usergroupresolver: {type: os}
    limits:
      - limit: everybody
        users: ["*"]
        maxapplications: 100
    placementrules:
      - name: tag
        value: namespace
        create: true
        parent: {name: fixed, value: root.Prod}
      - name: user
        filter: {type: deny, users: ["dev-.*"]}
        create: true
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: Prod
            parent: true
            adminacl: "alice,bob ops"
            maxapplications: 50
            resources:
              guaranteed: {vcore: 10, memory: 10G}
              max: {vcore: 20500m, memory: 20Gi, gpu: 0}
              quota.preemption.delay: 7200
            properties:
              application.sort.policy: fair
              priority.offset: 100
            childtemplate:
              maxapplications: 5
              properties: {preemption.delay: 10s}
              resources:
                guaranteed: {vcore: 1}
                max: {vcore: 2}
          - name: test
            preemption.policy: fence
            limits:
              - limit: one
                users: [carol]
                groups: [dev]
                maxresources: {memory: 1G}
                maxapplications: 2
"""


def load_one(text: str) -> YunikornSpec:
    """Return the only partition of a queues.yaml text."""
    (spec,) = load_texts([("queues.yaml", text)]).configurations
    return spec


def faults(text: str) -> list[str]:
    """Return what a queues.yaml text is refused for."""
    with pytest.raises(ConfigurationError) as caught:
        load_texts([("queues.yaml", text)])
    return [str(fault) for fault in caught.value.faults]


def below_root(queues: str) -> str:
    """Return a queues.yaml whose root has these queues; their first line is the fifth."""
    indented = textwrap.indent(queues, "        ")
    return f"partitions:\n  - name: default\n    queues:\n      - {{name: root, queues: [\n{indented}]}}\n"


def test_everything():
    """Each key of the format becomes its field of the model."""
    spec = load_one(FULL)
    everybody = LimitSpec(description="everybody", users=("*",), max_applications=100)
    assert spec == YunikornSpec(
        partition="default",
        preemption_enabled=False,
        quota_preemption_enabled=True,
        quota_miss_percent=25,
        pace=PaceSpec(
            interval_ms=5000, max_victims=10, max_resources={"vcore": 4000, "memory": 8 * 2**30}
        ),
        eviction_grace_ms=10_000,
        eviction_attempts=3,
        node_sort_policy="binpacking",
        node_sort_weights={"vcore": 1500, "memory": 0, "gpu": 2000},
        user_group_resolver="os",
        limits=(everybody,),
        placement_rules=(
            PlacementRuleSpec(
                name="tag",
                value="namespace",
                create=True,
                parent=PlacementRuleSpec(name="fixed", value="root.Prod"),
            ),
            PlacementRuleSpec(
                name="user", create=True, filter=FilterSpec(allow=False, users=("dev-.*",))
            ),
        ),
        root=QueueSpec(
            name="root",
            parent=True,
            submit_acl="*",
            limits=(everybody,),
            queues=(
                QueueSpec(
                    name="prod",
                    parent=True,
                    admin_acl="alice,bob ops",
                    max_applications=50,
                    guaranteed={"vcore": 10_000, "memory": 10**10},
                    maximum={"vcore": 20_500, "memory": 20 * 2**30},
                    quota_preemption_delay_ms=7_200_000,
                    properties={"application.sort.policy": "fair", "priority.offset": "100"},
                    template=TemplateSpec(
                        max_applications=5,
                        properties={"preemption.delay": "10s"},
                        guaranteed={"vcore": 1000},
                        maximum={"vcore": 2000},
                    ),
                ),
                QueueSpec(
                    name="test",
                    properties={"preemption.policy": "fence"},
                    limits=(
                        LimitSpec(
                            description="one",
                            users=("carol",),
                            groups=("dev",),
                            max_resources={"memory": 10**9},
                            max_applications=2,
                        ),
                    ),
                ),
            ),
        ),
    )


def test_defaults():
    """A partition needs queues and nothing else."""
    spec = load_one("partitions: [{queues: [{name: root}]}]")
    assert spec == YunikornSpec(root=QueueSpec(name="root", parent=True))


def test_flat_keys_of_preemption():
    """Our settings may stand flat, with the mapping's name before them."""
    keys = "pace.interval: 2s, pace.victims: 3, pace.resources: {vcore: 1}, eviction.grace: 1m, eviction.attempts: 7"
    flat = load_one(f"partitions: [{{queues: [], preemption: {{{keys}, quotapreemptionmiss: 5}}}}]")
    assert flat.pace == PaceSpec(interval_ms=2000, max_victims=3, max_resources={"vcore": 1000})
    assert (flat.eviction_grace_ms, flat.eviction_attempts, flat.quota_miss_percent) == (
        60_000,
        7,
        5,
    )


def test_root_on_top():
    """Where no root is written one is put on top, and has the partition's limits."""
    spec = load_one(
        "partitions: [{limits: [{users: [a], maxapplications: 1}], queues: [{name: a}, {name: b, queues: [{name: c}]}]}]"
    )
    assert (spec.root.name, spec.root.parent) == ("root", True)
    assert [(queue.name, queue.parent) for queue in spec.root.queues] == [("a", False), ("b", True)]
    assert spec.root.limits == spec.limits


def test_several_partitions():
    """Each partition is a configuration of its own."""
    loaded = load_texts(
        [("q", "partitions: [{queues: [{name: a}]}, {name: gpu, queues: [{name: a}]}]")]
    )
    assert [spec.partition for spec in loaded.configurations] == ["default", "gpu"]


def test_null_counts_as_absent():
    """A key without a value is as good as none."""
    keys = "".join(
        f"    {key}:\n"
        for key in ("queues", "resources", "properties", "limits", "submitacl", "childtemplate")
    )
    spec = load_one(f"partitions:\n- queues:\n  - name: root\n{keys}  limits:\n  preemption:\n")
    assert spec == YunikornSpec(root=QueueSpec(name="root", parent=True))


def test_zero_maximum_counts_as_not_set():
    """It does not limit, and a warning says so; a guarantee of zero stays one."""
    loaded = load_texts(
        [("q.yaml", below_root("{name: a, resources: {max: {gpu: 0}, guaranteed: {gpu: 0}}}"))]
    )
    queue = loaded.configurations[0].root.queues[0]
    assert (queue.maximum, queue.guaranteed) == (None, {"gpu": 0})
    assert [str(warning) for warning in loaded.warnings] == [
        "q.yaml:5 partitions[0].queues[0].queues[0].resources.max.gpu: a maximum of 0 counts as not set: gpu is not limited here"
    ]


def test_warnings_have_a_place():
    """A property that will not do what its author may think is told with its line."""
    loaded = load_texts(
        [
            (
                "q.yaml",
                below_root(
                    "{name: a,\nproperties: {preemption.delay: soon,\npriority.offset: 2000000000}}"
                ),
            )
        ]
    )
    assert [(warning.line, warning.path.rpartition("].")[2]) for warning in loaded.warnings] == [
        (6, "properties.preemption.delay"),
        (7, "properties.priority.offset"),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "a: 1",
            "queues.yaml:1: found neither partitions (queues.yaml) nor kind and apiVersion (Kueue manifests)",
        ),
        (
            "",
            "queues.yaml: is empty, expected partitions (queues.yaml) or kind and apiVersion (Kueue manifests)",
        ),
        ("partitions:", "queues.yaml:1: found no partitions, expected a list of at least one"),
        (
            "partitions: []",
            "queues.yaml:1 partitions: found no partitions, expected a list of at least one",
        ),
        ("partitions: 5", "queues.yaml:1 partitions: found the integer 5, expected a list"),
        ("partitions: [5]", "queues.yaml:1 partitions[0]: found the integer 5, expected a mapping"),
        (
            "partitions: [{name: x}]",
            "queues.yaml:1 partitions[0]: found no queues, expected a list of them",
        ),
        (
            "partitions: [{queues: []}]\nextra: 1",
            "queues.yaml:2 extra: found the unknown key 'extra', expected one of checksum, partitions",
        ),
        (
            "partitions:\n- queues: []\n- name: DEFAULT\n  queues: []",
            "queues.yaml:3 partitions[1]: found partition default a second time, expected once",
        ),
        (
            "partitions: [{queues: [{name: root}, {name: a}]}]",
            "queues.yaml:1 partitions[0].queues[0]: found root beside other queues, expected the others below it",
        ),
        (
            "partitions:\n- queues: []\n  preemption: {enabled: no}",
            "queues.yaml:3 partitions[0].preemption.enabled: found the boolean no, expected true or false",
        ),
        (
            "partitions: [{queues: [], preemption: {quota.preemption.miss: 101}}]",
            (
                "queues.yaml:1 partitions[0].preemption.quota.preemption.miss:"
                " found the integer 101, expected an integer from 0 to 100"
            ),
        ),
        (
            "partitions: [{queues: [], nodesortpolicy: {type: random}}]",
            "queues.yaml:1 partitions[0].nodesortpolicy.type: found 'random', expected one of (empty), fair, binpacking",
        ),
        (
            "partitions: [{queues: [], preemption: {pace: {interval: 0s}}}]",
            "queues.yaml:1 partitions[0].preemption.pace.interval: found '0s', expected a duration above 0s",
        ),
        (
            "partitions: [{queues: [], preemption: {pace: {interval: 1s}, pace.interval: 2s}}]",
            (
                "queues.yaml:1 partitions[0].preemption.pace.interval:"
                " found pace.interval and interval under pace, expected one of them"
            ),
        ),
        (
            (
                "partitions: [{queues: [{name: root, limits: [{users: [a], maxapplications: 1}]}],\n"
                "limits: [{users: [a], maxapplications: 2}]}]"
            ),
            (
                "queues.yaml:2 partitions[0].limits:"
                " found limits that are not those of the root queue, expected the same or one of them"
            ),
        ),
    ],
)
def test_partition_refused(text, expected):
    """One fault of the document or a partition, with its place."""
    assert faults(text) == [expected]


PLACE = "partitions[0].queues[0].queues[0]"


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        (
            "{nam: a}",
            [
                f"queues.yaml:5 {PLACE}.nam: found the unknown key 'nam', expected one of",
                "without a name",
            ],
        ),
        ("{name: a, Parent: true}", ["found the unknown key 'Parent'"]),
        (
            "{name: no}",
            [
                f'queues.yaml:5 {PLACE}.name: found the boolean no, expected text (write "no" in quotes)'
            ],
        ),
        (
            "{name: 010}",
            [
                f'queues.yaml:5 {PLACE}.name: found the integer 010, expected text (write "010" in quotes)'
            ],
        ),
        (
            "{name: 12:30:00}",
            ['found the integer 12:30:00, expected text (write "12:30:00" in quotes)'],
        ),
        ("{name: 2026-01-01}", ["found the date 2026-01-01, expected text"]),
        ('{name: "a\\u001bb"}', ["found control characters"]),
        (
            "{name: a, resources: {max: {vcore: 1.5}}}",
            [f"{PLACE}.resources.max.vcore: found '1.5', expected digits and a suffix"],
        ),
        ("{name: a, resources: {max: {memory: -5}}}", ["found '-5', expected digits"]),
        ("{name: a, resources: {max: {memory: 010}}}", ["found the integer 010, expected text"]),
        ("{name: a, resources: {max: {memory: yes}}}", ["found the boolean yes"]),
        (
            "{name: a, resources: {max: {memory: 9Ei}}}",
            ["expected at most 9007199254740992 base units of memory"],
        ),
        (
            "{name: a, resources: {max: [1]}}",
            [f"{PLACE}.resources.max: found a list, expected a mapping"],
        ),
        (
            "{name: a, resources: {maximum: {}}}",
            ["found the unknown key 'maximum', expected one of guaranteed, max, quota.preemp"],
        ),
        (
            "{name: a, resources: {quota.preemption.delay: 60s}}",
            ["found '60s', expected an integer from 0 to"],
        ),
        (
            "{name: a, resources: {quota.preemption.delay: -1}}",
            ["found the integer -1, expected an integer from 0 to"],
        ),
        (
            "{name: a, resources: {quota.preemption.delay: 010}}",
            ["written in plain decimal digits"],
        ),
        (
            "{name: a, resources: {quota.preemption.delay: 99999999999999999999}}",
            ["expected an integer from 0"],
        ),
        ("{name: a, maxapplications: -1}", ["found the integer -1, expected an integer from 0"]),
        ("{name: a, maxapplications: many}", ["found 'many', expected an integer"]),
        ("{name: a, parent: maybe}", ["found 'maybe', expected true or false"]),
        (
            "{name: a, properties: {priority.offset: [1]}}",
            [f"{PLACE}.properties.priority.offset: found a list, expected text"],
        ),
        (
            "{name: a, properties: {x: true}}",
            ['found the boolean true, expected text (write "true" in quotes)'],
        ),
        (
            "{name: a, priority.offset: 1, properties: {priority.offset: 2}}",
            ["found priority.offset here and among the properties"],
        ),
        ("{name: a, limits: {users: [a]}}", ["found a mapping, expected a list"]),
        ("{name: a, limits: [{user: a, maxapplications: 1}]}", ["found the unknown key 'user'"]),
        (
            "{name: a, parent: true, childtemplate: {resources: {max: {vcore: 0}}}}",
            ["expected an amount above 0 in a template"],
        ),
        (
            "{name: a, queues: [{name: b, queue: []}]}",
            [f"{PLACE}.queues[0].queue: found the unknown key 'queue'"],
        ),
        ("5", [f"queues.yaml:5 {PLACE}: found the integer 5, expected a mapping"]),
    ],
)
def test_queue_refused(queue, expected):
    """One fault in a queue, with its place; the words that matter are in the sentence."""
    found = "\n".join(faults(below_root(queue)))
    assert all(words in found for words in expected), found


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{}", "without a name"),
        (
            "{name: recovery}",
            "placementrules[0].name: found 'recovery', expected one of fixed, tag, user, provided",
        ),
        ("{name: user, create: 1}", "found the integer 1, expected true or false"),
        (
            "{name: user, filter: {type: block}}",
            "filter.type: found 'block', expected one of allow, deny, (empty)",
        ),
        (
            "{name: user, parent: {name: user, x: 1}}",
            "placementrules[0].parent.x: found the unknown key 'x'",
        ),
    ],
)
def test_placement_rule_refused(rule, expected):
    """One fault in a placement rule, with its place."""
    assert expected in "\n".join(faults(f"partitions: [{{queues: [], placementrules: [{rule}]}}]"))


def test_all_faults_are_told():
    """A document with several faults is refused once, with all of them in the order of the document."""
    text = below_root(
        "{name: a, parent: 7},\n{name: b, resources: {max: {vcore: x}}},\n{name: c, zzz: 1}"
    )
    assert [fault.split(" ")[0] for fault in faults(text)] == [
        "queues.yaml:5",
        "queues.yaml:6",
        "queues.yaml:7",
    ]


def test_many_faults_are_cut():
    """Nobody reads more than a hundred at a time."""
    assert len(faults(below_root(",\n".join("{nam: a}" for _ in range(500))))) == 100


def test_deep_queues_are_refused():
    """Depth is bounded long before anything recurses too deeply."""
    queue = "{name: a}"
    for _ in range(28):
        queue = f"{{name: a, queues: [{queue}]}}"
    load_one(below_root(queue))
    for _ in range(5):
        queue = f"{{name: a, queues: [{queue}]}}"
    assert "nested more than" in faults(below_root(queue))[0]


def test_mapping_and_text_agree():
    """What a JSON or YAML parser made of the document loads to the same configuration."""
    document = {
        "partitions": [
            {
                "name": "default",
                "queues": [
                    {"name": "root", "queues": [{"name": "a", "resources": {"max": {"vcore": 5}}}]}
                ],
            }
        ]
    }
    assert from_mapping("yunikorn", document) == (
        load_one(below_root("{name: a, resources: {max: {vcore: 5}}}")),
    )


def test_mapping_is_as_strict():
    """A mapping has paths and no lines."""
    with pytest.raises(ConfigurationError) as caught:
        load_mapping("yunikorn", {"partitions": [{"queues": [{"name": True}]}]})
    assert [str(fault) for fault in caught.value.faults] == [
        'config queues.partitions[0].queues[0].name: found the boolean true, expected text (write "true" in quotes)'
    ]
