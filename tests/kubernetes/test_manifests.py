"""The manifests of `deploy/kubernetes`: what the API server says of them, and that the agent needs no right beyond theirs."""

import importlib
import json

import pytest
import yaml

from evsched.agents.kubernetes.acting.actions import (
    AnnounceEviction,
    BindPod,
    DeletePod,
    EvictPod,
    FreePod,
    LookAtPod,
    MarkVictim,
)
from evsched.agents.kubernetes.acting.seen import PodFound
from evsched.cli.main import COMMANDS
from tests.kubernetes.manifests import FOLDER, PATHS, component, manifests


def test_every_file_is_a_resource_of_the_base():
    """No manifest lies about that Kustomize does not apply."""
    named = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())["resources"]
    assert sorted(named) == sorted(
        file.name
        for file in FOLDER.iterdir()
        if file.is_file() and file.name != "kustomization.yaml"
    )


def test_the_agent_may_only_list_and_watch():
    """No rule has a verb that changes anything, or a resource that recording does not read."""
    (role,) = manifests("ClusterRole")
    allowed = {name: set(rule["verbs"]) for rule in role["rules"] for name in rule["resources"]}
    wanted = ("nodes", "pods", "namespaces", "priorityclasses")
    assert allowed == {name: {"list", "watch"} for name in wanted}


@pytest.mark.parametrize(
    "deployment", manifests("Deployment"), ids=lambda one: one["metadata"]["name"]
)
def test_what_is_started_is_a_command_with_these_options(deployment):
    """The arguments of each container are those that `evsched` takes."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    command, *rest = container["args"]
    module, name = COMMANDS[command][0].split(":")
    app = getattr(importlib.import_module(module), name)
    if not callable(getattr(app, "parse_args", None)):
        from cyclopts import App  # noqa: PLC0415 - only where the command is a function

        made = App()
        made.default(app)
        app = made
    app.parse_args(rest, exit_on_error=False, print_error=False)


def test_the_component_that_acts_starts_a_leader_that_decides_and_an_agent_that_acts():
    """Its patches fit the base, and make commands with options that `evsched` takes."""
    made = with_component("act")
    assert "--observe" not in made["evsched"]
    assert made["evsched-agent"][2:4] == ["--mode", "act"]
    (lease,) = [
        rule["resourceNames"]
        for rule in component("act", "Role")[0]["rules"]
        if "resourceNames" in rule
    ]
    assert f"--lease=evsched/{lease[0]}" in made["evsched-agent"]


@pytest.mark.parametrize("name", ["kueue", "yunikorn"])
def test_a_component_that_records_more_names_the_namespace_whose_configmap_it_may_read(name):
    """Its option is one that the agent takes, and its rights are to list and watch, nothing else."""
    made = with_component(name)
    (role,) = component(name, "Role")
    assert made["evsched-agent"][-1] == f"--{name}={role['metadata']['namespace']}"
    for one in component(name, "Role", "ClusterRole"):
        assert [rule["verbs"] for rule in one["rules"]] == [["list", "watch"]]


def with_component(name):
    """Return what each Deployment of the base is started with where a component is added."""
    folder = FOLDER / "components" / name
    patches = yaml.safe_load((folder / "kustomization.yaml").read_text())["patches"]
    base = {one["metadata"]["name"]: one for one in manifests("Deployment")}
    made = {}
    for one in patches:
        deployment = base[one["target"]["name"]]
        for step in yaml.safe_load(one["patch"]):
            patched(deployment, step)
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        made[one["target"]["name"]] = container["args"]
        test_what_is_started_is_a_command_with_these_options(deployment)
    return made


def patched(document, step):
    """Carry out one step of a JSON patch."""
    *way, last = step["path"].strip("/").split("/")
    for part in way:
        document = document[int(part) if part.isdigit() else part]
    key = int(last) if last.isdigit() else last
    if step["op"] == "test":
        assert document[key] == step["value"]
    elif step["op"] == "remove":
        del document[key]
    elif key == "-":
        document.append(step["value"])
    else:
        document[key] = step["value"]


def test_acting_needs_no_right_that_it_does_not_use():
    """Each rule stands for a request that the agent makes."""
    (role,) = component("act", "ClusterRole")
    allowed = {
        (name, verb)
        for rule in role["rules"]
        for name in rule["resources"]
        for verb in rule["verbs"]
    }
    pod = PodFound(namespace="n", name="p", uid="u", scheduler="evsched")
    about = {"task": "n/p", "pod": pod, "seq": 1}
    actions = [
        BindPod(**about, node="n1"),
        LookAtPod(**about, said=""),
        FreePod(**about, gate="g"),
        MarkVictim(**about, message=""),
        AnnounceEviction(**about, message=""),
        EvictPod(**about, asked=1, rehearsed=True),
        DeletePod(**about, asked=1),
    ]
    verbs = {"POST": "create", "GET": "get", "PATCH": "patch", "DELETE": "delete"}
    used = set()
    for action in actions:
        request = action.request("2026-01-01T00:00:00.000000Z")
        path = request.path.partition("?")[0].split("/")
        kind, *rest = path[path.index("namespaces") + 2 :]
        used.add(("/".join([kind, *rest[1:]]), verbs[request.method]))
    assert used == allowed


@pytest.mark.kubernetes
def test_the_api_server_takes_each_of_them_without_a_warning(control_plane):
    """Validated strictly by the real API server, in a dry run; the pods keep to the restricted standard."""
    api = control_plane.api
    namespace, *others = manifests()
    api.create(PATHS["Namespace"], namespace)
    try:
        for one in others:
            # The roles themselves are there already, as the agent is tested with them.
            one["metadata"]["name"] += "-dry"
            path = f"{PATHS[one['kind']]}?dryRun=All&fieldValidation=Strict"
            answer = api.ask("POST", path, one)
            assert answer.is_success, f"{one['kind']}: {json.dumps(answer.json())}"
            assert "Warning" not in answer.headers
    finally:
        api.delete(f"{PATHS['Namespace']}/evsched")


@pytest.mark.kubernetes
def test_pods_of_less_care_are_refused_in_that_namespace(control_plane):
    """The check above can fail: a Deployment without the restrictions gets a warning."""
    api = control_plane.api
    (deployment, *_) = manifests("Deployment")
    namespace = {**manifests("Namespace")[0]}
    namespace["metadata"] = {**namespace["metadata"], "name": "evsched-careless"}
    api.create(PATHS["Namespace"], namespace)
    del deployment["spec"]["template"]["spec"]["securityContext"]
    deployment["metadata"]["namespace"] = "evsched-careless"
    path = PATHS["Deployment"].replace("/evsched/", "/evsched-careless/")
    try:
        answer = api.ask("POST", f"{path}?dryRun=All&fieldValidation=Strict", deployment)
        assert "restricted" in answer.headers["Warning"]
    finally:
        api.delete(f"{PATHS['Namespace']}/evsched-careless")
