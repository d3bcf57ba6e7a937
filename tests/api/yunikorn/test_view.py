"""YuniKorn's answers, field for field."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import FilterSpec, KueueSpec, LimitSpec, PlacementRuleSpec
from evsched.api.yunikorn import answers, cluster
from evsched.api.yunikorn.amounts import FULL, percent
from evsched.api.yunikorn.config import DEADLOCKS, as_yaml, document
from evsched.api.yunikorn.queues import go_duration
from evsched.api.yunikorn.view import NotThere, OtherFamily, YunikornView
from evsched.config.loading import load_mapping, load_texts
from evsched.core.state import State
from tests.api.yunikorn.views import START, ask, story, tree, view_of
from tests.core.histories import configurations, histories
from tests.examples import examples
from tests.projections.test_asof import steps_of

NS = 1_000_000

FIELDS = {
    "ClusterInfo": "startTime rmBuildInformation partition* clusterName*",
    "PartitionInfo": """clusterId* name* capacity* nodeSortingPolicy* preemptionEnabled*
        quotaPreemptionEnabled* totalNodes applications totalContainers state
        lastStateTransitionTime""",
    "CapacityInfo": "capacity usedCapacity utilization",
    "NodeSortingInfo": "type resourceWeights",
    "RulesInfo": "partition* rules",
    "RuleInfo": "name* parameters filter parentRule",
    "RuleFilterInfo": "type* userList groupList userExp groupExp",
    "QueueInfo": """queuename* status partition* pendingResource maxResource guaranteedResource
        allocatedResource preemptingResource headroom isLeaf* isManaged* properties parent template
        children childNames absUsedCapacity maxRunningApps runningApps currentPriority*
        allocatingAcceptedApps sortingPolicy prioritySorting* preemptionEnabled*
        isPreemptionFence* preemptionDelay quotaPreemptionDelay isPriorityFence* priorityOffset""",
    "TemplateInfo": "maxApplications maxResource guaranteedResource properties",
    "ApplicationInfo": """applicationID* usedResource maxUsedResource pendingResource partition*
        queueName* submissionTime finishedTime requests allocations applicationState user groups
        rejectedMessage stateLog placeholderData hasReserved reservations maxRequestPriority
        startTime resourceHistory backoffDeadline""",
    "StateChangeInfo": "time applicationState",
    "ResourceHistoryInfo": "resourceUsage preemptedResource placeholderResource",
    "AskInfo": """allocationKey* allocationTags requestTime resource priority requiredNodeId
        applicationId placeholder taskGroupName allocationLog triggeredPreemption originator
        schedulingAttempted triggeredScaleUp""",
    "SaidInfo": "message lastOccurrence count",
    "AllocationInfo": """allocationKey* allocationTags requestTime allocationTime allocationDelay
        resource priority nodeId applicationId placeholder placeholderUsed taskGroupName preempted
        originator""",
    "NodeInfo": """nodeID* hostName rackName attributes capacity allocated occupied available utilized
        allocations foreignAllocations schedulable* isReserved* reservations""",
    "UtilizationsInfo": "clusterId* partition* utilizations",
    "UtilizationInfo": "type utilization",
    "BucketInfo": "bucketName numOfNodes nodeNames",
    "UserUsageInfo": "userName* groups queues*",
    "GroupUsageInfo": "groupName* applications queues*",
    "UsageInfo": """queuePath* resourceUsage runningApplications maxResources maxApplications
        children""",
    "AppsThenInfo": "timestamp totalApplications",
    "ContainersThenInfo": "timestamp totalContainers",
    "EventBatchInfo": "InstanceUUID* LowestID* HighestID* EventRecords*",
    "EventRecordInfo": """type objectID message timestampNano eventChangeType eventChangeDetail
        referenceID resource""",
    "HealthInfo": "Healthy* HealthChecks",
    "HealthCheckInfo": "Name Succeeded* Description DiagnosisMessage",
    "ValidatedInfo": "allowed* reason",
    "ProblemInfo": "status_code* message* description*",
}
"""Every answer's fields in YuniKorn's names; * marks what is always there."""


@pytest.mark.parametrize("name", FIELDS)
def test_answers_have_exactly_the_fields_of_yunikorn(name):
    """Each answer has YuniKorn's fields, those that are always there without a default, all others left out when empty."""
    kind = getattr(answers, name)
    found = [
        f"{field.encode_name}{'*' if field.required else ''}"
        for field in msgspec.structs.fields(kind)
    ]
    assert found == FIELDS[name].split()
    assert kind.__struct_config__.omit_defaults


