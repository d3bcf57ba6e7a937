"""`evsched` as processes of their own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

EVSCHED = Path(sys.executable).with_name("evsched")


class Running:
    """An `evsched run`, or another command that goes on until it is stopped.

    Attributes:
        ready_file: Where it says that it is ready.
        errors: The file with its standard error.
    """

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        name: str = "run",
        environment: dict[str, str] | None = None,
        verbose: bool = True,
        program: Sequence[str] = (str(EVSCHED),),
    ) -> None:
        self.ready_file = folder / f"{name}.ready"
        self.errors = folder / f"{name}.log"
        own = [
            "--ready-file",
            str(self.ready_file),
            "--snapshots",
            str(folder / "snapshots"),
            "--log-format",
            "json",
        ]
        own += ["--verbose"] if verbose else []
        self._command = [*program, *arguments, *(own if arguments[0] == "run" else [])]
        self._environment = {**os.environ, **(environment or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Running":
        """Start it, or start it again."""
        with self.errors.open("ab") as errors:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=self._environment,
            )
        return self

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def wait(self, seconds: float = 60) -> int:
        """Wait for its end and return its exit code."""
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End it with SIGKILL if it runs; what it said it was is then not true any more."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self.ready_file.unlink(missing_ok=True)

    def stop(self) -> int:
        """End it in order and return its exit code."""
        self.signal(signal.SIGTERM)
        return self.wait()

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    def roles(self) -> dict[int, str]:
        """Return what it says it is, by cluster partition; empty while it is not ready."""
        try:
            return {
                one["partition"]: one["role"]
                for one in json.loads(self.ready_file.read_text())["partitions"]
            }
        except FileNotFoundError:
            return {}

    def leading(self) -> set[int]:
        """Return the cluster partitions that it says it leads; nothing while it is not ready in all of them."""
        return {partition for partition, role in self.roles().items() if role == "leading"}

    def wait_ready(self, seconds: float = 60) -> None:
        """Wait until it is ready."""
        wait_until(lambda: bool(self.roles()), seconds, self)

    def said(self) -> str:
        """Return its standard error."""
        return self.errors.read_text()

    def lines(self) -> list[dict]:
        """Return what it said in whole lines."""
        found = []
        for line in self.said().split("\n")[:-1]:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def acknowledged(self, log: str = "") -> list[str]:
        """Return the hashes of the steps that it believed to be in a log."""
        steps = [line for line in self.lines() if line.get("event") == "step"]
        return [line["hash"] for line in steps if not log or line["log"] == log]

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None


def wait_until(holds: Callable[[], bool], seconds: float, *running: Running) -> float:
    """Wait until this holds and return how long it took; fails when one of the processes ends meanwhile."""
    begun = time.monotonic()
    while not holds():
        took = time.monotonic() - begun
        said = "\n".join(one.said()[-3000:] for one in running)
        assert not any(one.over for one in running), f"ended: {said}"
        assert took < seconds, f"still not after {seconds} s: {said}"
        time.sleep(0.02)
    return time.monotonic() - begun


def digest(url: str, hash_seed: int, *options: str) -> str:
    """Return the digest that a reader of its own, with its own hash seed, arrives at."""
    said = subprocess.run(
        [EVSCHED, "status", "--log", url, "--json", *options],
        env={**os.environ, "PYTHONHASHSEED": str(hash_seed)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert said.returncode == 0, said.stderr
    return json.loads(said.stdout)["digest"]
