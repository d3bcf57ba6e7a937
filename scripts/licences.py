"""Whether the licences of what evsched needs at run time fit its own, Apache-2.0.

    .venv/bin/python -m scripts.licences

Every package of `requirements.lock` that is installed here states a licence, and each is on the list
below. What another platform or Python needs is named, and left to that platform. Exits 1 with the
packages that do not fit.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / "requirements.lock"

FITTING = frozenset(
    {
        "0BSD",
        "APACHE-2.0",
        "BSD-2-CLAUSE",
        "BSD-3-CLAUSE",
        "CC0-1.0",
        "ISC",
        "MIT",
        "MIT-0",
        "PSF-2.0",
        "ZLIB",
    }
)
"""SPDX names of licences under which a program may be linked with one under Apache-2.0, in capitals."""

CLASSIFIED = {
    "License :: OSI Approved :: Apache Software License": "APACHE-2.0",
    "License :: OSI Approved :: BSD License": "BSD-3-CLAUSE",
    "License :: OSI Approved :: ISC License (ISCL)": "ISC",
    "License :: OSI Approved :: MIT License": "MIT",
}
"""What older packages say instead, in a classifier."""


def fits(package: PackageMetadata) -> bool:
    """Tell whether a package may be used: of alternatives one is enough, of a sum every part has to fit."""
    stated = package.get("License-Expression")
    if stated:
        choices = re.split(r"\s+OR\s+", stated.upper().strip("()"))
        return any(FITTING.issuperset(re.split(r"[\s()]+AND[\s()]+", one)) for one in choices)
    classes = package.get_all("Classifier") or []
    named = [CLASSIFIED.get(one) for one in classes if one.startswith("License ::")]
    return bool(named) and None not in named


def locked(text: str) -> list[str]:
    """Return the names of the packages in a lock file, each once, in its order."""
    return list(dict.fromkeys(re.findall(r"^([A-Za-z0-9._-]+)==", text, re.MULTILINE)))


def main() -> int:
    """Check all packages; return the exit code."""
    unfit, absent = [], []
    for name in locked(LOCK.read_text(encoding="utf-8")):
        try:
            if not fits(metadata(name)):
                unfit.append(name)
        except PackageNotFoundError:
            absent.append(name)
    if absent:
        print(f"not installed here, so not checked: {', '.join(absent)}", file=sys.stderr)
    for name in unfit:
        print(f"{name}: its licence is not on the list of {Path(__file__).name}", file=sys.stderr)
    return 1 if unfit else 0


if __name__ == "__main__":
    sys.exit(main())
