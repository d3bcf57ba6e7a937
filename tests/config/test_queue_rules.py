"""Every rule of a partition's queues: one configuration that keeps it and one that breaks it, with the place told."""

from __future__ import annotations

import textwrap

import pytest

from events.configuration import LimitSpec, QueueSpec, TemplateSpec, YunikornSpec
from evsched.config import ConfigurationError, load_texts
from evsched.core import configuration_checks
from evsched.core.yunikorn.placement_rules import is_pattern, pattern_problem


def below_root(queues: str, partition: str = "") -> str:
    """Return a queues.yaml whose root has these queues; their first line is the fourth."""
    return (
        f"partitions:\n- {partition or 'name: default'}\n  queues:\n{textwrap.indent(queues, '  ')}"
    )


def faults(text: str) -> list[str]:
    """Return what a queues.yaml text is refused for, each with its line first; nothing when it is accepted."""
    try:
        load_texts([("q", text)])
    except ConfigurationError as error:
        return [f"{fault.line} {fault.message}" for fault in error.faults]
    return []


@pytest.mark.parametrize(
    "queues",
    [
        "- name: a",
        "- name: A_b:1#/@-",
        f"- name: {'a' * 64}",
        "- name: a\n- name: b\n  queues: [{name: a}]",
        "- name: a\n  resources: {guaranteed: {vcore: 1}, max: {vcore: 1}}",
        "- name: a\n  resources: {guaranteed: {vcore: 1}, max: {memory: 1}}",
        "- name: a\n  resources: {max: {vcore: 2}}\n  queues: [{name: b, resources: {max: {vcore: 2, memory: 5}}}]",
        "- name: a\n  resources: {guaranteed: {vcore: 2}}\n  queues: [{name: b, resources: {guaranteed: {vcore: 2, memory: 9}}}]",
        "- name: a\n  resources: {max: {vcore: 2}}\n  queues: [{name: b, resources: {guaranteed: {vcore: 2}}}]",
        "- name: a\n  resources: {guaranteed: {vcore: 1}, max: {vcore: 2}, quota.preemption.delay: 60}",
        "- name: a\n  resources: {guaranteed: {vcore: 1}, max: {memory: 2}, quota.preemption.delay: 60}",
        "- name: a\n  resources: {guaranteed: {vcore: 1}, max: {vcore: 1}, quota.preemption.delay: 0}",
        "- name: a\n  properties: {quota.preemption.delay: 0s}\n  resources: {guaranteed: {vcore: 1}, max: {vcore: 1}}",
        "- name: a\n  maxapplications: 5\n  queues: [{name: b, maxapplications: 5}]",
        "- name: a\n  queues: [{name: b, maxapplications: 5}]",
        "- name: a\n  submitacl: '*'\n  adminacl: ''",
        "- name: a\n  submitacl: 'a,b c,d'\n  adminacl: ' c'",
        "- name: a\n  parent: true\n  childtemplate: {resources: {guaranteed: {vcore: 1}, max: {vcore: 2}}}",
        "- name: a\n  limits: [{users: [b], maxapplications: 1}, {users: ['*'], maxresources: {vcore: 1}}]",
        "- name: a\n  limits: [{groups: [b], maxapplications: 1}, {groups: ['*'], maxapplications: 1}]",
        "- name: a\n  limits: [{users: [b], groups: [b], maxapplications: 1}]",
        (
            "- name: a\n  maxapplications: 2\n  resources: {max: {vcore: 1}}\n"
            "  limits: [{users: [b], maxapplications: 2, maxresources: {vcore: 1, gpu: 7}}]"
        ),
        (
            "- name: a\n  limits: [{users: [b], maxapplications: 2}]\n"
            "  queues: [{name: c, limits: [{users: [b], maxapplications: 2, maxresources: {vcore: 9}},"
            " {users: [d], maxapplications: 9}]}]"
        ),
    ],
)
def test_kept(queues):
    """Nothing is wrong with what is allowed, up to the very bound."""
    assert faults(below_root(queues)) == []


