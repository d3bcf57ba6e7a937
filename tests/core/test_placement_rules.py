"""Which queue takes an application in, which queues are made for it, and when they go again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from events import vocabulary as v
from events.configuration import (
    FilterSpec,
    PlacementRuleSpec,
    QueueSpec,
    TemplateSpec,
    YunikornSpec,
)
from evsched.core.yunikorn.access import listed
from evsched.core.yunikorn.application_placement import passes
from tests.core.quota_clusters import START, Cluster

Rule = PlacementRuleSpec


def parent(name, *children, **fields):
    """Return a parent queue."""
    return QueueSpec(name=name, parent=True, queues=children, **fields)


def cluster(*rules, root=None):
    """Return a cluster with these placement rules and the queues root.a, root.users (a parent) and root.users.eve."""
    plain = parent(
        "root", QueueSpec(name="a"), parent("users", QueueSpec(name="eve")), submit_acl="*"
    )
    return Cluster(YunikornSpec(root=root or plain, placement_rules=rules))


def submit(where, name="app", **fields):
    """Submit an application; return its queue, or the reason why it was refused."""
    event = v.ApplicationSubmitted(application=name, **fields)
    events = where.engine.step(where.now, [v.Proposal(input=event)])
    where.events += events
    if isinstance(events[0], v.InputRejected):
        return events[0].reason
    return next(event.queue for event in events if isinstance(event, v.ApplicationPlaced))


def kinds(where, *wanted):
    """Return the queues that events of these types named, in their order."""
    return [event.queue for event in where.events if isinstance(event, wanted)]


USER = Rule(name="user", create=True, parent=Rule(name="fixed", value="users"))


@pytest.mark.parametrize(
    ("rules", "application", "queue"),
    [
        pytest.param([], {"queue": "root.a"}, "root.a", id="without rules the queue named"),
        pytest.param([], {"queue": "a"}, "root.a", id="a name alone is a queue below root"),
        pytest.param([], {"queue": "ROOT.A"}, "root.a", id="in any case"),
        pytest.param([Rule(name="fixed", value="a")], {}, "root.a", id="a fixed queue"),
        pytest.param(
            [Rule(name="fixed", value="users.eve")],
            {},
            "root.users.eve",
            id="dots of a fixed value separate",
        ),
        pytest.param(
            [Rule(name="fixed", value="root.users.new", create=True)],
            {},
            "root.users.new",
            id="created, full path",
        ),
        pytest.param([USER], {"user": "eve"}, "root.users.eve", id="the user's queue"),
        pytest.param([USER], {"user": "ann"}, "root.users.ann", id="the user's queue, created"),
        pytest.param([USER], {"user": "ann.lee"}, "root.users.ann_dot_lee", id="dots become _dot_"),
        pytest.param(
            [USER], {"user": "root.a"}, "root.users.root_dot_a", id="a user's name is no path"
        ),
        pytest.param(
            [Rule(name="tag", value="namespace", create=True)],
            {"tags": {"namespace": "x.y"}},
            "root.x_dot_y",
            id="a tag",
        ),
        pytest.param(
            [Rule(name="tag", value="namespace")],
            {"tags": {"namespace": "root.a"}},
            "root.a",
            id="a path in a tag",
        ),
        pytest.param(
            [Rule(name="provided", parent=Rule(name="fixed", value="users"))],
            {"queue": "eve"},
            "root.users.eve",
            id="below",
        ),
        pytest.param(
            [Rule(name="provided", parent=Rule(name="fixed", value="users"))],
            {"queue": "root.a"},
            "root.a",
            id="a path skips parents",
        ),
        pytest.param(
            [Rule(name="tag", value="none"), Rule(name="fixed", value="a")],
            {},
            "root.a",
            id="the next rule decides",
        ),
        pytest.param(
            [Rule(name="user", create=True, parent=Rule(name="tag", value="ns", create=True))],
            {"user": "ann", "tags": {"ns": "team"}},
            "root.team.ann",
            id="two levels are created",
        ),
    ],
)
def test_where_an_application_goes(rules, application, queue):
    """Each kind of rule finds its queue."""
    assert submit(cluster(*rules), **application) == queue


@pytest.mark.parametrize(
    ("rules", "application", "reason"),
    [
        pytest.param(
            [],
            {"queue": "root.none"},
            "application app: queue root.none does not exist",
            id="unknown",
        ),
        pytest.param([], {}, "application app: the application names no queue", id="nothing named"),
        pytest.param(
            [],
            {"queue": "root.users"},
            "application app: queue root.users is a parent, expected a leaf",
            id="parent",
        ),
        pytest.param(
            [Rule(name="user"), Rule(name="provided", create=True)],
            {"user": "ann", "queue": "root.a.b"},
            "application app: no placement rule takes it in (user: queue root.ann does not exist and the rule may not create it; "
            "provided: queue root.a is a leaf, no queue can be created below it)",
            id="each rule says why",
        ),
        pytest.param(
            [Rule(name="provided", create=True)],
            {"queue": "a b"},
            "application app: no placement rule takes it in (provided: 'a b' cannot be the name of a queue, expected "
            "up to 64 letters, digits and _:#/@-)",
            id="a name that no queue can have",
        ),
        pytest.param(
            [Rule(name="user", create=True, parent=Rule(name="tag", value="ns"))],
            {"user": "ann"},
            "application app: no placement rule takes it in (user: its parent rule tag: the application has no tag ns)",
            id="the parent rule finds nothing",
        ),
        pytest.param(
            [Rule(name="user", create=True, filter=FilterSpec(users=("eve",)))],
            {"user": "ann"},
            "application app: no placement rule takes it in (user: its filter does not let user ann pass)",
            id="the filter",
        ),
        pytest.param(
            [Rule(name="provided", create=True)],
            {"queue": "root" + ".x" * 33},
            "application app: no placement rule takes it in (provided: a queue 33 levels below root, expected at most 32)",
            id="too deep",
        ),
    ],
)
def test_why_an_application_is_refused(rules, application, reason):
    """Nothing is created for an application that is refused, and the reason says what each rule met."""
    where = cluster(*rules)
    before = where.engine.state.digest()
    assert submit(where, **application) == reason
    assert kinds(where, v.QueueCreated) == []
    where.engine.state.seq -= 1
    assert where.engine.state.digest() == before


@pytest.mark.parametrize(
    ("tags", "queue"),
    [
        ({"NameSpace": "x"}, "root.x"),
        ({"NAMESPACE": "x", "namespace": "y"}, "root.y"),
        ({"nameSpace": "y", "NAMESPACE": "x"}, "root.x"),
    ],
)
def test_a_tag_is_found_in_any_case_by_rules_2(tags, queue):
    """As by YuniKorn; the exact name wins, then the first by name. Rules 1 want the exact one."""
    rule = Rule(name="tag", value="namespace", create=True)
    newer, older = cluster(rule), cluster(rule)
    newer.engine.step(newer.now, [v.Proposal(input=v.RulesAdopted(rules=2))])
    assert (newer.engine.state.rules.version, older.engine.state.rules.version) == (2, 1)
    assert submit(newer, tags=tags) == queue
    assert "has no tag namespace" in submit(newer, "other", tags={"names": "x"})
    if "namespace" not in tags:
        assert "has no tag namespace" in submit(older, tags=tags)


@pytest.mark.parametrize(
    ("filter_", "expected"),
    [
        (FilterSpec(), (True, True)),
        (FilterSpec(allow=False), (True, True)),
        (FilterSpec(users=("ann",)), (True, False)),
        (FilterSpec(allow=False, users=("ann",)), (False, True)),
        (FilterSpec(groups=("dev", "ops")), (True, False)),
        (FilterSpec(users=("^a",)), (True, False)),
        (FilterSpec(users=("^a", "b")), (False, False)),
        (FilterSpec(groups=("d.v",)), (False, False)),
        (FilterSpec(groups=("^(dev|ops)$",)), (True, False)),
    ],
)
def test_filters(filter_, expected):
    """Names of users or groups, or one regular expression; `deny` turns the answer round; nobody named means everybody."""
    assert (passes(filter_, "ann", ("dev",)), passes(filter_, "bob", ("hr",))) == expected


@pytest.mark.parametrize(
    ("acl", "ann", "bob"),
    [
        ("*", True, True),
        ("", False, False),
        ("ann", True, False),
        ("ann,bob", True, True),
        ("eve dev", True, False),
        (" dev,hr", True, True),
        ("eve *", True, True),
        ("an", False, False),
    ],
)
def test_access_lists(acl, ann, bob):
    """Users, a space, groups; ann is in dev, bob in hr."""
    assert (listed(acl, "ann", ("dev",)), listed(acl, "bob", ("hr",))) == (ann, bob)


def test_access_is_inherited_downwards():
    """Who may submit to a queue or administers it may submit to all below it, and nobody else."""
    tree = parent(
        "root",
        parent(
            "p",
            QueueSpec(name="x"),
            QueueSpec(name="y", submit_acl="bob"),
            submit_acl="ann",
            admin_acl=" ops",
        ),
    )
    where = cluster(root=tree)
    assert submit(where, "1", queue="root.p.x", user="ann") == "root.p.x"
    assert submit(where, "2", queue="root.p.y", user="ann") == "root.p.y"
    assert submit(where, "3", queue="root.p.y", user="bob") == "root.p.y"
    assert submit(where, "4", queue="root.p.x", user="eve", groups=("ops",)) == "root.p.x"
    refused = submit(where, "5", queue="root.p.x", user="bob")
    assert (
        refused
        == "application 5: user bob may not submit to queue root.p.x, no access list on its path says so"
    )


def test_without_any_access_list_everybody_may_submit():
    """As in the seeds' examples, which have none."""
    assert (
        submit(cluster(root=parent("root", QueueSpec(name="a"))), queue="root.a", user="anybody")
        == "root.a"
    )


