"""The format of scenario files: what is read, and how a broken file is refused."""

import gzip
import json

import pytest

from replays.scenarios.scenario import ScenarioError, parse_scenario, read_scenario, seconds_to_ms

MINIMAL = {
    "scenario": 1,
    "name": "n",
    "config": {"format": "yunikorn", "queues": {"partitions": []}},
}


def parsed(**more):
    """Parse the minimal scenario with these keys added or replaced."""
    return parse_scenario(json.dumps(MINIMAL | more).encode(), "file.json")


def test_what_is_absent_has_its_default():
    """A file needs its format, its name and a configuration; victims hold their ground unless it says otherwise."""
    scenario = parsed()
    assert (scenario.nodes, scenario.running, scenario.pending, scenario.steps) == ((), (), (), ())
    assert scenario.evictions == "hold"
    assert scenario.start_ms == 1_767_225_600_000
    assert scenario.expect is None


def test_unknown_keys_at_the_top_are_ignored():
    """Files of other origin carry notes there."""
    assert parsed(family={"tree": "two"}, remark="x").name == "n"


def test_what_was_observed_may_carry_diagnostics():
    """An observation is somebody else's, an expectation is ours."""
    assert parsed(observed={"preemptions": [], "modes": {"a": "Fit"}}).observed.preemptions == ()


@pytest.mark.parametrize(
    ("broken", "path", "problem"),
    [
        ({"scenario": 2}, "$.scenario", "Invalid enum value 2"),
        ({"config": {"format": "slurm", "queues": {}}}, "$.config.format", "slurm"),
        ({"config": {"format": "kueue", "queues": {}}}, "$.config", "objects"),
        (
            {"config": {"format": "kueue", "objects": [], "queues": {}}},
            "$.config",
            "found `queues`",
        ),
        (
            {"nodes": [{"name": "n", "capacity": {"vcore": -1}}]},
            "$.nodes[0].capacity.vcore",
            ">= 0",
        ),
        (
            {"nodes": [{"name": "n", "capacity": {"vcore": 2**60}}]},
            "$.nodes[0].capacity",
            "<= 9007199254740992",
        ),
        ({"pending": [{"id": "a", "priorty": 3}]}, "$.pending[0]", "priorty"),
        ({"pending": [{"id": "a", "priority": 2**31}]}, "$.pending[0].priority", "2147483647"),
        (
            {"pending": [{"id": "a", "application": "x" * 254}]},
            "$.pending[0].application",
            "<= 253",
        ),
        ({"running": [{"id": "a", "node": 7}]}, "$.running[0].node", "str"),
        ({"steps": [{"advance": "soon"}]}, "$.steps[0]", "expected a duration"),
        ({"steps": [{"advance": "-1s"}]}, "$.steps[0]", "0s or more"),
        ({"steps": [{"advance": "1s", "restart": True}]}, "$.steps[0]", "exactly one of"),
        ({"steps": [{}]}, "$.steps[0]", "found nothing"),
        ({"steps": [{"restart": False}]}, "$.steps[0]", "False"),
        ({"steps": [{"cycle": 1}]}, "", "kueue only"),
        ({"evictions": {"confirm_after": "5"}}, "$.evictions", "expected a duration"),
        ({"expect": {"preemption": []}}, "$.expect", "preemption"),
        ({"start": "yesterday"}, "", "RFC 3339"),
        ({"start": "2026-01-01T00:00:00"}, "", "without an offset"),
    ],
)
def test_a_broken_field_is_refused_with_its_path(broken, path, problem):
    """What breaks the format is named, and so is the file."""
    with pytest.raises(ScenarioError) as refused:
        parsed(**broken)
    assert path in str(refused.value)
    assert problem.lower() in str(refused.value).lower()
    assert str(refused.value).startswith("scenario file.json: ")


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_what_is_no_scenario_at_all_is_refused(data):
    """Bytes that are no JSON, or no object, end in the same error."""
    with pytest.raises(ScenarioError):
        parse_scenario(data, "file.json")


@pytest.mark.parametrize(
    "tail", [b", 1: 2}", b"}", b', "x": ' + b"[" * 100_000, b"\xff"], ids=lambda tail: tail[:9]
)
def test_what_follows_a_broken_field_may_be_anything(tail):
    """The field before is the problem that is told, also where its key has to be looked for in what is no JSON."""
    text = json.dumps(MINIMAL | {"nodes": [{"name": "n", "capacity": {"vcore": -1}}]}).encode()
    with pytest.raises(ScenarioError, match=">= 0"):
        parse_scenario(text[:-1] + tail, "file.json")


@pytest.mark.parametrize("value", ["`$.zzz[...]", "[...]", "`$[...]`"])
def test_a_value_that_looks_like_a_path_is_a_value(value):
    """What the problem quotes is not taken for the place of the problem."""
    with pytest.raises(ScenarioError, match="Invalid enum value"):
        parsed(pending=[{"id": "a", "preemption_policy": value}])


def test_yaml_keeps_times_as_text_and_refuses_double_keys():
    """A time without quotes is a time in YAML; a key that stands twice would hide one of its values."""
    text = (
        b"scenario: 1\nname: n\nstart: 2026-01-01T00:00:01Z\nconfig: {format: kueue, objects: []}\n"
    )
    assert parse_scenario(text, "file.yaml", is_yaml=True).start_ms == 1_767_225_601_000
    with pytest.raises(ScenarioError, match="line 5, name: found a second time"):
        parse_scenario(text + b"name: again\n", "file.yaml", is_yaml=True)


def test_the_name_of_a_file_says_how_it_is_read(tmp_path):
    """JSON, YAML and compressed JSON."""
    text = json.dumps(MINIMAL).encode()
    for name, data in (("a.json", text), ("a.yaml", text), ("a.json.gz", gzip.compress(text))):
        (tmp_path / name).write_bytes(data)
        assert read_scenario(tmp_path / name).name == "n"
    for name in ("missing.json", "broken.json.gz"):
        (tmp_path / "broken.json.gz").write_bytes(b"no gzip")
        with pytest.raises(ScenarioError):
            read_scenario(tmp_path / name)


def test_seconds_become_whole_milliseconds():
    """Fractions of a second are allowed in a file, and rounded once."""
    assert [seconds_to_ms(seconds) for seconds in (-600, 0.0005, 1.25, -0.001)] == [
        -600_000,
        0,
        1250,
        -1,
    ]
    with pytest.raises(ScenarioError):
        parse_scenario(
            json.dumps(MINIMAL | {"pending": [{"id": "a", "created": 1e300}]}).encode(), "f"
        )


def test_given_flavors_ask_for_the_search_alone():
    """Without a single cycle, an ask that brings its flavors wants nothing but victims."""
    kueue = {
        "config": {"format": "kueue", "objects": []},
        "pending": [{"id": "a", "queue": "q", "flavors": {"cpu": "x"}}],
    }
    assert parsed(**kueue).search_only
    assert not parsed(**kueue, steps=[{"cycle": 1}]).search_only
    podsets = [{"name": "p", "resources": {"cpu": 1}, "flavors": {"cpu": "x"}}]
    assert parsed(**(kueue | {"pending": [{"id": "a", "podsets": podsets}]})).search_only