@pytest.fixture(name="view")
def view_of_story(tmp_path):
    """Return the view of the end of the small story."""
    with view_of(tmp_path / "model.db", story()) as view:
        yield view


def plain(answer):
    """Return an answer as a client reads it."""
    return msgspec.json.decode(msgspec.json.encode(answer))


def test_a_queue_has_its_limits_usage_headroom_and_settings(view):
    """A leaf shows amounts in base units, what is left below every maximum on its path, and its properties with their meaning."""
    assert plain(view.queue("default", "root.prod", subtree=False)) == {
        "queuename": "root.prod",
        "status": "Active",
        "partition": "default",
        "pendingResource": {"vcore": 7000},
        "maxResource": {"vcore": 8000},
        "guaranteedResource": {"memory": 8, "vcore": 6000},
        "allocatedResource": {"vcore": 2000},
        "headroom": {"memory": 40, "vcore": 6000},
        "isLeaf": True,
        "isManaged": True,
        "properties": {"preemption.delay": "90s", "priority.offset": "3"},
        "parent": "root",
        "absUsedCapacity": {"vcore": 25},
        "maxRunningApps": 5,
        "runningApps": 1,
        "currentPriority": 1,
        "sortingPolicy": "fifo",
        "prioritySorting": True,
        "preemptionEnabled": True,
        "isPreemptionFence": False,
        "preemptionDelay": "1m30s",
        "quotaPreemptionDelay": "0s",
        "isPriorityFence": False,
        "priorityOffset": 3,
    }


def test_the_tree_holds_every_queue_and_a_queue_alone_names_those_below(view):
    """The tree has root's children with theirs; asked for alone, a queue names its children, with its subtree it has them."""
    tree_found = view.queues("default")
    assert [child.queuename for child in tree_found.children] == ["root.batch", "root.prod"]
    assert tree_found.children[0].children[0].queuename == "root.batch.test"
    alone = view.queue("default", "root.batch", subtree=False)
    assert (alone.children, alone.child_names) == ([], ["root.batch.test"])
    whole = view.queue("default", "root.batch", subtree=True)
    assert [child.queuename for child in whole.children] == ["root.batch.test"]


def test_root_has_the_capacity_of_the_nodes_as_its_maximum(view):
    """Root's maximum is what all nodes have, as YuniKorn sets it; nothing waits in a queue at the smallest priority there is."""
    root = view.queue("default", "root", subtree=False)
    assert root.max_resource == {"memory": 40, "vcore": 20_000}
    assert root.abs_used_capacity == {"memory": 0, "vcore": 25}
    assert view.queue("default", "root.batch", subtree=False).current_priority == -(2**31)


def test_applications_are_in_yunikorns_states_with_their_times(view):
    """One that runs and waits is Running, one without asks New; state log, start and usage are those of the log."""
    (spark,) = view.applications_of("default", "root.prod")
    found = plain(spark)
    assert found["applicationState"] == "Running"
    assert found["stateLog"] == [
        {"time": START * NS, "applicationState": "New"},
        {"time": (START + 1000) * NS, "applicationState": "Accepted"},
        {"time": (START + 1000) * NS, "applicationState": "Running"},
    ]
    assert found["startTime"] == START + 1000
    assert found["resourceHistory"] == {"resourceUsage": {"UNKNOWN": {"vcore": 2000 * 92}}}
    assert found["requests"] == [
        {
            "allocationKey": "exec-1",
            "requestTime": (START + 32_000) * NS,
            "resource": {"vcore": 7000},
            "priority": "-2",
            "applicationId": "spark",
        }
    ]
    assert found["allocations"][0]["originator"] is True
    states = {
        one.application_id: one.application_state
        for one in view.applications_in("default", "active")
    }
    assert states == {"app-batch.test": "Running", "late": "New", "spark": "Running"}