def test_a_created_queue_has_its_template_and_goes_with_its_last_application():
    """Parents are created first, the leaf gets the nearest template above, and all of it goes when it is empty."""
    template = TemplateSpec(
        guaranteed={"vcore": 1},
        maximum={"vcore": 5},
        max_applications=2,
        properties={"preemption.delay": "7s"},
    )
    tree = parent("root", parent("users", template=template), submit_acl="*")
    rule = Rule(
        name="user",
        create=True,
        parent=Rule(name="tag", value="ns", create=True, parent=Rule(name="fixed", value="users")),
    )
    where = cluster(rule, root=tree)
    assert submit(where, "1", user="ann", tags={"ns": "t"}) == "root.users.t.ann"
    assert submit(where, "2", user="ann", tags={"ns": "t"}) == "root.users.t.ann"
    assert kinds(where, v.QueueCreated) == ["root.users.t", "root.users.t.ann"]
    leaf = where.engine.state.queues["root.users.t.ann"]
    vcore = where.engine.state.types.index["vcore"]
    assert (leaf.maximum, leaf.guaranteed, leaf.max_applications) == ({vcore: 5}, {vcore: 1}, 2)
    assert leaf.settings.preemption_delay_ms == 7000
    where.restart()
    where.give(v.ApplicationRemoved(application="1"))
    assert kinds(where, v.QueueRemoved) == []
    where.give(v.ApplicationRemoved(application="2"))
    assert kinds(where, v.QueueRemoved) == ["root.users.t.ann", "root.users.t"]
    assert [*where.engine.state.queues] == ["root", "root.users"]
    assert where.engine.state.templates == {}


