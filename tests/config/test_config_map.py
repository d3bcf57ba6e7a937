"""What YuniKorn's own files hold: its ConfigMap, its spellings, and all mistakes in one pass."""

from __future__ import annotations

import pytest

from events.configuration import FilterSpec, PlacementRuleSpec
from evsched.config import load_mapping, load_texts
from tests.config.test_queues_yaml import below_root, faults, load_one


def test_names_of_placement_rules_in_any_case():
    """As YuniKorn's own sample file writes them: the names of rules, and the types of filters."""
    spec = load_one(
        "partitions: [{queues: [{name: a, parent: true}], placementrules: ["
        "{name: User, create: true, filter: {type: ALLOW, groups: [ops]},"
        " parent: {name: Provided}}, {name: FIXED, value: A.x, create: true},"
        " {name: Tag, value: namespace, filter: {type: Deny, users: [eve]}}]}]"
    )
    assert [rule.name for rule in spec.placement_rules] == ["user", "fixed", "tag"]
    assert spec.placement_rules[0].parent == PlacementRuleSpec(name="provided")
    assert spec.placement_rules[0].filter == FilterSpec(allow=True, groups=("ops",))
    assert spec.placement_rules[2].filter == FilterSpec(allow=False, users=("eve",))


@pytest.mark.parametrize(
    ("where", "path"),
    [
        ("resources: {max: {vcore: }}", "resources.max.vcore"),
        ("resources: {guaranteed: {memory: null}}", "resources.guaranteed.memory"),
        ("limits: [{users: [a], maxresources: {gpu: ~}}]", "limits[0].maxresources.gpu"),
    ],
)
def test_an_amount_of_nothing_is_refused(where, path):
    """Left out it would not be limited, which nobody means who names the resource."""
    (found,) = faults(below_root(f"{{name: a, {where}}}"))
    assert found.endswith(f"queues[0].queues[0].{path}: found nothing, expected an amount")


def test_the_shape_and_the_rules_are_judged_in_one_pass():
    """What is written wrongly hides nothing that breaks a rule elsewhere, and is not told twice."""
    found = faults(
        below_root(
            "{name: a, foo: 1},\n{name: b, resources: {max: {vcore: 1}, guaranteed: {vcore: 2}}},\n"
            "{name: c, limits: [{users: [a], maxresources: {vcore: x}}]},\n{resources: {}},\n5"
        )
    )
    assert [one.partition(": ")[0] for one in found] == [
        "queues.yaml:5 partitions[0].queues[0].queues[0].foo",
        "queues.yaml:6 partitions[0].queues[0].queues[1].resources.max.vcore",
        "queues.yaml:7 partitions[0].queues[0].queues[2].limits[0].maxresources.vcore",
        "queues.yaml:8 partitions[0].queues[0].queues[3]",
        "queues.yaml:9 partitions[0].queues[0].queues[4]",
    ]


def test_a_queue_without_a_readable_name_is_not_missed_by_placement_rules():
    """They may mean that very queue, so they are judged once the names can be read."""
    found = faults(
        "partitions:\n- queues: [{nmae: a}]\n  placementrules: [{name: fixed, value: a}]\n"
    )
    assert all("placementrules" not in one for one in found)
    assert any("found the unknown key 'nmae'" in one for one in found)


CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn}
data:
  service.schedulingInterval: 1s
  queues.yaml: |
    partitions:
      - name: default
        queues:
          - name: a
            resources: {max: {vcore: %s}}
