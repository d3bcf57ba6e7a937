"""TLS with a real broker: who is trusted is served, who is not is refused at once, in words that name what is wrong.

Certificates and keys are made anew for each run; only the broker's and the clients' use of them is
tested. A broker at another name than its certificate's is one that is asked for as `localhost`,
where it has a certificate for 127.0.0.1 alone.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from events import errors
from events.streams import Streams, open_streams
from events.streams.security import KafkaSecurity
from events.vocabulary import NodeRegistered, NodeRemoved
from evsched.cli.main import run
from tests.events.world import lead, names_in, records_of, steps_of
from tests.kafka.certificates import Authority
from tests.kafka.guarded import CLIENT, MASTER, SECRET, GuardedBroker, authority

DEADLINE_S = 1000.0
"""Of calls that are to be refused at once: one that waits for it runs into the limit of its test."""
FETCH_S = 0.45
"""A little less than a broker waits for news before it answers a fetch with nothing."""
WRONG, KEY_PASSWORD = f"wrong-{SECRET}", f"key-{SECRET}"
"""Each password holds the word that is never to be shown."""

Command = Callable[..., str]


class Papers(NamedTuple):
    """The files of a client."""

    ca: str
    other_ca: str
    cert: str
    key: str
    locked_key: str
    both: str
    expired: str
    stranger: str
    stranger_key: str


@pytest.fixture(scope="module")
def papers(tmp_path_factory: pytest.TempPathFactory) -> Papers:
    """Return the files of a client whom our authority knows, and of a stranger."""
    folder = tmp_path_factory.mktemp("papers")
    ours, other = authority(), Authority("another authority")
    client, stranger, old = (
        ours.sign(CLIENT),
        other.sign("stranger"),
        ours.sign("old", expired=True),
    )
    contents = {
        "ca": ours.certificate,
        "other_ca": other.certificate,
        "cert": client.certificate,
        "key": client.key(),
        "locked_key": client.key(KEY_PASSWORD),
        "both": client.certificate + client.key(),
        "expired": old.certificate + old.key(),
        "stranger": stranger.certificate,
        "stranger_key": stranger.key(),
    }
    for name, content in contents.items():
        (folder / f"{name}.pem").write_text(content)
    return Papers(**{name: str(folder / f"{name}.pem") for name in contents})


@pytest.fixture
def evsched(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> Iterator[Command]:
    """Return a function that runs a command, expects a code and returns what was said; nothing said or logged holds a secret."""
    caplog.set_level(logging.DEBUG)
    said: list[str] = []

    def call(*words: str, code: int = 0) -> str:
        said.append("".join(capsys.readouterr()))
        assert run(words) == code
        spoken = capsys.readouterr()
        said.append(spoken.out + spoken.err)
        if code:
            assert spoken.out == ""
            assert spoken.err.startswith("evsched: ")
            assert spoken.err.count("\n") == 1
        return said[-1]

    yield call
    said.append("".join(capsys.readouterr()))
    assert SECRET not in "".join(said) + caplog.text


async def used(url: str, security: KafkaSecurity, *names: str) -> None:
    """Make the topics when they are missing, lead, write these names after those that are there, and read all back."""
    async with open_streams(url, security=security) as opened:
        await opened.log.create()
        before = names_in(await steps_of(opened.log))
        await opened.inbox.propose([NodeRemoved(node="proposed")])
        assert len(await opened.inbox.read(await opened.inbox.end() - 1)) == 1
        leader = await lead(opened.log)
        for name in names:
            node = NodeRegistered(seq=leader.head.next_seq, node=name, capacity={"vcore": 1000})
            await leader.append_step((node,), time=leader.stamp(2_000), decided=True, inbox_next=0)
        await leader.heartbeat(1)
        assert names_in(await steps_of(opened.log)) == [*before, *names]


async def seconds_to_read(url: str) -> float:
    """Return how long it takes to read a log once: TLS must not wait, at the end, for a fetch that nobody needs any more."""
    async with open_streams(url) as opened:
        await opened.log.end()
        begun = time.monotonic()
        await records_of(opened.log)
        return time.monotonic() - begun


async def denied(url: str, security: KafkaSecurity, words: str) -> None:
    """See every way to a broker refused, at once, for a reason with these words."""
    ways: tuple[Callable[[Streams], object], ...] = (
        lambda opened: opened.log.check(),
        lambda opened: records_of(opened.log),
        lambda opened: opened.log.append(b"{}"),
        lambda opened: opened.inbox.propose([NodeRemoved(node="n")]),
    )
    for way in ways:
        async with open_streams(url, security=security, timeout=DEADLINE_S) as opened:
            with pytest.raises(errors.AccessDenied) as caught:
                await way(opened)
            assert words in str(caught.value)


def test_a_log_is_written_and_read_over_tls(
    guarded: GuardedBroker,
    kafka_topic_name: str,
    papers: Papers,
    evsched: Command,
    monkeypatch,
) -> None:
    """With the right authority everything works, by options or environment; without it, or in the clear, nothing does."""
    url = f"kafka://{guarded.tls}/{kafka_topic_name}"
    reach = ("--log", url, "--kafka-protocol", "SSL", "--kafka-ca-file", papers.ca)
    evsched("topics", "create", *reach)
    asyncio.run(used(url, KafkaSecurity(protocol="SSL", ca_file=papers.ca), "a", "b"))
    evsched("log", "check", *reach)
    monkeypatch.setenv("EVSCHED_LOG", url)
    monkeypatch.setenv("EVSCHED_KAFKA_PROTOCOL", "SSL")
    monkeypatch.setenv("EVSCHED_KAFKA_CA_FILE", papers.ca)
    asyncio.run(used(url, KafkaSecurity.from_environment(), "c"))
    shown = evsched("log", "show", "--type", "NodeRegistered").splitlines()
    assert [line.split("node=")[1].split()[0] for line in shown] == ["a", "b", "c"]

    assert any(asyncio.run(seconds_to_read(url)) < FETCH_S for _ in range(10))

    distrust = (
        f"access denied: AuthenticationFailedError: the certificate of {guarded.tls} is not trusted"
    )
    for command in (("topics", "check"), ("log", "check")):
        assert distrust in evsched(*command, "--kafka-ca-file", papers.other_ca, code=3)
    asyncio.run(denied(url, KafkaSecurity(protocol="SSL", ca_file=papers.other_ca), distrust))
    asyncio.run(denied(url, KafkaSecurity(protocol="SSL"), distrust))

    elsewhere = url.replace("127.0.0.1", "localhost")
    misnamed = "certificate is not valid for 'localhost'"
    assert misnamed in evsched("topics", "check", "--log", elsewhere, code=3)
    asyncio.run(denied(elsewhere, KafkaSecurity(protocol="SSL", ca_file=papers.ca), misnamed))

    assert "does not speak PLAINTEXT" in evsched(
        "topics", "check", "--kafka-protocol", "PLAINTEXT", code=3
    )
    asyncio.run(used(url, KafkaSecurity.from_environment(), "d"))


def test_a_broker_that_sends_us_to_a_name_it_has_no_certificate_for(
    guarded: GuardedBroker, kafka_topic_name: str, papers: Papers, evsched: Command
) -> None:
    """The first address may be right and the one that the broker then tells wrong; it is that one which is named."""
    url = f"kafka://{guarded.misnamed.replace('127.0.0.1', 'localhost')}/{kafka_topic_name}"
    words = f"the certificate of {guarded.misnamed} is not trusted: IP address mismatch"
    assert words in evsched(
        "topics",
        "create",
        "--log",
        url,
        "--kafka-protocol",
        "SSL",
        "--kafka-ca-file",
        papers.ca,
        code=3,
    )
    asyncio.run(denied(url, KafkaSecurity(protocol="SSL", ca_file=papers.ca), words))


def test_a_password_over_tls(
    guarded: GuardedBroker,
    kafka_topic_name: str,
    papers: Papers,
    evsched: Command,
    monkeypatch,
) -> None:
    """SASL_SSL with PLAIN: the right password works, a wrong one and none are refused, as is a broker that is not trusted."""
    monkeypatch.setenv("EVSCHED_LOG", url := f"kafka://{guarded.password}/{kafka_topic_name}")
    monkeypatch.setenv("EVSCHED_KAFKA_CA_FILE", papers.ca)
    monkeypatch.setenv("EVSCHED_KAFKA_PASSWORD", SECRET)
    login = (
        "--kafka-protocol",
        "SASL_SSL",
        "--kafka-mechanism",
        "PLAIN",
        "--kafka-username",
        MASTER,
    )
    evsched("topics", "create", *login)
    right = KafkaSecurity.from_environment(protocol="SASL_SSL", mechanism="PLAIN", username=MASTER)
    asyncio.run(used(url, right, "a"))
    evsched("log", "check", *login)

    assert "is not trusted" in evsched(
        "log", "check", *login, "--kafka-ca-file", papers.other_ca, code=3
    )
    evsched("log", "check", "--kafka-protocol", "SSL", code=3)
    for password, command in ((WRONG, "topics"), ("", "log")):
        monkeypatch.setenv("EVSCHED_KAFKA_PASSWORD", password)
        said = evsched(command, "check", *login, code=3)
        assert "access denied" in said
        assert "Authentication failed" in said
    wrong = msgspec.structs.replace(right, password=WRONG)
    asyncio.run(denied(url, wrong, "Authentication failed"))


def test_a_broker_that_wants_our_certificate(
    guarded: GuardedBroker,
    kafka_topic_name: str,
    papers: Papers,
    evsched: Command,
    monkeypatch,
) -> None:
    """Mutual TLS: none, a stranger's and an old one are refused, each for its reason; ours is accepted."""
    monkeypatch.setenv("EVSCHED_LOG", url := f"kafka://{guarded.mutual}/{kafka_topic_name}")
    monkeypatch.setenv("EVSCHED_KAFKA_PROTOCOL", "SSL")
    monkeypatch.setenv("EVSCHED_KAFKA_CA_FILE", papers.ca)
    wanted, unknown = "wants a certificate of ours (cert_file)", "does not accept our certificate"
    asyncio.run(denied(url, KafkaSecurity.from_environment(), wanted))
    asyncio.run(
        denied(
            url,
            KafkaSecurity.from_environment(cert_file=papers.stranger, key_file=papers.stranger_key),
            unknown,
        )
    )
    assert wanted in evsched("topics", "create", code=3)
    assert unknown in evsched("topics", "create", "--kafka-cert-file", papers.expired, code=3)

    evsched("topics", "create", "--kafka-cert-file", papers.cert, "--kafka-key-file", papers.key)
    asyncio.run(
        used(url, KafkaSecurity.from_environment(cert_file=papers.cert, key_file=papers.key), "a")
    )
    evsched("log", "check", "--kafka-cert-file", papers.both)

    locked = (
        "log",
        "check",
        "--kafka-cert-file",
        papers.cert,
        "--kafka-key-file",
        papers.locked_key,
    )
    assert f"{papers.locked_key}: is locked, and its password is not given" in evsched(
        *locked, code=2
    )
    monkeypatch.setenv("EVSCHED_KAFKA_KEY_PASSWORD", WRONG)
    assert f"{papers.locked_key}: is locked, and its password is wrong" in evsched(*locked, code=2)
    monkeypatch.setenv("EVSCHED_KAFKA_KEY_PASSWORD", KEY_PASSWORD)
    evsched(*locked)
    asyncio.run(
        used(
            url,
            KafkaSecurity.from_environment(cert_file=papers.cert, key_file=papers.locked_key),
            "b",
        )
    )


