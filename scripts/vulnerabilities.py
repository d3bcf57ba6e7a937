"""Ask pip-audit for known vulnerabilities of every pinned package, and tell "none" from "nobody knows".

    .venv/bin/python -m scripts.vulnerabilities PIP-AUDIT

Exits 0 when no pinned package has a known one, 1 with a line for each that there is, and 2 when the
data cannot be had: of all packages, or of some. pip-audit itself exits with 1 in each of the last cases.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

LOCK = Path(__file__).resolve().parents[1] / "requirements-dev.lock"
CLEAN, VULNERABLE, UNKNOWN = 0, 1, 2


class Vulnerability(msgspec.Struct):
    """What pip-audit says of one."""

    id: str
    fix_versions: list[str] = []


class Dependency(msgspec.Struct):
    """What pip-audit says of a package; ``skip_reason`` says why it knows nothing of it."""

    name: str
    version: str = ""
    skip_reason: str = ""
    vulns: list[Vulnerability] = []


class Answer(msgspec.Struct):
    """The document of pip-audit."""

    dependencies: list[Dependency]


def main(program: str) -> int:
    """Ask, say what came of it, and return the exit code; ``program`` is pip-audit."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "answer.json"
        ran = subprocess.run(  # noqa: S603 - the program of the Makefile
            [program, "--disable-pip", "--require-hashes", "--progress-spinner", "off",
             "-f", "json", "-o", str(file), "-r", str(LOCK)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        try:
            answer = msgspec.json.decode(file.read_bytes(), type=Answer)
        except (OSError, msgspec.MsgspecError):
            said = [line for line in ran.stderr.splitlines() if line.strip()]
            print(
                f"vulnerabilities: unknown, the data cannot be had: {said[-1] if said else ran.returncode}"
            )
            return UNKNOWN
    return told(answer)


def told(answer: Answer) -> int:
    """Say what is known; return the exit code."""
    unknown = [one for one in answer.dependencies if one.skip_reason]
    found = [(one, bad) for one in answer.dependencies for bad in one.vulns]
    for one, bad in found:
        fixed = ", ".join(bad.fix_versions) or "no version"
        print(f"{one.name} {one.version}: {bad.id}, mended in {fixed}")
    if unknown or not answer.dependencies:
        why = f", such as {unknown[0].name}: {unknown[0].skip_reason}" if unknown else ""
        count = f"{len(unknown)} of {len(answer.dependencies)} packages"
        print(f"vulnerabilities: unknown, the data cannot be had of {count}{why}")
    if found:
        return VULNERABLE
    if unknown or not answer.dependencies:
        return UNKNOWN
    print(f"vulnerabilities: none known of {len(answer.dependencies)} packages")
    return CLEAN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
