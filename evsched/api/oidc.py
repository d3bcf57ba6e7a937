"""Bearer tokens of an OpenID Connect issuer: signature, issuer, audience and expiry are checked; keys are fetched and kept."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from typing import Annotated, Any

import jwt
from msgspec import Meta, Struct

from evsched.api.calls import Principal

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
"""None with a shared secret: the issuer's public keys must not serve to sign."""

KEYS_KEPT_S = 600
FETCH_S = 5
LEEWAY_S = 10


class OidcSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose tokens are taken.

    Attributes:
        issuer: As tokens name it; its keys are found through its discovery document.
        audience: For whom tokens must be.
        subject, groups: Claims that hold who it is, and the groups.
        keys: Address of the keys; None: as the discovery document says.
    """

    issuer: Annotated[str, Meta(min_length=1)]
    audience: Annotated[str, Meta(min_length=1)]
    subject: str = "sub"
    groups: str = "groups"
    keys: str | None = None


class OidcTokens:
    """Checks tokens of one issuer."""

    def __init__(self, settings: OidcSettings) -> None:
        """Use settings; nothing is fetched before the first token comes."""
        for address in (settings.issuer, settings.keys or settings.issuer):
            if not address.startswith(("https://", "http://127.0.0.1:", "http://localhost:")):
                raise ValueError(f"oidc: found {address}, expected an address with https")
        self._settings = settings
        self._keys: jwt.PyJWKClient | None = None

    async def principal(self, token: str) -> Principal | None:
        """Return whose token it is; None: it is not taken, for whatever reason."""
        try:
            claims = await asyncio.to_thread(self._claims, token)
        except (jwt.PyJWTError, OSError, ValueError, KeyError):
            return None
        subject = claims.get(self._settings.subject)
        groups = claims.get(self._settings.groups, ())
        if not isinstance(subject, str) or not subject:
            return None
        if not isinstance(groups, list | tuple):
            groups = (groups,)
        return Principal(
            subject=subject, groups=tuple(one for one in groups if isinstance(one, str))
        )

    def _claims(self, token: str) -> dict[str, Any]:
        keys = self._keys
        if keys is None:
            keys = self._keys = jwt.PyJWKClient(
                self._settings.keys or self._discovered(),
                lifespan=KEYS_KEPT_S,
                timeout=FETCH_S,
            )
        return jwt.decode(
            token,
            keys.get_signing_key_from_jwt(token).key,
            algorithms=list(ALGORITHMS),
            audience=self._settings.audience,
            issuer=self._settings.issuer,
            leeway=LEEWAY_S,
            options={"require": ["exp", "iss", "aud", self._settings.subject]},
        )

    def _discovered(self) -> str:
        """Return where the issuer's keys are, by its discovery document."""
        address = f"{self._settings.issuer.rstrip('/')}/.well-known/openid-configuration"
        with urllib.request.urlopen(address, timeout=FETCH_S) as found:  # noqa: S310 - https, see above
            document = json.loads(found.read(1_000_000))
        if document["issuer"] != self._settings.issuer:
            raise ValueError(f"oidc: the discovery document is of {document['issuer']}")
        return str(document["jwks_uri"])