def test_applications_are_narrowed_by_state_and_id(view):
    """A status narrows in any case of letters; an id is found in its queue alone, or anywhere when no queue is named."""
    names = [one.application_id for one in view.applications_in("default", "active", "NEW")]
    assert names == ["late"]
    assert view.application("default", "spark", "root.prod").user == "ann"
    with pytest.raises(NotThere, match="Application not found"):
        view.application("default", "spark", "root.batch.test")
    assert view.application("default", "done").application_state == "Completed"


def test_what_ended_and_what_was_refused_is_known_for_a_while(view):
    """A completed application has the time it finished, a rejected one the reason."""
    (done,) = view.applications_in("default", "completed")
    assert (done.application_id, done.finished_time) == ("done", (START + 33_000) * NS)
    (lost,) = view.applications_in("default", "rejected")
    assert lost.rejected_message == "application lost: queue root.none does not exist"
    assert view.partitions()[0].applications == {
        "Completed": 1, "New": 1, "Rejected": 1, "Running": 2, "total": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda view: view.queues("other"), "Partition not found"),
        (lambda view: view.queue("default", "root.x", subtree=False), "Queue not found"),
        (lambda view: view.node("default", "n9"), "Node not found"),
        (lambda view: view.user("default", "zoe"), "User not found"),
        (lambda view: view.group("default", "dev"), "Group not found"),
        (lambda view: view.application("default", "x"), "Application not found"),
    ],
)
def test_what_is_not_there_is_said_in_yunikorns_words(view, call, said):
    """A name that is not known is answered with YuniKorn's own message."""
    with pytest.raises(NotThere, match=said):
        call(view)


def test_nodes_show_what_is_used_and_how_full_they_are(view):
    """A node has capacity, usage and percentages; the buckets count each node once for every resource that it has."""
    node = plain(view.node("default", "n2"))
    assert (node["utilized"], node["schedulable"]) == ({"memory": 0, "vcore": 30}, False)
    assert node["available"] == {"memory": 20, "vcore": 7000}
    (found,) = view.utilizations()
    by_type = {
        one.type: [bucket.num_of_nodes for bucket in one.utilization] for one in found.utilizations
    }
    assert by_type == {"memory": [2, *[0] * 9], "vcore": [0, 1, 1, *[0] * 7]}


def test_counts_of_the_past_are_texts_at_full_minutes(view):
    """The histories have one element a minute, with the count as text."""
    assert plain(view.app_history())[-1] == {
        "timestamp": (START + 60_000) * NS,
        "totalApplications": "3",
    }
    assert plain(view.container_history())[-1]["totalContainers"] == "2"


def test_users_and_groups_use_what_their_applications_use(tmp_path):
    """Usage is by queue along the path, with the limit that holds there; a group counts where a limit names it."""
    spec = tree()
    limits = (
        LimitSpec(users=("ann",), max_resources={"vcore": 9000}, max_applications=3),
        LimitSpec(groups=("dev",), max_resources={"vcore": 9500}),
    )
    root = msgspec.structs.replace(spec.root, limits=limits)
    spec = msgspec.structs.replace(spec, root=root, limits=limits)
    spark = v.ApplicationSubmitted(
        application="spark", queue="root.prod", user="ann", groups=("dev",)
    )
    steps = steps_of(spec, [(0, [spark, ask("t", "prod", 2000, application="spark")], False)])
    with view_of(tmp_path / "model.db", steps) as view:
        assert plain(view.user("default", "ann")) == {
            "userName": "ann",
            "groups": {"spark": "dev"},
            "queues": {
                "queuePath": "root",
                "resourceUsage": {"vcore": 2000},
                "runningApplications": ["spark"],
                "maxResources": {"vcore": 9000},
                "maxApplications": 3,
                "children": [
                    {
                        "queuePath": "root.prod",
                        "resourceUsage": {"vcore": 2000},
                        "runningApplications": ["spark"],
                    }
                ],
            },
        }
        group = view.group("default", "dev")
    assert (group.applications, group.queues.max_resources) == (["spark"], {"vcore": 9500})


