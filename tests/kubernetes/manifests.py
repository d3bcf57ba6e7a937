"""The manifests of `deploy/kubernetes`, as `kubectl apply -k` would send them."""

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/evsched/serviceaccounts",
    "ConfigMap": "/api/v1/namespaces/evsched/configmaps",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings",
    "Deployment": "/apis/apps/v1/namespaces/evsched/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/evsched/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/evsched/networkpolicies",
}


def component(name: str, *kinds: str) -> list[dict[str, Any]]:
    """Return the objects of these kinds that a component adds, or all of them."""
    folder = FOLDER / "components" / name
    named = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    found = [one for file in named for one in yaml.safe_load_all((folder / file).read_text())]
    return [one for one in found if not kinds or one["kind"] in kinds]


def path_of(manifest: dict[str, Any]) -> str:
    """Return the collection in which an object is created."""
    namespace = manifest["metadata"].get("namespace", "")
    return PATHS[manifest["kind"]].format(namespace=namespace)


def manifests(*kinds: str) -> list[dict[str, Any]]:
    """Return the objects of these kinds, or all of them, in their order, with the image that Kustomize puts in."""
    base = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
    (image,) = base["images"]
    found = []
    for name in base["resources"]:
        text = (FOLDER / name).read_text()
        text = text.replace(
            f"image: {image['name']}\n", f"image: {image['name']}:{image['newTag']}\n"
        )
        found += [one for one in yaml.safe_load_all(text) if not kinds or one["kind"] in kinds]
    return found
