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
    "Deployment": "/apis/apps/v1/namespaces/evsched/deployments",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/evsched/poddisruptionbudgets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/evsched/networkpolicies",
}


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
