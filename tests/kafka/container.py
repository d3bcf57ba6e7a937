"""A Kafka broker in a container: Apache Kafka's own image under Docker Compose, one Compose project for each broker."""

import json
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.kafka.jars import DEFAULT_VERSION
from tests.kafka.missing import BrokerUnavailable
from tests.kafka.properties import Door, Ports, properties, with_doors
from tests.kafka.wire import free_ports, wait_until_ready

_START_SECONDS = 300  # the image may have to be fetched
_ASK_SECONDS = 20
_INSIDE = Ports(client=9092, internal=19092, controller=9093)


def check_engine() -> None:
    """Raise BrokerUnavailable unless a container engine answers and Compose is there."""
    for command, missing in (
        (["info"], "no container engine answers"),
        (["compose", "version"], "Docker has no Compose"),
    ):
        if shutil.which("docker") is None:
            raise BrokerUnavailable("no `docker` on the PATH")
        try:
            done = subprocess.run(
                ["docker", *command],
                capture_output=True,
                text=True,
                check=False,
                timeout=_ASK_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise BrokerUnavailable(
                f"`docker {' '.join(command)}` did not answer within {_ASK_SECONDS} s"
            ) from None
        if done.returncode:
            raise BrokerUnavailable(
                f"{missing} (`docker {' '.join(command)}`: {done.stderr.strip()[-200:]})"
            )


def compose_document(
    version: str,
    client_port: int,
    internal_port: int,
    config: Mapping[str, str] | None = None,
    doors: Sequence[Door] = (),
) -> dict[str, object]:
    """Return the Compose document of one broker with its listeners at these ports of this machine.

    The image reads each line of server.properties from a variable: `log.dirs` from KAFKA_LOG_DIRS,
    a hyphen as two underscores and an underscore as three.
    """
    lines = properties(
        "0.0.0.0", _INSIDE, f"127.0.0.1:{client_port}", "/var/lib/kafka/data", config
    )
    spelling = str.maketrans({".": "_", "-": "__", "_": "___"})
    environment = {
        "KAFKA_" + name.translate(spelling).upper(): value
        for name, value in with_doors(lines, "0.0.0.0", doors).items()
    }
    environment["KAFKA_HEAP_OPTS"] = "-Xms64m -Xmx512m"
    ports = [
        f"127.0.0.1:{client_port}:{_INSIDE.client}",
        f"127.0.0.1:{internal_port}:{_INSIDE.internal}",
        *(f"127.0.0.1:{door.port}:{door.port}" for door in doors),
    ]
    return {
        "services": {
            "kafka": {
                "image": f"apache/kafka:{version}",
                "ports": ports,
                "environment": environment,
            }
        }
    }


class KafkaContainer:
    """A broker in a container, with the same life as `KafkaProcess`; the container keeps its data until `stop`."""

    def __init__(
        self,
        version: str = DEFAULT_VERSION,
        config: Mapping[str, str] | None = None,
        doors: Sequence[Door] = (),
    ) -> None:
        """Write the Compose document; nothing runs before `start`."""
        check_engine()
        self.version = version
        client, internal = free_ports(2)
        self.bootstrap = f"127.0.0.1:{client}"
        self._internal = f"127.0.0.1:{internal}"
        self._folder = Path(tempfile.mkdtemp(prefix="evsched-kafka-"))
        (self._folder / "compose.json").write_text(
            json.dumps(compose_document(version, client, internal, config, doors))
        )
        self._project = f"evsched-test-{uuid.uuid4().hex[:12]}"

    def start(self) -> None:
        """Start the container, or start it again, and wait until the broker is in service."""
        self._compose("up", "--detach", "--no-recreate")
        if not wait_until_ready(self._internal, _START_SECONDS):
            said = self._compose("logs", "--tail", "20")
            self.stop()
            raise BrokerUnavailable(
                f"apache/kafka:{self.version} at {self.bootstrap} is still not in service: {said}"
            )

    @property
    def running(self) -> bool:
        """Whether the container runs."""
        return bool(self._compose("ps", "--quiet", "--status", "running").strip())

    def kill(self) -> None:
        """End the broker as a power cut does (SIGKILL); its data stays."""
        if self.running:
            self._compose("kill", "--signal", "SIGKILL")

    def terminate(self) -> None:
        """Shut the broker down in order (SIGTERM); its data stays."""
        self._compose("stop")

    def restart(self) -> None:
        """Kill the broker if it runs, and start it again on the same data and port."""
        self.kill()
        self.start()

    def stop(self) -> None:
        """Remove the container with its data."""
        self._compose("down", "--volumes", "--timeout", "0")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _compose(self, *arguments: str) -> str:
        command = [
            "docker",
            "compose",
            "-p",
            self._project,
            "-f",
            str(self._folder / "compose.json"),
            *arguments,
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_START_SECONDS
        )
        if done.returncode:
            raise BrokerUnavailable(
                f"`docker compose {' '.join(arguments)}`: {done.stderr.strip()[-600:]}"
            )
        return done.stdout
