"""How to prove to a Kafka broker who we are, and that it is the right one. Secrets stay in here: nothing prints them."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

import msgspec

from events.errors import CredentialsUnusable

PREFIX = "EVSCHED_KAFKA_"

T = TypeVar("T")


class KafkaSecurity(msgspec.Struct, frozen=True, kw_only=True):
    """SASL and TLS settings.

    Attributes:
        protocol: As Kafka names it.
        mechanism: SASL mechanism.
        username: For SASL.
        password: For SASL; never shown.
        ca_file: Certificates to trust; None: those of the system.
        cert_file: Our own certificate, for mutual TLS.
        key_file: Its key.
        key_password: Of the key file; never shown.
    """

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = "SCRAM-SHA-512"
    username: str = ""
    password: str = ""
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    key_password: str | None = None

    @classmethod
    def from_environment(
        cls, environment: Mapping[str, str] = os.environ, **options: str | None
    ) -> Self:
        """Return the settings in ``EVSCHED_KAFKA_PROTOCOL``, ``…_USERNAME`` and so on; options that are not None win.

        A secret may also lie in a file, named by ``…_PASSWORD_FILE`` or ``…_KEY_PASSWORD_FILE``;
        its last line end does not count.

        Raises:
            ValueError: A setting has a value that is not known, or a file cannot be read. The
                message holds no secret.
        """
        values: dict[str, str] = {}
        for name in cls.__struct_fields__:
            key = PREFIX + name.upper()
            given = options.get(name)
            if given is None and f"{key}_FILE" in environment and name.endswith("password"):
                given = _secret_in(environment[f"{key}_FILE"], f"{key}_FILE")
            if given is None:
                given = environment.get(key)
            if given is not None:
                values[name] = given
        try:
            return msgspec.convert(values, cls)
        except msgspec.ValidationError as error:
            raise ValueError(f"security of Kafka: {error}") from None

    def client_options(self) -> dict[str, Any]:
        """Return the arguments of an aiokafka client. They hold the secrets: pass them on and forget them.

        The files are read each time, so renewed ones count from the next connection on.

        Raises:
            CredentialsUnusable: A file with certificates or a key is missing, or does not hold what
                it should.
        """
        options: dict[str, Any] = {"security_protocol": self.protocol}
        if self.protocol.endswith("SSL"):
            options["ssl_context"] = self._context()
        if self.protocol.startswith("SASL"):
            options |= {
                "sasl_mechanism": self.mechanism,
                "sasl_plain_username": self.username,
                "sasl_plain_password": self.password,
            }
        return options

    def _context(self) -> ssl.SSLContext:
        """Return whom to trust and who we are."""
        trusted = self.ca_file or "of the system"
        context = _loaded(
            lambda: ssl.create_default_context(cafile=self.ca_file),
            trusted,
            "a certificate to trust (ca_file)",
        )
        if self.cert_file is not None:
            self._be_known(context, self.cert_file, self.key_file or self.cert_file)
        elif self.key_file is not None:
            raise CredentialsUnusable(
                self.key_file, "a key alone, expected its certificate too (cert_file)"
            )
        return context

    def _be_known(self, context: ssl.SSLContext, cert_file: str, key_file: str) -> None:
        """Load our own certificate and its key; each is looked at alone first, as OpenSSL does not say which is at fault."""
        certificate, key = "our certificate (cert_file)", "the key of our certificate (key_file)"
        alone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _loaded(lambda: alone.load_verify_locations(cert_file), cert_file, certificate)
        _loaded(Path(key_file).read_bytes, key_file, key)
        asked = False

        def password() -> str:
            nonlocal asked
            asked = True
            return self.key_password or ""

        try:
            # Without a function, a locked key would make OpenSSL ask at the terminal, and wait.
            context.load_cert_chain(cert_file, key_file, password)
        except (OSError, ValueError) as error:
            fault = f"does not hold {key} as PEM"
            if asked:
                fault = "is locked, and its password "
                fault += "is wrong" if self.key_password else f"is not given ({PREFIX}KEY_PASSWORD)"
            elif isinstance(error, ssl.SSLError) and "MISMATCH" in str(error.reason):
                fault = f"is not the key of the certificate {cert_file}"
            raise CredentialsUnusable(key_file, fault) from None

    def __repr__(self) -> str:
        return f"KafkaSecurity(protocol={self.protocol!r}, mechanism={self.mechanism!r}, username={self.username!r})"

    __str__ = __repr__

    def __rich_repr__(self) -> Any:
        yield "protocol", self.protocol
        yield "mechanism", self.mechanism
        yield "username", self.username


def _secret_in(path: str, name: str) -> str:
    try:
        return Path(path).read_text().rstrip("\r\n")
    except OSError as error:
        raise ValueError(f"{name} {path}: cannot be read: {error.strerror}") from None


def _loaded(load: Callable[[], T], file: str, wanted: str) -> T:
    """Load a file; what OpenSSL says when it cannot does not name it."""
    try:
        return load()
    except ssl.SSLError:
        raise CredentialsUnusable(file, f"does not hold {wanted} as PEM") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        raise CredentialsUnusable(file, f"cannot be read: {reason or error}") from None
