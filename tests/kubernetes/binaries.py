"""Builds the programs of a Kubernetes control plane: etcd, kube-apiserver, kube-controller-manager and KWOK.

`controlplane/go.mod` beside this file names the versions, and its go.sum what each module must hold.
The Go toolchain fetches and builds them once, in about seven minutes of one CPU. They are kept
outside the tree, in `${XDG_CACHE_HOME:-~/.cache}/evsched/controlplane`, in a folder named after what
they were built from: another go.mod or another Go builds them anew. Several test processes may ask
at once; a file lock lets one of them build, and a program gets its name when it is complete.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from pathlib import Path

MODULE = Path(__file__).with_name("controlplane")
PROGRAMS = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kwok": "sigs.k8s.io/kwok/cmd/kwok",
}
STAGES = "stages.yaml"
"""What KWOK does with nodes and pods, as its own module ships it."""

_STAGE_FILES = (
    "node/fast/node-initialize.yaml",
    "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    "pod/fast/pod-ready.yaml",
    "pod/fast/pod-complete.yaml",
    "pod/fast/pod-delete.yaml",
)
_KWOK = "sigs.k8s.io/kwok"
_OLDEST_GO = (1, 26)
_BUILD_SECONDS = 2400


class ControlPlaneUnavailable(Exception):
    """No Kubernetes can be had for the tests; the message says what is missing. It fails them: none is skipped."""

    def __init__(self, missing: str) -> None:
        super().__init__(
            f"no Kubernetes for the tests: {missing}\n"
            "Install Go (1.26 or newer) where its module proxy can be reached, or set EVSCHED_TEST_KUBECONFIG=file."
        )


def binaries() -> Path:
    """Return the folder with the four programs and KWOK's stages, making those that are not there yet.

    Raises:
        ControlPlaneUnavailable: Go is missing or too old, or it could not fetch or build; its last
            words are in the message.
    """
    go = _go()
    folder = _cache() / _built_from(go)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name, package in PROGRAMS.items():
            if not (folder / name).exists():
                _build(go, package, folder / name)
        if not (folder / STAGES).exists():
            _copy_stages(go, folder / STAGES)
    return folder


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "evsched" / "controlplane"


def _go() -> str:
    path = shutil.which("go")
    if path is None:
        raise ControlPlaneUnavailable("there is no `go` on the PATH")
    found = re.search(r"go(\d+)\.(\d+)", _version(path))
    if found is None or (int(found[1]), int(found[2])) < _OLDEST_GO:
        raise ControlPlaneUnavailable(f"{path} is {_version(path)}, expected Go 1.26 or newer")
    return path


def _version(go: str) -> str:
    run = subprocess.run([go, "version"], capture_output=True, text=True, check=False, cwd=MODULE)
    return run.stdout.strip() or run.stderr.strip()


def _built_from(go: str) -> str:
    """Return a short name of everything that the programs are built from."""
    parts = [_version(go).encode()]
    parts += [(MODULE / name).read_bytes() for name in ("go.mod", "go.sum")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def _build(go: str, package: str, target: Path) -> None:
    """Build one program. It gets its name last, so that a build that is cut off leaves none."""
    print(f"building {target.name} into {target.parent}, which takes minutes the first time")
    part = target.with_name(f"{target.name}.part")
    # Without C no compiler is needed beside Go's; without symbols and paths the programs are half
    # as large and the same everywhere.
    flags = f"-s -w -X k8s.io/component-base/version.gitVersion={_release()}"
    _run(
        [
            *(go, "build", "-mod=readonly", "-buildvcs=false", "-trimpath"),
            *(f"-ldflags={flags}", "-o", str(part), package),
        ]
    )
    part.rename(target)


def _copy_stages(go: str, target: Path) -> None:
    """Keep KWOK's own stages beside it, as the cache of modules may be emptied."""
    _run([go, "mod", "download", _KWOK])
    folder = Path(_run([go, "list", "-m", "-f", "{{.Dir}}", _KWOK]).strip())
    part = target.with_name(f"{target.name}.part")
    files = [folder / "kustomize" / "stage" / name for name in _STAGE_FILES]
    part.write_text("\n---\n".join(file.read_text() for file in files))
    part.rename(target)


def _release() -> str:
    """Return the release of Kubernetes that go.mod names; the server says it to its clients."""
    found = re.search(r"k8s\.io/kubernetes (v[\d.]+)", (MODULE / "go.mod").read_text())
    assert found is not None
    return found[1]


def _run(command: list[str]) -> str:
    """Return what a command of the Go toolchain prints."""
    what = " ".join(command[1:3])
    try:
        run = subprocess.run(
            command,
            cwd=MODULE,
            # Without a compiler of C, the same everywhere.
            env={**os.environ, "CGO_ENABLED": "0"},
            capture_output=True,
            text=True,
            check=False,
            timeout=_BUILD_SECONDS,
        )
    except subprocess.TimeoutExpired as error:
        raise ControlPlaneUnavailable(
            f"go {what} took more than {_BUILD_SECONDS} seconds"
        ) from error
    if run.returncode:
        words = "\n".join((run.stderr or run.stdout).splitlines()[-8:])
        raise ControlPlaneUnavailable(f"go {what} failed: {words}")
    return run.stdout
