"""Certificates for the tests, as PEM: authorities, and brokers and clients that they vouch for."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import trustme
from cryptography.hazmat.primitives import serialization


class Identity(NamedTuple):
    """A private key and the certificate that says whose it is.

    Attributes:
        certificate: As PEM.
        issued: Where the key comes from.
    """

    certificate: str
    issued: trustme.LeafCert

    def key(self, password: str | None = None) -> str:
        """Return the private key in PKCS #8, which Kafka wants, locked with a password when one is given."""
        key = serialization.load_pem_private_key(self.issued.private_key_pem.bytes(), None)
        lock = (
            serialization.NoEncryption()
            if password is None
            else serialization.BestAvailableEncryption(password.encode())
        )
        return key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock
        ).decode()


class Authority:
    """Somebody who may sign certificates.

    Attributes:
        certificate: Its own, as PEM.
    """

    def __init__(self, name: str) -> None:
        self._signs = trustme.CA(organization_name=name)
        self.certificate = self._signs.cert_pem.bytes().decode()

    def sign(self, name: str, *hosts: str, expired: bool = False) -> Identity:
        """Return somebody with a key and a certificate.

        Args:
            name: Common name.
            hosts: Names and addresses at which it serves; none for a client.
            expired: Whether the certificate's time is over.
        """
        over = datetime.now(UTC) - timedelta(days=1) if expired else None
        # A client is asked for no host, but Java refuses a certificate with an empty list of them.
        issued = self._signs.issue_cert(
            *(hosts or [f"{name}.example"]), common_name=name, not_after=over
        )
        return Identity(issued.cert_chain_pems[0].bytes().decode(), issued)
