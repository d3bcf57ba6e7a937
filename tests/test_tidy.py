"""Holds what lint cannot: sizes, docstrings, purity of the pure rooms, what a clone may not name, what the wheel contains."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import zipfile
from functools import cache
from pathlib import Path

import pytest

import events

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("events", "evsched", "projections", "replays")
LONGEST_FILE = 500
LONGEST_FUNCTION = 80
LEFT_BEHIND = {
    ".venv",
    ".kafka",
    "build",
    "dist",
    "__pycache__",
    ".pytest_cache",
    ".hypothesis",
    ".mypy_cache",
    ".ruff_cache",
}
# A builtin that lets in the world, or that answers differently in another process.
IMPURE = {"open", "input", "print", "hash", "id", "breakpoint", "exec", "eval"}
MACHINE_PATH = re.compile(
    r"(?:^|[^A-Za-z0-9_.])/(?:tmp|work|root|farm|home)/[A-Za-z]", re.MULTILINE
)
REGISTRY = re.compile(
    r"\b(?:pypi|pythonhosted|maven\.apache|maven|npmjs|debian|crates)\.(?:org|io)\b"
    # Names of Go modules begin with a host; that of the registry is followed by no such name.
    r"|(?<!google\.)\bgolang\.org\b(?!/x/)"
)


@cache
def tracked() -> tuple[Path, ...]:
    """Return the files of the repository as git lists them, new ones that are not ignored included, but only those present.

    A tree without git (an unpacked archive) is walked, without the folders that runs leave behind.
    """
    if not (ROOT / ".git").exists():
        files = (
            file for file in ROOT.rglob("*") if not LEFT_BEHIND & set(file.relative_to(ROOT).parts)
        )
        return tuple(sorted(file for file in files if file.is_file()))
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return tuple(
        sorted(
            ROOT / name for name in set(said.stdout.split("\0")) if name and (ROOT / name).is_file()
        )
    )


def sources(*folders: str) -> list[Path]:
    """Return the Python files below these folders of the repository, all of them without an argument."""
    return [
        file
        for file in tracked()
        if file.suffix == ".py" and (not folders or file.relative_to(ROOT).parts[0] in folders)
    ]


def pure_rooms() -> list[Path]:
    """Return the files of the scheduler's core and of the vocabulary; the streams below `events` are adapters."""
    core = [file for file in sources("evsched") if file.is_relative_to(ROOT / "evsched" / "core")]
    return core + [file for file in sources("events") if file.parent == ROOT / "events"]


def text_of(file: Path) -> str:
    """Return a file's text, or nothing for one that is not text."""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def at(file: Path, line: int) -> str:
    """Return a place as people and editors write it."""
    return f"{file.relative_to(ROOT)}:{line}"


@cache
def tree_of(file: Path) -> ast.Module:
    """Return what a source file says, parsed once for all tests."""
    return ast.parse(text_of(file))


def functions(file: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Return every function and method of a file, inner ones too."""
    return [
        node
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def public_without_docstring(file: Path) -> list[str]:
    """Return the places of public classes, functions and methods that do not say what they are for."""
    found: list[str] = []

    def visit(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(
                node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
            ) and not node.name.startswith("_"):
                overload = any(
                    "overload" in ast.unparse(each) or ".setter" in ast.unparse(each)
                    for each in node.decorator_list
                )
                if ast.get_docstring(node) is None and not overload:
                    found.append(f"{at(file, node.lineno)} {node.name}")
                if isinstance(node, ast.ClassDef):
                    visit(node.body)

    visit(tree_of(file).body)
    return found


def test_files_are_small() -> None:
    """A file that outgrows a reader's patience has too much in it."""
    long = {
        at(file, 1): count
        for file in sources()
        if (count := len(text_of(file).splitlines())) > LONGEST_FILE
    }
    assert not long


def test_functions_are_small() -> None:
    """So has a function; its docstring does not count."""
    long = []
    for file in sources():
        for node in functions(file):
            first = (
                node.body[1]
                if ast.get_docstring(node) is not None and len(node.body) > 1
                else node.body[0]
            )
            if (node.end_lineno or 0) - first.lineno + 1 > LONGEST_FUNCTION:
                long.append(f"{at(file, node.lineno)} {node.name}")
    assert not long


def test_everything_public_says_what_it_is_for() -> None:
    """Every module, and every public class, function and method of the packages, has a docstring."""
    silent = [place for file in sources(*PACKAGES) for place in public_without_docstring(file)]
    trees = {file: tree_of(file) for file in sources(*PACKAGES)}
    silent += [
        at(file, 1) for file, tree in trees.items() if tree.body and ast.get_docstring(tree) is None
    ]
    assert not silent


def test_every_test_says_what_it_shows() -> None:
    """A test's docstring is the sentence that it proves."""
    silent = [
        f"{at(file, node.lineno)} {node.name}"
        for file in sources("tests")
        for node in functions(file)
        if node.name.startswith("test_") and ast.get_docstring(node) is None
    ]
    assert not silent


def test_pure_rooms_call_nothing_impure() -> None:
    """The core and the vocabulary use no builtin that does I/O or differs between processes; ruff bans the modules."""
    calls = [
        f"{at(file, node.lineno)} {node.func.id}()"
        for file in pure_rooms()
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE
    ]
    assert not calls


def test_pure_rooms_use_no_floating_point() -> None:
    """No decision rests on rounding: no float literal, no `float`, no true division in the core and the vocabulary."""
    found = [
        at(file, node.lineno)
        for file in pure_rooms()
        for node in ast.walk(tree_of(file))
        if (isinstance(node, ast.Constant) and isinstance(node.value, float))
        or (isinstance(node, ast.Name) and node.id == "float")
        or (isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Div))
    ]
    assert not found


