"""Loading files and folders, and every configuration of the shared scenarios."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.bounds import MAX_DOCUMENT
from events.configuration import KueueSpec
from evsched.config import ConfigurationError, Fault, from_mapping, load, load_mapping, load_texts
from evsched.core import configuration_checks

QUEUES = "partitions: [{queues: [{name: a}]}]\n"
COHORT = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {{name: {}}}\n"


def test_queues_file(tmp_path):
    """One queues.yaml, with its text kept for audits."""
    (tmp_path / "queues.yaml").write_text(QUEUES)
    loaded = load([tmp_path / "queues.yaml"])
    assert loaded.text == QUEUES
    assert [spec.partition for spec in loaded.configurations] == ["default"]


def test_json_file(tmp_path):
    """JSON is read like YAML, with its lines."""
    path = tmp_path / "queues.json"
    path.write_text('{"partitions": [\n {"queues": [{"name": true}]}]}')
    with pytest.raises(
        ConfigurationError,
        match=r"queues.json:2 partitions\[0\].queues\[0\].name: found the boolean true",
    ):
        load([str(path)])


def test_folder_of_manifests(tmp_path):
    """The files of a folder and of its folders, in the order of their names; others are not looked at."""
    for name, cohort in (("b.yaml", "b"), ("a.yml", "a"), ("sub/c.json", "c")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(COHORT.format(cohort))
    (tmp_path / "README.md").write_text("# not YAML: [")
    loaded = load([tmp_path])
    (spec,) = loaded.configurations
    assert isinstance(spec, KueueSpec)
    assert [cohort.name for cohort in spec.cohorts] == ["a", "b", "c"]
    assert load_texts([("all", loaded.text)]).configurations == loaded.configurations


def test_byte_order_mark(tmp_path):
    """What some editors put in front does not matter."""
    (tmp_path / "q.yaml").write_bytes(b"\xef\xbb\xbf" + QUEUES.encode())
    assert load([tmp_path / "q.yaml"]).configurations


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "cannot be read: No such file"),
        (b"a: \xff", "is no UTF-8 text"),
        (b"a" * (MAX_DOCUMENT + 1), "found more than 262144 bytes"),
        (b"", "q.yaml: is empty, expected partitions (queues.yaml) or kind and apiVersion"),
        (b"# nothing\n---\n", "q.yaml: is empty"),
        (b"a: [", "is no YAML"),
        (
            QUEUES.encode() + b"---\n" + COHORT.format("a").encode(),
            "found a queues.yaml beside other documents",
        ),
    ],
)
def test_file_refused(tmp_path, data, words):
    """A file that is none of ours is refused with its name."""
    path = tmp_path / "q.yaml"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ConfigurationError) as caught:
        load([path])
    assert words in str(caught.value)


def test_nothing_to_load(tmp_path):
    """A folder without files is an error that names it, not an empty configuration."""
    with pytest.raises(ConfigurationError, match="found no file") as caught:
        load([tmp_path])
    assert str(caught.value).startswith(f"{tmp_path}: ")


def test_faults_of_all_files_are_told(tmp_path):
    """Every file that is no YAML is named at once."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("a: [")
    with pytest.raises(ConfigurationError) as caught:
        load([tmp_path])
    assert [Path(fault.source).name for fault in caught.value.faults] == ["a.yaml", "b.yaml"]


def test_a_file_that_is_no_yaml_hides_no_fault_of_another(tmp_path):
    """What can be read is judged in the same pass."""
    (tmp_path / "a.yaml").write_text("a: [")
    (tmp_path / "b.yaml").write_text(COHORT.format("x").replace("kind: Cohort", "kind: Cohrt"))
    with pytest.raises(ConfigurationError) as caught:
        load([tmp_path])
    assert [Path(fault.source).name for fault in caught.value.faults] == ["a.yaml", "b.yaml"]


def test_unknown_format():
    """Only two formats are known."""
    with pytest.raises(
        ConfigurationError, match="config format: found 'slurm', expected yunikorn or kueue"
    ):
        from_mapping("slurm", {})


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Fault("q", 3, "a.b", "x"), "q:3 a.b: x"),
        (Fault("q", 0, "a.b", "x"), "q a.b: x"),
        (Fault("q", 3, "", "x"), "q:3: x"),
        (Fault("q", 0, "", "x"), "q: x"),
    ],
)
def test_fault_as_text(fault, text):
    """What is unknown is left out."""
    assert str(fault) == text


@pytest.mark.cases(
    "yunikorn/designed",
    "yunikorn/observed",
    "yunikorn/random",
    "kueue/decisions",
    "kueue/cycles",
    "kueue/random",
)
def test_shared_scenarios_load(shared_case):
    """Every configuration of every scenario is accepted, and breaks no rule as an event either."""
    scenario = json.loads(shared_case.read_text())
    configs = [
        scenario["config"],
        *(step["config"] for step in scenario.get("steps", []) if "config" in step),
    ]
    for config in configs:
        loaded = load_mapping(
            config["format"], config["queues" if config["format"] == "yunikorn" else "objects"]
        )
        assert loaded.configurations
        assert all(configuration_checks.problems(spec) == () for spec in loaded.configurations)


words = st.sampled_from(
    [
        "name",
        "queues",
        "partitions",
        "resources",
        "max",
        "guaranteed",
        "vcore",
        "memory",
        "root",
        "a",
        "b",
        "10G",
        "-1",
        "limits",
        "users",
        "properties",
        "parent",
        "value",
        "kind",
        "spec",
        "apiVersion",
        "metadata",
        "ClusterQueue",
        "kueue.x-k8s.io/v1beta2",
        "resourceGroups",
        "coveredResources",
        "flavors",
        "preemption",
        "placementrules",
        "filter",
        "childtemplate",
        "preemption.delay",
        "fairSharing",
        "weight",
        "cohortName",
        "*",
    ]
)
documents = st.recursive(
    words
    | st.none()
    | st.booleans()
    | st.integers(-5, 10**20)
    | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5),
    max_leaves=25,
)


@given(documents)
def test_any_document_is_loaded_or_refused(document):
    """No document makes a loader fail in another way than by refusing it; what it accepts keeps every rule."""
    for form in ("yunikorn", "kueue"):
        try:
            configurations = from_mapping(form, document)
        except ConfigurationError:
            continue
        assert all(configuration_checks.problems(spec) == () for spec in configurations)


@given(st.lists(documents, min_size=1, max_size=3), st.lists(documents, max_size=2))
def test_any_queues_are_loaded_or_refused(queues, rest):
    """The same below the keys that every document has."""
    document = {"partitions": [{"queues": queues, "placementrules": rest, "limits": rest}]}
    objects = [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "ClusterQueue",
            "metadata": {"name": "a"},
            "spec": spec,
        }
        for spec in queues
    ]
    for form, value in (("yunikorn", document), ("kueue", objects)):
        try:
            configurations = from_mapping(form, value)
        except ConfigurationError:
            continue
        assert all(configuration_checks.problems(spec) == () for spec in configurations)