@pytest.mark.parametrize(
    ("queues", "line", "expected"),
    [
        (
            "- name: a\n- name: a.b",
            5,
            "queue root: found the queue name 'a.b', expected 1 to 64 letters, digits or _:#/@-",
        ),
        ("- name: ''", 4, "queue root: found the queue name '', expected 1 to 64"),
        (f"- name: {'a' * 65}", 4, "expected 1 to 64 letters"),
        ("- name: a b", 4, "found the queue name 'a b'"),
        ("- name: ä", 4, "found the queue name 'ä'"),
        ("- name: Ab\n- name: aB", 5, "queue root.ab: is there a second time, expected once"),
        (
            "- name: a\n  resources:\n    guaranteed: {vcore: 20}\n    max:\n      vcore: 10",
            8,
            "queue root.a: max vcore 10 is below guaranteed 20, expected at least that",
        ),
        (
            "- name: a\n  resources: {max: {memory: 1G}}\n  queues:\n  - name: b\n    resources: {max: {memory: 2G}}",
            8,
            "queue root.a.b: max memory 2G is above max 1G of queue root.a, expected at most that",
        ),
        (
            (
                "- name: a\n  resources: {max: {vcore: 1}}\n  queues: [{name: b, queues: [\n{name: c, resources: {max: "
                "{vcore: 2}}}]}]"
            ),
            7,
            "queue root.a.b.c: max vcore 2 is above max 1 of queue root.a, expected at most that",
        ),
        (
            "- name: a\n  resources: {max: {vcore: 1}}\n  queues: [{name: b, resources: {guaranteed: {vcore: 1500m}}}]",
            6,
            "queue root.a.b: guaranteed vcore 1500m is above max 1 of queue root.a, expected at most that",
        ),
        (
            (
                "- name: a\n  resources: {guaranteed: {vcore: 3}}\n"
                "  queues: [{name: b, resources: {guaranteed: {vcore: 2}}}, {name: c, resources: {guaranteed: {vcore: 2}}}]"
            ),
            5,
            "queue root.a: guarantees of vcore below add up to 4, expected at most guaranteed 3",
        ),
        (
            (
                "- name: a\n  resources: {guaranteed: {vcore: 3}}\n"
                "  queues: [{name: b, queues: [{name: c, resources: {guaranteed: {vcore: 4}}}]}]"
            ),
            5,
            "queue root.a: guarantees of vcore below add up to 4, expected at most guaranteed 3",
        ),
        (
            (
                "- name: a\n  resources: {max: {vcore: 3}}\n"
                "  queues: [{name: b, resources: {guaranteed: {vcore: 2}}}, {name: c, resources: {guaranteed: {vcore: 2}}}]"
            ),
            5,
            "queue root.a: guarantees of vcore below add up to 4, expected at most max 3",
        ),
        (
            "- name: a\n  resources: {guaranteed: {vcore: 1, memory: 1}, max: {vcore: 1, memory: 2}, quota.preemption.delay: 1}",
            5,
            "queue root.a: max vcore 1 equals guaranteed 1, expected more because a quota.preemption.delay is set",
        ),
        (
            (
                "- name: a\n  properties: {quota.preemption.delay: 5s}\n  queues:\n"
                "  - name: b\n    resources: {guaranteed: {vcore: 1}, max: {vcore: 1}}"
            ),
            8,
            "queue root.a.b: max vcore 1 equals guaranteed 1",
        ),
        (
            "- name: a\n  maxapplications: 5\n  queues: [{name: b, maxapplications: 6}]",
            6,
            "queue root.a.b: maxapplications is 6, expected 1 to 5 as in queue root.a",
        ),
        (
            "- name: a\n  maxapplications: 5\n  queues: [{name: b}]",
            6,
            "queue root.a.b: maxapplications is not limited, expected 1 to 5 as in queue root.a",
        ),
        (
            "- name: a\n  submitacl: a b c",
            5,
            "queue root.a: submitacl is 'a b c', expected *, or users and groups",
        ),
        ("- name: a\n  adminacl: 'a,,b'", 5, "queue root.a: adminacl is 'a,,b', expected"),
        ("- name: a\n  adminacl: 'a  b'", 5, "queue root.a: adminacl is 'a  b', expected"),
        (
            "- name: a\n  childtemplate: {maxapplications: 1}",
            5,
            "queue root.a: has a childtemplate and is a leaf, expected",
        ),
        (
            "- name: a\n  parent: true\n  childtemplate: {resources: {guaranteed: {vcore: 2}, max: {vcore: 1}}}",
            6,
            "queue root.a: childtemplate max vcore 1 is below guaranteed 2, expected at least that",
        ),
        (
            (
                "- name: a\n  parent: true\n  childtemplate:\n"
                "    resources: {guaranteed: {vcore: 1}, max: {vcore: 1}, quota.preemption.delay: 1}"
            ),
            7,
            "queue root.a: childtemplate max vcore 1 equals guaranteed 1, expected more",
        ),
        (
            "- name: a\n  limits:\n  - maxapplications: 1",
            6,
            "queue root.a: limits[0] names nobody, expected users or groups",
        ),
        (
            "- name: a\n  limits:\n  - users: [b]",
            6,
            "queue root.a: limits[0] limits nothing, expected maxresources or",
        ),
        (
            "- name: a\n  limits:\n  - users: [b]\n    maxresources: {vcore: 0}",
            6,
            "limits[0] limits nothing",
        ),
        (
            "- name: a\n  limits:\n  - users: [b c]\n    maxapplications: 1",
            6,
            "limits[0] has the user name 'b c', expected",
        ),
        (
            "- name: a\n  limits:\n  - {users: [b, b], maxapplications: 1}",
            6,
            "limits[0] limits user b a second time, expected once",
        ),
        (
            "- name: a\n  limits:\n  - {users: [b], maxapplications: 1}\n  - {users: [b], maxapplications: 1}",
            7,
            "queue root.a: limits[1] limits user b a second time, expected once",
        ),
        (
            "- name: a\n  limits:\n  - {users: ['*'], maxapplications: 1}\n  - {users: [b], maxapplications: 1}",
            7,
            "queue root.a: limits[1] limits user b behind *, expected * last",
        ),
        (
            "- name: a\n  limits:\n  - {groups: ['*'], maxapplications: 1}",
            6,
            "limits[0] limits group * alone, expected a named",
        ),
        (
            "- name: a\n  resources: {max: {vcore: 1}}\n  limits:\n  - {users: [b], maxresources: {vcore: 2}}",
            7,
            "queue root.a: limits[0] maxresources vcore 2 is above 1 of the queue, expected at most that",
        ),
        (
            "- name: a\n  maxapplications: 1\n  limits:\n  - {users: [b], maxapplications: 2}",
            7,
            "queue root.a: limits[0] maxapplications 2 is above 1 of the queue, expected at most that",
        ),
        (
            (
                "- name: a\n  limits: [{users: [b], maxapplications: 1}]\n  queues:\n  - name: c\n"
                "    limits: [{users: [b], maxapplications: 2}]"
            ),
            8,
            "queue root.a.c: limits[0] maxapplications 2 is above 1 of user b in queue root.a, expected at most that",
        ),
        (
            (
                "- name: a\n  limits: [{groups: [x], maxapplications: 9}, {groups: ['*'], maxresources: {vcore: 1}}]\n  queues:\n"
                "  - name: c\n    limits: [{groups: [b], maxresources: {vcore: 2}}]"
            ),
            8,
            "queue root.a.c: limits[0] maxresources vcore 2 is above 1 of group b in queue root.a, expected at most that",
        ),
    ],
)
def test_broken(queues, line, expected):
    """What is not allowed is refused for that and nothing else, at its line."""
    (found,) = faults(below_root(queues))
    assert found.startswith(f"{line} ")
    assert expected in found