def test_placement_rules_are_shown_with_filters_and_parents():
    """A rule has its parameters and filter; one entry with a regular expression is an expression, others are names."""
    rule = PlacementRuleSpec(
        name="tag",
        value="namespace",
        create=True,
        filter=FilterSpec(allow=False, users=("b", "a"), groups=("dev.*",)),
        parent=PlacementRuleSpec(name="fixed", value="root.x"),
    )
    spec = msgspec.structs.replace(tree(), placement_rules=(rule,))
    assert plain(cluster.placement_rules(spec))["rules"] == [
        {
            "name": "tag",
            "parameters": {"create": "true", "tagName": "namespace"},
            "filter": {"type": "deny", "userList": ["a", "b"], "groupExp": "dev.*"},
            "parentRule": {"name": "fixed", "parameters": {"create": "false", "queue": "root.x"}},
        }
    ]


@given(configurations())
@examples(40)
def test_the_configuration_is_written_so_that_it_is_read_as_the_same(spec):
    """What `config` answers is a queues.yaml: loaded again it is the configuration in force, from data and from YAML."""
    assert load_mapping("yunikorn", document(spec)).configurations == (spec,)
    text = as_yaml(spec)
    for key in DEADLOCKS:
        assert f"{key}: " in text
    kept = "\n".join(line for line in text.splitlines() if not line.startswith("deadlock"))
    assert load_texts([("queues.yaml", kept)]).configurations == (spec,)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0s"), (500, "500ms"), (1000, "1s"), (1500, "1.5s"), (90_000, "1m30s"), (60_000, "1m0s"),
        (7_200_000, "2h0m0s"), (3_661_001, "1h1m1.001s"),
    ],
)  # fmt: skip
def test_durations_are_written_as_go_writes_them(ms, text):
    """Durations have Go's form, with all smaller units behind the largest."""
    assert go_duration(ms) == text


def test_percentages_are_rounded_towards_zero():
    """Whole percent, rounded down; what is used where there is nothing is YuniKorn's largest number."""
    used = {"vcore": 999, "gpu": 1}
    capacity = {"vcore": 1000, "memory": 5, "gpu": 0, "disk": 0}
    assert percent(used, capacity) == {"disk": 0, "gpu": FULL, "memory": 0, "vcore": 99}


@given(configurations(), histories, st.integers(1, 60))
@examples(15)
def test_every_answer_of_any_history_is_json_and_adds_up(
    tmp_path_factory, configuration, history, seq
):
    """At any moment all answers encode, the applications' usage is root's, and the health check finds nothing wrong."""
    steps = steps_of(configuration, history)
    seq = min(seq, steps[-1].events[-1].seq)
    path = tmp_path_factory.mktemp("views") / "model.db"
    with view_of(path, steps, seq) as view:
        dump = plain(view.dump())
        used = {}
        for one in dump.get("applications", ()):
            for name, amount in one.get("usedResource", {}).items():
                used[name] = used.get(name, 0) + amount
        assert used == dump["queues"][0].get("allocatedResource", {})
        listed = sum(len(one.get("allocations", ())) for one in dump.get("applications", ()))
        assert listed == dump["partitions"][0].get("totalContainers", 0)
        wrong = [
            check.name
            for check in view.health().health_checks
            if not check.succeeded and check.name != "Node over capacity"
        ]
        assert wrong == []


def test_another_family_has_no_answer_in_these_words():
    """A Kueue configuration, and a log without any, are refused by name."""
    state = State()
    with pytest.raises(OtherFamily) as none:
        YunikornView(state, None, "x")
    assert none.value.format == ""
    state.configuration = KueueSpec()
    with pytest.raises(OtherFamily) as kueue:
        YunikornView(state, None, "x")
    assert kueue.value.format == "kueue"


def test_negative_amounts_are_found_by_the_health_check(tmp_path):
    """A state that does not add up is not healthy, and the diagnosis names what is wrong."""
    with view_of(tmp_path / "model.db", story()) as view:
        view.state.nodes["n1"].used[view.state.types.index["vcore"]] -= 5000
        health = plain(view.health())
    assert health["Healthy"] is False
    said = {one["Name"]: one["DiagnosisMessage"] for one in health["HealthChecks"]}
    assert said["Negative resources"] == "node n1"
