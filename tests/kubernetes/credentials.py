"""Keys and certificates of a control plane, and the kubeconfigs of its users, as files of one folder."""

from pathlib import Path

import trustme
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

ADMIN = "admin"
MASTERS = "system:masters"
"""The group to which everything is allowed, whatever the roles say."""


class Credentials:
    """The files of one control plane.

    Attributes:
        authority: Certificate of whoever signs for servers and users.
        server: Certificate of the API server; its key is `server_key`.
        accounts: Key with which tokens of service accounts are signed.
    """

    def __init__(self, folder: Path) -> None:
        """Write an authority, the server's certificate and the key of the service accounts."""
        self._folder = folder
        self._signs = trustme.CA(organization_name="evsched tests")
        self.authority = folder / "ca.crt"
        self._signs.cert_pem.write_to_path(self.authority)
        issued = self._signs.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc")
        self.server, self.server_key = folder / "server.crt", folder / "server.key"
        issued.cert_chain_pems[0].write_to_path(self.server)
        issued.private_key_pem.write_to_path(self.server_key)
        self.accounts = folder / "accounts.key"
        self.accounts.write_bytes(
            ec.generate_private_key(ec.SECP256R1()).private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.TraditionalOpenSSL,
                serialization.NoEncryption(),
            )
        )

    def kubeconfig(self, url: str, user: str = ADMIN, group: str = MASTERS) -> Path:
        """Write and return a kubeconfig with which a user of a group reaches the server at a URL."""
        name = f"{user.replace(':', '-')}-{url.rpartition(':')[2]}"
        issued = self._signs.issue_cert(
            f"{user.replace(':', '-')}.example", common_name=user, organization_name=group
        )
        certificate, key = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        issued.cert_chain_pems[0].write_to_path(certificate)
        issued.private_key_pem.write_to_path(key)
        path = self._folder / f"{name}.kubeconfig"
        cluster = {"server": url, "certificate-authority": str(self.authority)}
        keys = {"client-certificate": str(certificate), "client-key": str(key)}
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "tests", "cluster": cluster}],
                    "users": [{"name": user, "user": keys}],
                    "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
                    "current-context": "tests",
                }
            )
        )
        return path
