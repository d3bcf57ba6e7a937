"""Who asks: the settings of a server that others reach, and how a request shows whose it is.

Without settings a server is open, and then it serves its own machine alone. With them a request
shows who asks by one of: a certificate (mutual TLS), a bearer token, or what a proxy says that is
listed. The first one that is there counts, and when that is not good the request is refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml
from msgspec import Meta, Struct

from evsched.api.calls import NOBODY, Principal, place_of_header
from evsched.api.oidc import OidcSettings, OidcTokens
from evsched.api.problems import ApiProblem, what_failed

PEER = "evsched.peer"
"""Where the certificate of a client lies in the scope of a request (`evsched.api.serving`)."""

VIEWER = Principal(subject="viewer")
"""Whoever comes from where anybody may look."""

CHALLENGE = {"www-authenticate": "Bearer"}
_HASH = 64


class SettingsInvalid(ValueError):
    """The settings cannot be used; the message names the file, the place, and what was expected."""


class Named(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """People, by name or group."""

    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    def has(self, who: Principal) -> bool:
        """Tell whether somebody is one of them."""
        return who.subject in self.users or any(one in self.groups for one in who.groups)


class ProxySettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A proxy that says who asks.

    Attributes:
        peers: Addresses or networks from which its word counts.
        user, groups: Headers that it sets; groups with commas between.
    """

    peers: Annotated[tuple[str, ...], Meta(min_length=1)]
    user: str = "X-Forwarded-User"
    groups: str = "X-Forwarded-Groups"


class TlsSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Certificates.

    Attributes:
        certificate, key: Files of the server.
        clients: File of the authorities whose certificates show who asks; None: none does.
    """

    certificate: str
    key: str
    clients: str | None = None


class RateSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How much one principal may ask: so many requests a second in the long run, and so many at once."""

    per_second: Annotated[int, Meta(ge=1)] = 100
    burst: Annotated[int, Meta(ge=1)] = 500


class AccessSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who may ask a server, and for what.

    Attributes:
        tokens: File of static tokens, a line each: SHA-256 in hexadecimal, subject, groups with
            commas between. Relative to the settings.
        viewers: Addresses or networks from which anybody may look at everything, and propose nothing.
        audit: Who sees all of the log.
        admin: Who may propose anything; whoever `adminacl` of the root queue lists may, too.
    """

    tokens: str | None = None
    oidc: OidcSettings | None = None
    proxy: ProxySettings | None = None
    tls: TlsSettings | None = None
    viewers: tuple[str, ...] = ()
    audit: Named = Named()
    admin: Named = Named()
    rate: RateSettings = RateSettings()


class Identities:
    """Finds out who asks.

    Attributes:
        settings: None: the server is open.
    """

    def __init__(
        self, settings: AccessSettings | None = None, tokens: Mapping[str, Principal] | None = None
    ) -> None:
        """Use settings, and static tokens by their hashes."""
        self.settings = settings
        self._tokens = dict(tokens or {})
        oidc = settings.oidc if settings is not None else None
        self._oidc = OidcTokens(oidc) if oidc is not None else None
        proxy = settings.proxy if settings is not None else None
        self._peers = [_network(one) for one in proxy.peers] if proxy is not None else []
        viewers = settings.viewers if settings is not None else ()
        self._viewers = [_network(one) for one in viewers]

    @property
    def open(self) -> bool:
        """Whether nobody has to show who asks."""
        return self.settings is None

    async def principal(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Principal:
        """Return who asks; raise `ApiProblem` where that cannot be told."""
        if self.settings is None:
            return NOBODY
        peer = scope.get(PEER)
        if peer:
            return Principal(subject=peer)
        authorization = headers.get("authorization")
        if authorization is not None:
            return await self._bearer(authorization)
        forwarded = self._forwarded(scope, headers)
        if forwarded is not None:
            return forwarded
        if _from(scope, self._viewers):
            return VIEWER
        raise ApiProblem(
            "unauthenticated", "nothing shows who asks", place_of_header("authorization"),
            headers=CHALLENGE,
        )  # fmt: skip

    async def _bearer(self, authorization: str) -> Principal:
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and token:
            found = self._tokens.get(hashlib.sha256(token.encode("latin-1", "replace")).hexdigest())
            if found is None and self._oidc is not None:
                found = await self._oidc.principal(token)
            if found is not None:
                return found
        raise ApiProblem(
            "unauthenticated",
            "authorization: is no token that is taken here",
            place_of_header("authorization"),
            headers={"www-authenticate": 'Bearer error="invalid_token"'},
        )

    def _forwarded(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> Principal | None:
        proxy = self.settings.proxy if self.settings is not None else None
        if proxy is None or not _from(scope, self._peers):
            return None
        subject = headers.get(proxy.user.lower(), "").strip()
        groups = headers.get(proxy.groups.lower(), "")
        return (
            Principal(
                subject=subject, groups=tuple(filter(None, map(str.strip, groups.split(","))))
            )
            if subject
            else None
        )


def _from(scope: Mapping[str, Any], networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Tell whether a request comes from one of these networks; one without an address comes from none."""
    client = scope.get("client")
    try:
        address = ip_address(client[0]) if client is not None else None
    except ValueError:
        return False
    return address is not None and any(address in network for network in networks)


def read_settings(path: Path) -> Identities:
    """Return what a file of settings says, YAML or JSON.

    Raises:
        SettingsInvalid: It cannot be read, or says something that makes no sense.
    """
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        settings = msgspec.convert(document or {}, AccessSettings)
        tokens = {} if settings.tokens is None else _tokens(path.parent / settings.tokens)
        found = Identities(settings, tokens)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsInvalid(f"{path}: {what_failed(error)}") from error
    except (msgspec.ValidationError, ValueError) as error:
        raise SettingsInvalid(f"{path}: {what_failed(error)}") from error
    clients = settings.tls is not None and settings.tls.clients is not None
    if not (tokens or settings.oidc or settings.proxy or clients or settings.viewers):
        raise SettingsInvalid(
            f"{path}: nobody could ask, expected tokens, oidc, proxy, tls.clients or viewers"
        )
    return found


def _tokens(path: Path) -> dict[str, Principal]:
    """Return principals by the hashes of their tokens."""
    found: dict[str, Principal] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        parts = line.split()
        if not parts or line.startswith("#"):
            continue
        digest = parts[0].lower()
        shaped = len(digest) == _HASH and all(letter in "0123456789abcdef" for letter in digest)
        if not shaped or len(parts) not in (2, 3):
            raise SettingsInvalid(
                f"{path}:{number}: expected SHA-256 in hexadecimal, subject, and perhaps groups"
            )
        if digest in found:
            raise SettingsInvalid(f"{path}:{number}: the token stands in an earlier line, too")
        groups = tuple(parts[2].split(",")) if len(parts) > 2 else ()  # noqa: PLR2004 - the third word
        found[digest] = Principal(subject=parts[1], groups=groups)
    return found


def _network(text: str) -> IPv4Network | IPv6Network:
    return ip_network(text, strict=False)
