"""What the README and the pages of the documentation show is what happens.

Each ``console`` block is a recorded conversation: lines that begin with ``$`` are commands, what
follows is what they print, on both outputs, as a terminal would show it. All blocks of a section (a
heading of the second level) run in one shell and one fresh folder, in which `docs` and `tests` are
those of the repository. What differs from run to run (process ids, random ids, digests, the time of
day) is made equal first. A command that ends with ``&`` runs on until its section ends.

``EVSCHED_RECORD=1 make test ARGS="-k readme"`` writes down what happens now; read the difference
before you commit it.
"""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cyclopts import App

from evsched.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## ", re.MULTILINE)
BROKER, NAME = "localhost:9092", "cluster"
"""As the pages call the broker and the log on it; the tests have others."""

VARIES = (
    (re.compile(r"\bprocess \d+\b"), "process N"),
    (re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{32})\b"), "HEX"),
    (re.compile(r"\bdigest [0-9a-f]{16}\b"), "digest HEX"),
    # How many proposals a running leader finds in one look, and so how many frames it writes, is a
    # matter of the moment.
    (re.compile(r"\bends with frame \d+\b"), "ends with frame N"),
    (re.compile(r"\b20\d\d-(?!01-01T09:0)\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "TIME"),
)


def sections(page: Path) -> dict[str, str]:
    """Return the sections of a page that show commands, by heading."""
    parts = SECTION.split(page.read_text(encoding="utf-8"))
    return {part.partition("\n")[0].strip(): part for part in parts if BLOCK.search(part)}


SHOWN = [
    pytest.param(
        page,
        heading,
        id=f"{page.stem}: {heading}".lower().replace(" ", "-"),
        # A leader that gets no time for its lease begins another term, and numbers events otherwise.
        marks=[pytest.mark.serial] if "$ evsched run" in text else [],
    )
    for page in PAGES
    for heading, text in sections(page).items()
]


def conversation(block: str) -> list[tuple[str, str]]:
    """Return the commands of a block, each with what is shown below it; a backslash at the end of a line goes on in the next."""
    found: list[tuple[str, str]] = []
    going_on = False
    for line in block.splitlines():
        if line.startswith("$ ") and not going_on:
            found.append((line[2:], ""))
        elif going_on:
            found[-1] = (f"{found[-1][0]}\n{line}", "")
        else:
            command, shown = found[-1]
            found[-1] = (command, f"{shown}{line}\n")
        going_on = found[-1][1] == "" and found[-1][0].endswith("\\")
    return found


def same(text: str) -> str:
    """Return a text in which everything that differs from run to run is equal, and no line ends in spaces."""
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def perform(commands: list[str], folder: Path, settings: dict[str, str]) -> list[tuple[str, int]]:
    """Run commands one after the other in one shell; return what each printed, and its exit code."""
    for name in ("docs", "tests"):
        (folder / name).symlink_to(ROOT / name)
    mark = f"--{os.urandom(8).hex()}--"
    script = "\n".join(
        f"{command}\n_s=$?; printf '%s%s\\n' '{mark}' $_s; (exit $_s)" for command in commands
    )
    home = folder / "home"
    home.mkdir()
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("EVSCHED_", "XDG_", "PYTEST_"))
    }
    environment = inherited | settings | {
        "HOME": str(home),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        # Both outputs in the order in which a terminal would show them, in lines as wide as the
        # page has them.
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "error",
    }  # fmt: skip
    shell = f"trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n{script}\n"
    done = subprocess.run(
        ["bash", "-c", shell], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, timeout=300, check=False,
    )  # fmt: skip
    pieces = re.split(rf"{re.escape(mark)}(\d+)\n", done.stdout)
    return [(pieces[place], int(pieces[place + 1])) for place in range(0, len(pieces) - 1, 2)]


def record(page: Path, text: str, blocks: list[str], said: list[str]) -> None:
    """Write down in the page what the commands of a section print now."""
    new, answers = text, iter(said)
    for block in blocks:
        lines = "".join(
            f"$ {command}\n{answer}"
            for command, answer in ((one, next(answers)) for one, _ in conversation(block))
        )
        new = new.replace(f"```console\n{block}```", f"```console\n{lines}```", 1)
    page.write_text(page.read_text(encoding="utf-8").replace(text, new), encoding="utf-8")


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("page", "heading"), SHOWN)
def test_what_is_shown_is_what_happens(page, heading, tmp_path, request):
    """Each command prints what stands below it, and none of them is refused or fails."""
    text = sections(page)[heading]
    blocks = BLOCK.findall(text)
    pairs = [pair for block in blocks for pair in conversation(block)]
    broker, name = BROKER, NAME
    if "kafka://" in text:
        broker, name = (
            request.getfixturevalue("kafka_bootstrap"),
            request.getfixturevalue("kafka_topic_name"),
        )
    commands = [command.replace(f"{BROKER}/{NAME}", f"{broker}/{name}") for command, _ in pairs]
    answers = [
        (said.replace(broker, BROKER).replace(name, NAME), code)
        for said, code in perform(commands, tmp_path, {})
    ]
    assert len(answers) == len(pairs)
    # The tour shows what is refused, too: then the answer is no. Nothing is misused, unreachable,
    # or a bug.
    wrong = [
        f"$ {command}\n{said}"
        for (command, _), (said, code) in zip(pairs, answers, strict=True)
        if code > 1
    ]
    assert not wrong, "\n".join(wrong)
    if os.environ.get("EVSCHED_RECORD"):
        said = [
            "".join(f"{line.rstrip()}\n" for line in answer.splitlines()) for answer, _ in answers
        ]
        record(
            page,
            text,
            blocks,
            [
                old if same(old) == same(new) else new
                for (_, old), new in zip(pairs, said, strict=True)
            ],
        )
    for (command, shown), (said, _) in zip(pairs, answers, strict=True):
        assert os.environ.get("EVSCHED_RECORD") or (command, same(said)) == (command, same(shown))


def parts_of(command: str) -> list[str]:
    """Return a command, or each of its own commands where it has some: ``log show``, ``log tail``."""
    module, name = COMMANDS[command][0].split(":")
    found = getattr(importlib.import_module(module), name)
    return (
        [f"{command} {part}" for part in found if not part.startswith("-")]
        if isinstance(found, App)
        else [command]
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_shown(command):
    """A page shows each command at work, and one has them all in a table with the line that `evsched --help` has."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = "\n".join(one for block in BLOCK.findall(text) for one, _ in conversation(block))
    assert [
        part for part in parts_of(command) if not re.search(rf"\bevsched {part}\b", shown)
    ] == []
    assert f"| `{command}` | {COMMANDS[command][1]} |" in text


def test_links_lead_somewhere():
    """Every relative link of every page, and of the records of decisions, names a file of the repository."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
    ]
    inside = [(page, link) for page, link in links if "://" not in link]
    assert [
        f"{page.relative_to(ROOT)}: {link}"
        for page, link in inside
        if not (page.parent / link).exists()
    ] == []


def test_the_index_names_every_page():
    """Who looks for a page or a record of a decision finds it there."""
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "adr").glob("*.md")]
    names = [
        page.relative_to(ROOT / "docs").as_posix() for page in pages if page.name != "index.md"
    ]
    assert [name for name in sorted(names) if f"]({name})" not in index] == []