def test_pure_rooms_iterate_over_no_set() -> None:
    """A set's order differs between processes, so no decision may see it: no loop over a set literal or `set(...)`."""

    def is_set(node: ast.expr) -> bool:
        made = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"set", "frozenset"}
        )
        return made or isinstance(node, ast.Set | ast.SetComp)

    loops = [
        at(file, node.iter.lineno)
        for file in pure_rooms()
        for node in ast.walk(tree_of(file))
        if isinstance(node, ast.For | ast.comprehension) and is_set(node.iter)
    ]
    assert not loops


FAMILIES = ("KueueSpec", "YunikornSpec", "CustomSpec")
"""The configurations by which a family could be told."""

KNOW_FAMILIES = (
    "evsched/core/kueue/",
    "evsched/core/yunikorn/",
    "evsched/core/registry.py",
    "evsched/config/",
    "evsched/api/yunikorn/",
)
"""Where it may be asked which family is in force."""


def test_only_a_family_itself_asks_which_one_is_in_force() -> None:
    """A third family would have to be taught to every other place: no `isinstance` and no `case` on a family's configuration."""

    def asked(node: ast.AST) -> ast.expr | None:
        if isinstance(node, ast.MatchClass):
            return node.cls
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return node.args[1] if called and node.func.id == "isinstance" else None

    found = [
        at(file, kind.lineno)
        for file in sources("evsched", "projections", "replays")
        if not str(file.relative_to(ROOT)).startswith(KNOW_FAMILIES)
        for node in ast.walk(tree_of(file))
        if (kind := asked(node)) is not None and any(name in ast.unparse(kind) for name in FAMILIES)
    ]
    assert not found


def test_one_name_means_one_type() -> None:
    """Who reads a name has met it once: no two classes, aliases of types or type variables with a name of their own share it."""
    places: dict[str, list[str]] = {}
    for file in sources("events", "evsched", "projections", "replays"):
        for node in tree_of(file).body:
            names = []
            if isinstance(node, ast.ClassDef):
                names = [node.name]
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript | ast.BinOp):
                names = [one.id for one in node.targets if isinstance(one, ast.Name)]
            for name in names:
                if name[0] != "_" and not name.isupper() and name[0].isupper():
                    places.setdefault(name, []).append(at(file, node.lineno))
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_nothing_names_a_machine_or_a_registry() -> None:
    """A clone works anywhere: no path of somebody's machine, no host of a package registry in any file."""
    named = [
        f"{at(file, text[: found.start()].count(chr(10)) + 1)} {found[0].strip()}"
        for file in tracked()
        if (text := text_of(file))
        for pattern in (MACHINE_PATH, REGISTRY)
        for found in pattern.finditer(text)
    ]
    assert not named


def test_our_events_package_is_the_one_imported() -> None:
    """Another distribution also has a package called `events`; it is neither imported, nor installed, nor locked."""
    assert Path(events.__file__).parent == ROOT / "events"
    owners = set(importlib.metadata.packages_distributions().get("events", ()))
    assert owners <= {"evsched"}
    for lock in ("requirements.lock", "requirements-dev.lock"):
        assert not re.search(r"^events==", (ROOT / lock).read_text(), re.MULTILINE)


def test_the_lock_is_pinned_with_hashes() -> None:
    """Every requirement names one version and its hashes, and what a user runs is locked alike for a developer."""
    pins = {}
    for lock in ("requirements.lock", "requirements-dev.lock"):
        entries = re.findall(
            r"^([a-z0-9][^\s=]*==\S+)(.*(?:\n {4}--hash=\S+.*)+)?",
            (ROOT / lock).read_text(),
            re.MULTILINE,
        )
        assert entries
        assert [pin for pin, hashes in entries if "--hash=sha256:" not in hashes] == []
        pins[lock] = {pin for pin, _ in entries}
    assert pins["requirements.lock"] <= pins["requirements-dev.lock"]


@pytest.mark.slow
def test_the_wheel_holds_the_four_packages_and_their_data(tmp_path: Path) -> None:
    """Each file of the packages is in the one wheel (but lint's settings), and what is installed from it is ours."""
    build = [
        "wheel",
        "-q",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    wanted = {
        str(file.relative_to(ROOT))
        for file in tracked()
        if file.relative_to(ROOT).parts[0] in PACKAGES and file.name != "ruff.toml"
    }
    assert held == wanted
    assert {f"{package}/py.typed" for package in PACKAGES} <= held

    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    program = f"import {', '.join(PACKAGES)}; print({', '.join(f'{package}.__file__' for package in PACKAGES)}, sep='|')"
    path = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r}); "
    said = subprocess.run(
        [sys.executable, "-I", "-c", path + program],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert all(Path(place).is_relative_to(tmp_path / "site") for place in said.strip().split("|"))