GONE, NO_CA = (
    "cannot be read: No such file or directory",
    "does not hold a certificate to trust (ca_file) as PEM",
)
NO_CERT, NO_KEY = (
    "does not hold our certificate (cert_file) as PEM",
    "does not hold the key of our certificate (key_file) as PEM",
)
FILES = {
    "an authority that is not there": ("none.pem", {"ca": "none.pem"}, GONE),
    "an authority that is a folder": (".", {"ca": "."}, "cannot be read: Is a directory"),
    "an authority in an empty file": ("empty.pem", {"ca": "empty.pem"}, NO_CA),
    "an authority that is cut off": ("cut.pem", {"ca": "cut.pem"}, NO_CA),
    "a certificate that is not there": ("none.pem", {"cert": "none.pem", "key": "key"}, GONE),
    "a certificate that is cut off": ("cut.pem", {"cert": "cut.pem", "key": "key"}, NO_CERT),
    "a certificate that is a key": ("key", {"cert": "key", "key": "key"}, NO_CERT),
    "a certificate without key": ("cert", {"cert": "cert"}, NO_KEY),
    "a key that is not there": ("none.pem", {"cert": "cert", "key": "none.pem"}, GONE),
    "a key that is a certificate": ("cert", {"cert": "cert", "key": "cert"}, NO_KEY),
    "a key without certificate": (
        "key",
        {"key": "key"},
        "a key alone, expected its certificate too (cert_file)",
    ),
    "somebody else's key": (
        "stranger_key",
        {"cert": "cert", "key": "stranger_key"},
        "is not the key of the certificate",
    ),
    "a locked key": (
        "locked_key",
        {"cert": "cert", "key": "locked_key"},
        "password is not given (EVSCHED_KAFKA_KEY_PASSWORD)",
    ),
}


