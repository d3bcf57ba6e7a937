"""Manifests as text, for the tests of what they become and of the rules that they keep."""

from __future__ import annotations

import textwrap

import pytest

from events.configuration import KueueSpec
from evsched.config import ConfigurationError, Loaded, load_texts

FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"


def load(*texts: str) -> Loaded:
    """Load manifests, each text as a file of its own."""
    return load_texts([(f"{index}.yaml", text) for index, text in enumerate(texts)])


def load_one(*texts: str) -> KueueSpec:
    """Return the configuration that manifests make."""
    (spec,) = load(*texts).configurations
    return spec


def faults(text: str) -> list[str]:
    """Return what manifests are refused for."""
    with pytest.raises(ConfigurationError) as caught:
        load(text)
    return [str(fault) for fault in caught.value.faults]


def queue(spec: str, *, version: str = "v1beta2", metadata: str = "{name: a}") -> str:
    """Return a ClusterQueue whose spec begins in the fifth line."""
    head = f"apiVersion: kueue.x-k8s.io/{version}\nkind: ClusterQueue\nmetadata: {metadata}\n"
    return f"{head}spec:\n{textwrap.indent(spec, '  ')}\n"


def cohort(spec: str, name: str = "a", version: str = "v1beta2") -> str:
    """Return a Cohort."""
    return f"apiVersion: kueue.x-k8s.io/{version}\nkind: Cohort\nmetadata: {{name: {name}}}\nspec: {spec}\n"


def config(text: str, version: str = "v1beta1") -> str:
    """Return a Configuration."""
    return f"apiVersion: config.kueue.x-k8s.io/{version}\nkind: Configuration\n{text}\n"


def group(quotas: str) -> str:
    """Return the spec of a queue in a cohort with one flavor, whose quotas stand in the ninth line."""
    flavors = f"[{{name: f, resources: [\n{quotas}]}}]"
    return f"cohortName: c\nnamespaceSelector: {{}}\nresourceGroups:\n- {{coveredResources: [cpu], flavors: {flavors}}}"