@pytest.mark.parametrize(
    "rule",
    [
        "{name: provided}",
        "{name: user, create: true}",
        "{name: fixed, value: a}",
        "{name: fixed, value: root.A}",
        "{name: fixed, value: p.b}",
        "{name: fixed, value: new, create: true}",
        "{name: fixed, value: p.new.deeper, create: true}",
        "{name: fixed, value: root.a, parent: {name: fixed, value: nowhere}}",
        "{name: fixed, value: b, parent: {name: fixed, value: root.p}}",
        "{name: fixed, value: x, create: true, parent: {name: tag, value: namespace, create: true}}",
        "{name: tag, value: namespace, create: true, parent: {name: fixed, value: p}}",
        "{name: user, parent: {name: fixed, value: new, create: true}}",
        "{name: user, filter: {users: [a, b], groups: ['dev-[0-9]+']}}",
        "{name: user, filter: {type: deny, users: ['^(alice|bob).*$']}}",
        "{name: user, filter: {users: ['first.last@corp.example']}}",
    ],
)
def test_placement_rule_kept(rule):
    """Rules that can lead to a leaf are accepted."""
    assert (
        faults(
            below_root("- name: a\n- name: p\n  queues: [{name: b}]", f"placementrules: [{rule}]")
        )
        == []
    )


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{name: fixed}", "placementrules[0] is a fixed rule without a value, expected the queue"),
        (
            "{name: tag}",
            "placementrules[0] is a tag rule without a value, expected the name of the tag",
        ),
        (
            "{name: fixed, value: 'a b'}",
            "placementrules[0] has the value 'a b', expected the path of a queue",
        ),
        (
            "{name: fixed, value: a..b}",
            "placementrules[0] has the value 'a..b', expected the path of a queue",
        ),
        (
            "{name: fixed, value: new}",
            "placementrules[0] names queue root.new, which does not exist and may not be created",
        ),
        (
            "{name: fixed, value: p}",
            "placementrules[0] ends in queue root.p, which is a parent, expected a leaf",
        ),
        ("{name: fixed, value: root}", "placementrules[0] ends in queue root, which is a parent"),
        (
            "{name: fixed, value: a.x, create: true}",
            "placementrules[0] names x below queue root.a, which is a leaf",
        ),
        (
            "{name: user, parent: {name: fixed, value: a}}",
            "placementrules[0] would create queues below root.a, which is a leaf",
        ),
        (
            "{name: user, parent: {name: fixed, value: new}}",
            "placementrules[0].parent names queue root.new, which does not exist",
        ),
        (
            "{name: fixed, value: b, parent: {name: fixed, value: new, create: true}}",
            "placementrules[0] names queue root.new.b, which does not exist",
        ),
        (
            "{name: user, filter: {users: ['a b', c]}}",
            "entry 'a b' is no name, expected names or one regular expression",
        ),
        ("{name: user, filter: {users: ['a*', c]}}", "entry 'a*' is no name"),
        ("{name: user, filter: {users: ['']}}", "entry '' is no name"),
        ("{name: user, filter: {groups: ['(a+)+$']}}", "filter entry '(a+)+$' repeats a group"),
        (
            "{name: user, parent: {name: user, filter: {users: ['[']}}}",
            "placementrules[0].parent.filter entry '[' is no regular",
        ),
    ],
)
def test_placement_rule_broken(rule, expected):
    """Rules that never can lead to a leaf are refused at their line."""
    (found,) = faults(
        below_root("- name: a\n- name: p\n  queues: [{name: b}]", f"placementrules: [{rule}]")
    )
    assert found.startswith("2 ")
    assert expected in found


