"""The rights on a Kafka broker that docs/production.md names are enough for each role, and a role has no more than its own."""

import asyncio
from pathlib import Path

from aiokafka.admin import AIOKafkaAdminClient

from benchmarks.openb import COMMAND
from events.streams.kafka_access import KafkaAccess
from events.streams.kafka_topics import topic_names
from evsched.cli import main
from evsched.cli.main import run
from tests.events.acl import DESCRIBE_CONFIGS, GROUP, READ, WRITE, grant
from tests.kafka.broker import KafkaBroker
from tests.kafka.guarded import MASTER, login, password
from tests.service.running import Running

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TRACE = Path(__file__).parents[1] / "openb"


async def granted(bootstrap: str, name: str) -> None:
    """Give each role what the table of docs/production.md says."""
    names = topic_names(name)
    client = AIOKafkaAdminClient(**KafkaAccess(bootstrap=bootstrap, security=login()).options())
    await client.start()
    for topic in (names.log, names.heartbeat):
        await grant(client, "scheduler", topic, READ, WRITE, DESCRIBE_CONFIGS)
    await grant(client, "scheduler", names.inbox, READ, DESCRIBE_CONFIGS)
    await grant(client, "scheduler", f"{name}-leaders", READ, kind=GROUP)
    await grant(client, "producer", names.inbox, WRITE)
    await grant(client, "client", names.inbox, WRITE)
    await grant(client, "client", names.log, READ)
    await grant(client, "importer", names.inbox, READ, WRITE)
    await grant(client, "importer", names.log, READ)
    for topic in (names.log, names.heartbeat):
        await grant(client, "auditor", topic, READ)
    await client.close()


def test_each_role_works_with_its_rights_alone(
    guarded_kafka: KafkaBroker,
    kafka_topic_name: str,
    tmp_path: Path,
    monkeypatch,
    capsys,
) -> None:
    """Commands of a role do their work; an auditor's proposal is refused with code 3 and the topic's name."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("EVSCHED_LOG", f"kafka://{guarded_kafka.bootstrap}/{kafka_topic_name}")
    monkeypatch.setenv("EVSCHED_KAFKA_PROTOCOL", "SASL_PLAINTEXT")
    monkeypatch.setenv("EVSCHED_KAFKA_MECHANISM", "PLAIN")

    def be(user: str) -> None:
        monkeypatch.setenv("EVSCHED_KAFKA_USERNAME", user)
        monkeypatch.setenv("EVSCHED_KAFKA_PASSWORD", password(user))

    be(MASTER)
    assert run(["topics", "create"]) == 0
    asyncio.run(granted(guarded_kafka.bootstrap, kafka_topic_name))
    be("scheduler")
    service = Running(tmp_path, "run").start()
    try:
        service.wait_ready()
        be("client")
        assert run(["config", "apply", str(EXAMPLES / "queues.yaml"), "--wait"]) == 0
        be("producer")
        assert run(["submit", str(EXAMPLES / "pods.jsonl")]) == 0
        be("client")
        assert run(["submit", str(EXAMPLES / "pods.jsonl"), "--wait"]) == 0
        be("importer")
        monkeypatch.setattr(main, "COMMANDS", {**main.COMMANDS, **COMMAND})
        assert run(["openb", str(TRACE / "nodes.csv"), str(TRACE / "pods.csv")]) == 0
        be("auditor")
        for command in (
            ["status"],
            ["verify"],
            ["at", "end"],
            ["explain", "web-1"],
            ["log", "show"],
            ["log", "check"],
        ):
            assert run(command) == 0, command
        assert run(["project", "rebuild"]) == 0
        capsys.readouterr()
        assert run(["submit", str(EXAMPLES / "pods.jsonl")]) == 3
        said = capsys.readouterr().err
        assert f"{kafka_topic_name}-inbox: access denied" in said
        assert "password" not in said
        assert service.stop() == 0
        assert "password" not in service.errors.read_text()
    finally:
        service.kill()