def test_a_draining_queue_goes_when_it_is_empty():
    """A queue that left the configuration takes nothing in, and goes with the last thing that runs in it."""
    where = cluster(
        root=parent("root", parent("p", QueueSpec(name="x")), QueueSpec(name="a"), submit_acl="*")
    )
    task = {"queue": "root.p.x", "resources": {"vcore": 1}, "node": "n"}
    where.give(
        *(v.AllocationRestored(allocation=name, application="app", **task) for name in ("1", "2"))
    )
    where.give(YunikornSpec(root=parent("root", QueueSpec(name="a"), submit_acl="*")))
    refused = submit(where, "new", queue="root.p.x")
    assert refused.endswith("queue root.p.x is no longer in the configuration and takes nothing in")
    where.give(v.AllocationReleased(allocation="1"))
    assert "root.p.x" in where.engine.state.queues
    where.restart()
    where.give(v.NodeRemoved(node="n"))
    assert kinds(where, v.QueueRemoved) == ["root.p.x", "root.p"]
    assert [*where.engine.state.queues] == ["root", "root.a"]


def test_a_task_may_name_the_queue_that_its_owner_wrote_down():
    """With placement rules the application's place counts, whatever queue its tasks name."""
    where = cluster(USER)
    submit(where, user="ann", queue="root.default")
    where.give(
        v.AskSubmitted(ask="1", application="app", queue="root.default", resources={"vcore": 1})
    )
    assert where.engine.state.allocations["1"].queue == "root.users.ann"


words = st.sampled_from(
    ["", "a", "root", "root.a", "root.users", "root.users.eve", "root.users.new.x", "x.y", "A", "!"]
)
rules = st.builds(
    Rule,
    name=st.sampled_from(["tag", "user", "provided"]),
    create=st.booleans(),
    value=st.just("t"),
    filter=st.none()
    | st.builds(FilterSpec, allow=st.booleans(), users=st.sampled_from([(), ("ann",), ("^a",)])),
    parent=st.none()
    | st.just(Rule(name="fixed", value="users"))
    | st.just(Rule(name="tag", value="t", create=True)),
)
applications = st.tuples(words, st.sampled_from(["ann", "bob", "eve", "d.d"]), words)


@given(st.lists(rules, max_size=3), st.lists(applications, max_size=6), st.data())
@settings(deadline=None)
def test_queues_come_and_go_in_every_order(found, submitted, data):
    """Whatever is submitted ends in a leaf or is refused; when all is gone only the configured queues are left."""
    where = cluster(*found)
    configured = [*where.engine.state.queues]
    names = []
    for number, (queue, user, tag) in enumerate(submitted):
        place = submit(where, str(number), queue=queue, user=user, tags={"t": tag})
        if place in where.engine.state.queues:
            assert where.engine.state.queues[place].leaf
            names.append(str(number))
        if data.draw(st.booleans()):
            where.restart()
    for name in data.draw(st.permutations(names)):
        where.give(v.ApplicationRemoved(application=name))
        where.restart()
    assert [*where.engine.state.queues] == configured
    assert where.now == START