@pytest.mark.parametrize(
    "text",
    [
        "^dev-.*$",
        "a|b|c",
        "user[0-9]{1,4}",
        "(alice|bob)?",
        r"a\.b\*\+",
        "[*+?(]x",
        "prod.*batch.*",
    ],
)
def test_bounded_pattern(text):
    """A pattern whose time is bounded is accepted."""
    assert pattern_problem(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "(a+)+$",
        "(a|a)*",
        "(a*){5}",
        "a*a*a*b",
        "a?a?a?aaa",
        "(?=a)",
        r"(a)\1",
        "a{1,1000}",
        "[",
        "(",
        "a**",
        "a" * 300,
        "((a)(b))",
    ],
)
def test_unbounded_pattern(text):
    """One that could take the engine's time without end is refused."""
    assert pattern_problem(text)


def test_patterns_stand_alone():
    """Only a single entry with a special character is a pattern."""
    assert is_pattern(("a.*",))
    assert not is_pattern(("a.b",))
    assert not is_pattern(("a.*", "b"))
    assert not is_pattern(())


def spec(**root: object) -> YunikornSpec:
    """Return a partition as an event may carry it."""
    return YunikornSpec(root=QueueSpec(**({"name": "root", "parent": True} | root)))


@pytest.mark.parametrize(
    ("configuration", "expected"),
    [
        (spec(name="top"), "found the name 'top', expected root"),
        (spec(parent=False), "is a leaf, expected it to hold queues"),
        (
            spec(queues=(QueueSpec(name="a", queues=(QueueSpec(name="b"),)),)),
            "holds queues and is marked as a leaf",
        ),
        (spec(queues=(QueueSpec(name="A"),)), "found the queue name 'A'"),
        (spec(guaranteed={"vcore": -1}), "guaranteed vcore is out of bounds"),
        (spec(maximum={"vcore": 2**53 + 1}), "max vcore is out of bounds"),
        (spec(maximum={"a b": 1}), "found the resource 'a b', expected a name without spaces"),
        (
            spec(template=TemplateSpec(maximum={"vcore": 0})),
            "childtemplate max vcore is 0, expected more than 0",
        ),
        (spec(properties={"a": "\x1b[31m"}), "is too long or holds control characters"),
        (spec(properties={"a": "x" * 5000}), "is too long or holds control characters"),
        (
            spec(template=TemplateSpec(properties={"a\n": ""})),
            "is too long or holds control characters",
        ),
        (
            spec(
                queues=tuple(QueueSpec(name=f"q{i}", guaranteed={"m": 2**53}) for i in range(1025))
            ),
            "add up to more than",
        ),
        (
            YunikornSpec(partition="a\nb", root=QueueSpec(name="root", parent=True)),
            "partition: found the name 'a\\nb'",
        ),
        (
            YunikornSpec(partition="", root=QueueSpec(name="root", parent=True)),
            "partition: found the name ''",
        ),
    ],
)
def test_what_only_an_event_can_say(configuration, expected):
    """Rules that no file can break are kept by configurations in events too."""
    assert any(
        expected in problem.message for problem in configuration_checks.problems(configuration)
    )


