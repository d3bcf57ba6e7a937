"""What is not ours lies in the repository as it was fetched, with its licence."""

import hashlib
import re
from pathlib import Path

import msgspec
import pytest

from scripts.vendor import PACKAGES, PAGE, TESTS, Vendored, with_paths


def said(folder: Path) -> dict[str, Vendored]:
    """Return what `vendor.json` of a folder says, by package."""
    found = msgspec.json.decode((folder / "vendor.json").read_bytes(), type=list[Vendored])
    return {one.name: one for one in found}


@pytest.mark.parametrize("folder", [PAGE, TESTS], ids=["page", "tests"])
def test_vendored_files_are_as_they_were_fetched(folder):
    """Each file has the hash that is written down, and there is no other; after a change: ``make vendor``."""
    written = {
        name: digest for package in said(folder).values() for name, digest in package.files.items()
    }
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.iterdir()
        if path.name != "vendor.json"
    }
    assert found == written


def test_each_package_is_the_one_that_is_named_with_its_licence():
    """Versions and licences are those of the script, and the licence's text lies beside the code."""
    for package in PACKAGES:
        one = said(package.folder)[package.name]
        assert (one.version, one.licence) == (package.version, package.licence)
        assert set(one.files) == set(package.files)
        assert any(name.endswith(".LICENSE") for name in one.files)
        assert one.integrity.startswith("sha512-")


def test_a_module_imports_by_path_alone():
    """A browser without an import map resolves no package names: there is none left, and an unknown one is refused."""
    for path in PAGE.glob("*.js"):
        for name in re.findall(r"\bfrom ?[\"']([^\"']+)[\"']", path.read_text(encoding="utf-8")):
            assert name.startswith("./") or " " in name, (path.name, name)
    assert with_paths('export*from"preact/hooks";') == 'export*from"./preact-hooks.js";'
    with pytest.raises(KeyError, match="left-pad"):
        with_paths("import p from 'left-pad'")
