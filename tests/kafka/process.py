"""A Kafka broker as a process of this machine, on the loopback address, with its data in a folder of its own."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.kafka import jars, prepared
from tests.kafka.missing import BrokerUnavailable
from tests.kafka.properties import Door, Ports, properties, with_doors
from tests.kafka.wire import free_ports, wait_until_ready

_GUARD = Path(__file__).with_name("guard.py")
_START_SECONDS = 90
_STOP_SECONDS = 20
_ARCHIVE_SECONDS = 60
# Start-up is most of such a broker's life, so the quick compiler alone; a benchmark passes options
# of its own.
QUICK_JVM = ("-Xms64m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class Place(NamedTuple):
    """Where a broker listens, and the id of its cluster."""

    ports: Ports
    cluster: str


def new_place(cluster: str | None = None) -> Place:
    """Return free ports, in a cluster or in one of its own."""
    return Place(Ports(*free_ports(3)), cluster or prepared.new_id())


class KafkaProcess:
    """A broker that can be killed and started again on its data and its port.

    Attributes:
        bootstrap: `host:port` for clients, the same for the broker's whole life.
        version: The release, as on Maven Central.
        log: The file with what the broker has to say (warnings and worse).
    """

    def __init__(
        self,
        version: str = jars.DEFAULT_VERSION,
        config: Mapping[str, str] | None = None,
        jvm: tuple[str, ...] = QUICK_JVM,
        place: Place | None = None,
        doors: Sequence[Door] = (),
    ) -> None:
        """Prepare a broker; nothing runs before `start`.

        Args:
            version: The release.
            config: Lines of server.properties, in addition or instead.
            jvm: Options of Java.
            place: Where it listens and which cluster it belongs to; None: anywhere, one of its own.
            doors: More listeners for clients.
        """
        self.version = version
        self._java = jars.java()
        self._jars = jars.jars(version).resolve()
        self._jvm = jvm
        self._learned = self._learning(version)
        self._folder = Path(tempfile.mkdtemp(prefix="evsched-kafka-"))
        self.log = self._folder / "broker.log"
        ports, self._cluster = place or new_place()
        self._node = (config or {}).get("node.id", "1")
        self.bootstrap = f"127.0.0.1:{ports.client}"
        self._internal = f"127.0.0.1:{ports.internal}"
        self._properties = self._folder / "server.properties"
        settings = properties(
            "127.0.0.1", ports, self.bootstrap, str(self._folder / "data"), config
        )
        self._properties.write_text(
            "".join(
                f"{name}={value}\n"
                for name, value in with_doors(settings, "127.0.0.1", doors).items()
            )
        )
        self._process: subprocess.Popen[bytes] | None = None

    def _learning(self, version: str) -> Path | None:
        """Return what was learned from the first broker of this release (see `prepared`)."""
        return prepared.learned(version, _learn)

    def start(self) -> None:
        """Start the broker and wait until it is in service; raises BrokerUnavailable with its last words when it is not."""
        if self.running:
            return
        if not (self._folder / "data").exists():
            self._format()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    str(_GUARD),
                    *self._command(self._jvm, "kafka.Kafka", str(self._properties)),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                cwd=self._folder,
                start_new_session=True,
            )
        if not wait_until_ready(self._internal, _START_SECONDS, lambda: self.running):
            fate = "is still not in service" if self.running else "ended by itself"
            words = self._last_words()
            self.stop()
            raise BrokerUnavailable(f"Kafka {self.version} at {self.bootstrap} {fate}: {words}")

    @property
    def running(self) -> bool:
        """Whether the broker's process is there."""
        return self._process is not None and self._process.poll() is None

    def kill(self) -> None:
        """End the broker as a power cut does (SIGKILL); its data stays."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Let the broker stand still, its connections open (SIGSTOP)."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a broker that stands still go on (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.killpg(self._process.pid, number)

    def terminate(self) -> None:
        """Shut the broker down in order (SIGTERM); its data stays."""
        self._end(signal.SIGTERM)

    def restart(self) -> None:
        """Kill the broker if it runs, and start it again on the same data and port."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """End the broker for good and remove its data."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end(self, how: signal.Signals, seconds: float = _STOP_SECONDS) -> None:
        if self._process is None:
            return
        try:
            if self.running:
                os.killpg(self._process.pid, how)
                self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        finally:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None

    def _format(self) -> None:
        if self._learned is not None:
            prepared.format_as_learned(
                self._folder / "data", self._learned, self._node, self._cluster
            )
            return
        tool = self._command(
            QUICK_JVM,
            "kafka.tools.StorageTool",
            "format",
            "-t",
            self._cluster,
            "-c",
            str(self._properties),
        )
        done = subprocess.run(
            tool,
            capture_output=True,
            text=True,
            check=False,
            cwd=self._folder,
            timeout=_START_SECONDS,
        )
        if done.returncode:
            raise BrokerUnavailable(
                f"Kafka {self.version} could not format its data folder: {done.stdout}{done.stderr}"
            )

    def _command(self, jvm: tuple[str, ...], main_class: str, *arguments: str) -> list[str]:
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        known = [] if self._learned is None else prepared.known_classes(self._learned)
        return [
            *(self._java, *jvm, *known, quiet),
            *("-cp", f"{self._jars}/*", main_class, *arguments),
        ]

    def _last_words(self) -> str:
        return self.log.read_text(errors="replace")[-1500:].strip() or "(it said nothing)"


class FirstBroker(KafkaProcess):
    """The broker of a release from which the others learn."""

    def _learning(self, version: str) -> None:
        """There is nobody to learn from yet."""

    def teach(self, folder: Path) -> None:
        """Shut it down in order, and keep what its folder was formatted with."""
        shutil.copyfile(self._folder / "data" / prepared.CHECKPOINT, folder / prepared.CHECKPOINT)
        self._end(signal.SIGTERM, _ARCHIVE_SECONDS)


def _learn(version: str, folder: Path) -> None:
    """Run a first broker once, from its formatting to its end, and leave in a folder what others learn from it."""
    archive = (f"-XX:ArchiveClassesAtExit={folder / prepared.CLASSES}",)
    broker = FirstBroker(version, jvm=(*QUICK_JVM, *archive))
    try:
        broker.start()
        broker.teach(folder)
    finally:
        broker.stop()