def test_hostile_tree_is_not_followed():
    """Depth and number of queues are bounded before anything recurses."""
    deep = QueueSpec(name="a")
    for _ in range(5_000):
        deep = QueueSpec(name="a", parent=True, queues=(deep,))
    (problem,) = configuration_checks.problems(spec(queues=(deep,)))
    assert "too deep or one too many" in problem.message
    (problem,) = configuration_checks.problems(
        spec(queues=tuple(QueueSpec(name=f"q{i}") for i in range(20_001)))
    )
    assert "too deep or one too many" in problem.message


def test_problems_are_cut():
    """At most a hundred are told."""
    assert (
        len(
            configuration_checks.problems(
                spec(queues=tuple(QueueSpec(name="A") for _ in range(500)))
            )
        )
        == configuration_checks.MAX_PROBLEMS
    )


def test_only_a_file_is_refused_for_an_equal_maximum():
    """A configuration given directly is followed: what is guaranteed is safe anyway."""
    equal = spec(guaranteed={"vcore": 1}, maximum={"vcore": 1}, quota_preemption_delay_ms=1)
    assert configuration_checks.problems(equal) == ()
    found = configuration_checks.file_problems(equal)
    assert all(problem.advisory for problem in found)
    assert [problem.path for problem in found] == [
        "queue root resources.guaranteed",
        "queue root resources.max",
        "queue root resources.max.vcore",
    ]


def test_limits_of_events_are_judged():
    """Limits of an event's configuration keep the same rules."""
    assert configuration_checks.problems(spec(limits=(LimitSpec(users=("a",)),)))
