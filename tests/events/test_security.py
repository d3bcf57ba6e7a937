"""Secrets for the broker come from options, the environment or files, and are never shown."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from events.errors import UnknownScheme
from events.streams import open_log, open_streams
from events.streams.security import KafkaSecurity

SECRET = "correct horse"


def test_settings_come_from_the_environment() -> None:
    """Named as the attributes, in capitals."""
    environment = {
        "EVSCHED_KAFKA_PROTOCOL": "SASL_SSL",
        "EVSCHED_KAFKA_USERNAME": "u",
        "EVSCHED_KAFKA_PASSWORD": SECRET,
    }
    security = KafkaSecurity.from_environment(environment)
    assert security == KafkaSecurity(protocol="SASL_SSL", username="u", password=SECRET)
    options = security.client_options()
    assert (options["sasl_plain_password"], options["security_protocol"]) == (SECRET, "SASL_SSL")


def test_options_win_over_the_environment() -> None:
    """An option that was not given is None and changes nothing."""
    environment = {"EVSCHED_KAFKA_PROTOCOL": "SSL", "EVSCHED_KAFKA_USERNAME": "u"}
    security = KafkaSecurity.from_environment(environment, username="other", protocol=None)
    assert (security.username, security.protocol) == ("other", "SSL")


def test_a_secret_may_lie_in_a_file(tmp_path: Path) -> None:
    """As container platforms hand them over; the line end is not part of it."""
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    assert (
        KafkaSecurity.from_environment({"EVSCHED_KAFKA_PASSWORD_FILE": str(file)}).password
        == SECRET
    )
    with pytest.raises(ValueError, match=r"EVSCHED_KAFKA_PASSWORD_FILE .*cannot be read"):
        KafkaSecurity.from_environment({"EVSCHED_KAFKA_PASSWORD_FILE": str(tmp_path / "none")})


def test_a_setting_that_is_not_known_is_refused_without_its_neighbours() -> None:
    """The message names the setting and no secret."""
    environment = {"EVSCHED_KAFKA_PROTOCOL": "PLAIN", "EVSCHED_KAFKA_PASSWORD": SECRET}
    with pytest.raises(ValueError, match=r"protocol") as caught:
        KafkaSecurity.from_environment(environment)
    assert SECRET not in str(caught.value)


def test_nothing_shows_a_secret() -> None:
    """Neither text, nor representation, nor a pretty printer."""
    security = KafkaSecurity(password=SECRET, key_password=SECRET, username="u")
    out = io.StringIO()
    Console(file=out).print(security, [security], {"a": security})
    for text in (str(security), repr(security), f"{security}", repr([security]), out.getvalue()):
        assert SECRET not in text
        assert "'u'" in text


BAD = [
    "",
    "kafka://host",
    "kafka:///name",
    "http://host/name",
    "sqlite://",
    "sqlite://host/x",
    f"kafka://u:{SECRET}@host:1/name",
    "x",
    "kafka://[::1/name",
    "kafka://host:99999/name",
    "kafka://host:port/name",
    "kafka://host:1,,/name",
]


@pytest.mark.parametrize("url", BAD)
def test_an_address_that_is_not_understood_is_refused(url: str) -> None:
    """The message says which forms are known, and repeats no password."""
    for opener in (open_streams, open_log):
        with pytest.raises(UnknownScheme, match=r"kafka://HOST:PORT/NAME") as caught:
            opener(url)
        assert SECRET not in str(caught.value)
