"""What is released: the wheel comes out the same wherever it is built, and nothing in it has a licence that does not fit."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from email.message import Message
from pathlib import Path

import pytest

from scripts import vulnerabilities
from scripts.licences import LOCK, fits, locked, main

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_two_builds_give_the_same_wheel(tmp_path):
    """Another folder, umask, time zone, language, hash seed and age of the files change no byte."""
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    wanted = [
        one
        for one in files
        if one and not one.startswith(("tests/", "docs/", "replays/recordings/0"))
    ]
    hashes = []
    for number, zone in enumerate(("UTC", "Asia/Kathmandu")):
        copy = tmp_path / f"folder-{number}" / ("deep" * number) / "source"
        for name in wanted if number else reversed(wanted):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
            os.utime(copy / name, (10**9 * (number + 1), 10**9 * (number + 1)))
        out = tmp_path / f"out-{number}"
        subprocess.run(
            [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
             "--no-index", "-w", str(out), str(copy)],
            check=True, capture_output=True, umask=(0o022, 0o077)[number],
            env={**os.environ, "TZ": zone, "PYTHONHASHSEED": str(number), "LC_ALL": ("C", "C.UTF-8")[number]},
        )  # fmt: skip
        (wheel,) = out.glob("*.whl")
        hashes.append((wheel.name, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    assert hashes[0] == hashes[1]


def test_every_dependency_has_a_licence_that_fits():
    """All packages of the lock file for users, as they are installed here."""
    assert len(locked(LOCK.read_text())) > 10
    assert main() == 0


@pytest.mark.parametrize(
    ("header", "value", "expected"),
    [
        ("License-Expression", "Apache-2.0", True),
        ("License-Expression", "BSD-3-Clause AND 0BSD AND MIT", True),
        ("License-Expression", "GPL-3.0-only OR MIT", True),
        ("License-Expression", "MIT AND GPL-3.0-only", False),
        ("License-Expression", "AGPL-3.0-or-later", False),
        ("License-Expression", "LGPL-2.1-only", False),
        ("Classifier", "License :: OSI Approved :: MIT License", True),
        ("Classifier", "License :: OSI Approved :: GNU General Public License v3 (GPLv3)", False),
        ("License", "MIT", False),
    ],
)
def test_licences_are_told_apart(header, value, expected):
    """A choice needs one licence that fits, a sum all of them; a package that states none by name does not fit."""
    package = Message()
    package[header] = value
    assert fits(package) is expected


@pytest.mark.parametrize(
    ("answer", "code", "said"),
    [
        ([{"name": "a", "version": "1", "vulns": []}], 0, "none known of 1 packages"),
        (
            [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}],
            1,
            "a 1: CVE-1, mended in 2",
        ),
        (
            [{"name": "a", "skip_reason": "not found"}],
            2,
            "cannot be had of 1 of 1 packages, such as a: not found",
        ),
        ([], 2, "cannot be had of 0 of 0 packages"),
        (None, 2, "the data cannot be had: ConnectionError: no route"),
    ],
)
def test_an_audit_that_learned_nothing_is_no_good_news(tmp_path, capsys, answer, code, said):
    """A vulnerability, none, and no answer are three exit codes and three sentences."""
    document = None if answer is None else json.dumps({"dependencies": answer, "fixes": []})
    program = tmp_path / "pip-audit"
    program.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        f"answer = {document!r}\n"
        "if answer is None:\n"
        "    sys.exit('ConnectionError: no route')\n"
        "open(sys.argv[sys.argv.index('-o') + 1], 'w').write(answer)\n"
    )
    program.chmod(0o700)
    assert vulnerabilities.main(str(program)) == code
    assert said in capsys.readouterr().out