@pytest.mark.parametrize(("at_fault", "files", "words"), FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_used_is_named_before_anything_is_connected(
    at_fault: str,
    files: dict[str, str],
    words: str,
    papers: Papers,
    evsched: Command,
    tmp_path: Path,
) -> None:
    """Misuse, code 2; whoever listens at the broker's address hears nothing."""
    (tmp_path / "empty.pem").write_text("")
    (tmp_path / "cut.pem").write_text(Path(papers.ca).read_text()[:200])

    def path(name: str) -> str:
        return getattr(papers, name, str(tmp_path / name))

    options = [
        word for option, name in files.items() for word in (f"--kafka-{option}-file", path(name))
    ]
    security = KafkaSecurity(
        protocol="SSL", **{f"{option}_file": path(name) for option, name in files.items()}
    )
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        nobody.setblocking(False)
        url = f"kafka://127.0.0.1:{nobody.getsockname()[1]}/name"
        for command in (("topics", "check"), ("log", "check"), ("status",)):
            said = evsched(*command, "--log", url, "--kafka-protocol", "SSL", *options, code=2)
            assert said.startswith(f"evsched: credentials {path(at_fault)}: ")
            assert words in said
        asyncio.run(unusable(url, security, path(at_fault)))
        with pytest.raises(BlockingIOError):
            nobody.accept()


async def unusable(url: str, security: KafkaSecurity, file: str) -> None:
    """See every way to a broker end at a file before there is one."""
    async with open_streams(url, security=security) as opened:
        for way in (
            opened.log.check(),
            records_of(opened.log),
            opened.log.append(b"{}"),
            opened.inbox.read(0),
        ):
            with pytest.raises(errors.CredentialsUnusable) as caught:
                await way
            assert caught.value.file == file