"""


def test_the_config_map_of_yunikorn():
    """Its queues are read where they stand; a setting of the service beside them brings a note."""
    loaded = load_texts([("map.yaml", CONFIG_MAP % "4")])
    assert loaded.configurations[0].root.queues[0].maximum == {"vcore": 4000}
    assert [str(one) for one in loaded.warnings] == [
        (
            "map.yaml:5 data.service.schedulingInterval:"
            " is a setting of YuniKorn's service and has no effect"
        )
    ]


def test_faults_in_a_config_map_have_the_lines_of_the_file():
    """A block keeps its lines; where the text was written otherwise, its own line is all there is."""
    place = "data.queues.yaml.partitions[0].queues[0].resources.max.vcore"
    (found,) = faults(CONFIG_MAP % "1x")
    assert found.startswith(f"queues.yaml:11 {place}: found '1x', expected digits")
    (found,) = faults(CONFIG_MAP % "[")
    assert found.startswith("queues.yaml:11 data.queues.yaml: is no YAML")
    quoted = 'kind: ConfigMap\nmetadata: {name: m}\ndata: {\n  queues.yaml: "partitions: [5]"}\n'
    (found,) = faults(quoted)
    assert found.startswith("queues.yaml:4 data.queues.yaml.partitions[0]: found the integer 5")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("{}", "3 data: found no key queues.yaml, expected the text of a queues.yaml there"),
        ("{service.policyGroup: prod}", "3 data: found no key prod.yaml, expected the text"),
        ("{queues.yaml: ''}", "3 data.queues.yaml: found nothing, expected one queues.yaml"),
        ("{queues.yaml: 5}", "3 data: found no key queues.yaml, expected the text"),
    ],
)
def test_a_config_map_without_queues_is_refused(data, expected):
    """It is named, and so is the key that was looked for."""
    text = f"kind: ConfigMap\nmetadata: {{name: yunikorn-configs}}\ndata: {data}\n"
    (found,) = faults(text)
    assert found.startswith(f"queues.yaml:{expected}")


def test_the_administrators_config_map_counts_before_the_defaults():
    """Both come out of `kubectl get configmap -o yaml` as one list."""
    maps = "".join(
        f"- kind: ConfigMap\n  metadata: {{name: yunikorn-{name}}}\n"
        f"  data: {{queues.yaml: 'partitions: [{{queues: [{{name: {name}}}]}}]'}}\n"
        for name in ("configs", "defaults")
    )
    spec = load_one(f"kind: List\napiVersion: v1\nitems:\n{maps}")
    assert [queue.name for queue in spec.root.queues] == ["configs"]


def test_resources_of_root_are_refused_in_a_file():
    """YuniKorn's loader refuses them as well: root has what its nodes have."""
    for field in ("guaranteed", "max"):
        (found,) = faults(
            f"partitions:\n- queues:\n  - name: root\n    resources:\n      {field}: {{vcore: 1}}\n"
        )
        assert found == (
            f"queues.yaml:5 partitions[0].queues[0].resources.{field}:"
            f" queue root: found {field} resources, expected none: the nodes limit root"
        )
    direct = {"partitions": [{"queues": [{"name": "root", "resources": {"max": {"vcore": 1}}}]}]}
    loaded = load_mapping("yunikorn", direct)
    assert loaded.configurations[0].root.maximum == {"vcore": 1000}
    (warning,) = loaded.warnings
    assert "queue root: found max resources, expected none" in str(warning)


def warnings(queues):
    """Return what is remarked of queues below root."""
    return [one.message for one in load_texts([("q.yaml", below_root(queues))]).warnings]


NOT_RECLAIMED = "none of that can be reclaimed while it is within its guarantee (law 5)"


@pytest.mark.parametrize(
    ("queue", "said"),
    [
        ("guaranteed: {vcore: 1}, max: {vcore: 2, gpu: 4}", "vcore and nothing of gpu"),
        ("guaranteed: {gpu: 1}, max: {vcore: 2}", "gpu and nothing of vcore"),
        ("guaranteed: {vcore: 1, gpu: 0}, max: {gpu: 4}", ""),
        ("guaranteed: {vcore: 1}, max: {vcore: 2}", ""),
        ("guaranteed: {vcore: 0}, max: {gpu: 2}", ""),
        ("max: {gpu: 2}", ""),
    ],
)
def test_a_guarantee_that_keeps_other_resources_from_being_reclaimed_is_told(queue, said):
    """One in some types and none in another that the queue uses, at the line of the guarantee."""
    message = f"queue root.a: guarantees {said}, which it uses: {NOT_RECLAIMED}"
    assert warnings(f"{{name: a, resources: {{{queue}}}}}") == ([message] if said else [])


def test_what_every_pod_uses_counts_where_any_queue_names_it():
    """A queue with a guarantee of cores alone has memory too, once the partition knows memory."""
    found = warnings(
        "{name: a, resources: {guaranteed: {vcore: 1}}},"
        "{name: b, resources: {max: {memory: 1G}},"
        " limits: [{users: [u], maxresources: {gpu: 1}}]}"
    )
    assert found == [
        f"queue root.a: guarantees vcore and nothing of memory, which it uses: {NOT_RECLAIMED}"
    ]
