"""Fetch the JavaScript that is not ours from npm and lay it beside the page, with hashes and licences.

    .venv/bin/python -m scripts.vendor

The page is served as it lies in the repository: no build step, no other host. A browser resolves no
package names without an import map, and an import map has to stand inline, which the page's content
security policy forbids. So names of packages in `import` become paths; nothing else is changed.
`vendor.json` beside the files names versions, licences and hashes, and `tests/page/test_vendor.py`
compares them.
"""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "evsched" / "page" / "vendor"
TESTS = ROOT / "tests" / "page" / "vendor"

IMPORTED = re.compile(r"""(\bfrom ?)(["'])((?:@[\w-]+/)?[\w/-]+)\2""")
SOURCE_MAP = re.compile(r"\n?//# sourceMappingURL=\S+")


class Package(NamedTuple):
    """A package of npm.

    Attributes:
        name, version: As npm has them.
        licence: Its SPDX name.
        files: Name here to path in the package.
        folder: Where they lie.
    """

    name: str
    version: str
    licence: str
    files: dict[str, str]
    folder: Path = PAGE


PACKAGES = (
    Package("preact", "11.2.0", "MIT", {
        "preact.js": "dist/preact.mjs", "preact-hooks.js": "hooks/dist/hooks.mjs", "preact.LICENSE": "LICENSE",
    }),
    Package("htm", "3.1.1", "Apache-2.0", {
        "htm.js": "dist/htm.mjs", "htm-preact.js": "preact/index.mjs", "htm.LICENSE": "LICENSE",
    }),
    Package("@preact/signals-core", "1.14.5", "MIT", {
        "signals-core.js": "dist/signals-core.mjs", "signals-core.LICENSE": "LICENSE",
    }),
    Package("@preact/signals", "2.11.4", "MIT", {
        "signals.js": "dist/signals.mjs", "signals.LICENSE": "LICENSE",
    }),
    Package("uplot", "1.6.32", "MIT", {
        "uplot.js": "dist/uPlot.esm.js", "uplot.css": "dist/uPlot.min.css", "uplot.LICENSE": "LICENSE",
    }),
    Package("axe-core", "4.14.1", "MPL-2.0", {"axe.js": "axe.min.js", "axe.LICENSE": "LICENSE"}, TESTS),
)  # fmt: skip

PATHS = {
    "preact": "./preact.js",
    "preact/hooks": "./preact-hooks.js",
    "htm": "./htm.js",
    "@preact/signals-core": "./signals-core.js",
}
"""Where the packages that others import lie."""


class Vendored(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of a package in `vendor.json`.

    Attributes:
        integrity: Of the package as npm serves it: ``sha512-`` and the hash in base64.
        files: Name here to the SHA-256 of the file as it lies here, in hexadecimal.
    """

    name: str
    version: str
    licence: str
    integrity: str
    files: dict[str, str]


def with_paths(source: str) -> str:
    """Return a module that imports by path what it imported by name, without the place of a source map.

    Raises:
        KeyError: It imports a package of which no path is known.
    """
    found = IMPORTED.sub(lambda one: f"{one[1]}{one[2]}{PATHS[one[3]]}{one[2]}", source)
    return SOURCE_MAP.sub("", found)


def fetch(package: Package) -> Vendored:
    """Write the files of a package into its folder and return what is to be said of it."""
    with tempfile.TemporaryDirectory() as folder:
        named = f"{package.name}@{package.version}"
        command = ["npm", "pack", "--silent", "--pack-destination", folder, named]
        subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - names of ours
        (archive,) = Path(folder).iterdir()
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        hashes = {}
        with tarfile.open(archive) as held:
            for name, path in package.files.items():
                member = held.extractfile(f"package/{path}")
                assert member is not None
                found = member.read()
                if name.endswith(".js") and package.folder == PAGE:
                    found = with_paths(found.decode()).encode()
                (package.folder / name).write_bytes(found)
                hashes[name] = hashlib.sha256(found).hexdigest()
    return Vendored(
        name=package.name,
        version=package.version,
        licence=package.licence,
        integrity=f"sha512-{digest}",
        files=hashes,
    )


def main() -> None:
    """Fetch everything anew."""
    for folder in (PAGE, TESTS):
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            old.unlink()
        found = [fetch(package) for package in PACKAGES if package.folder == folder]
        document = msgspec.json.format(msgspec.json.encode(found), indent=2)
        (folder / "vendor.json").write_bytes(document + b"\n")


if __name__ == "__main__":
    main()
