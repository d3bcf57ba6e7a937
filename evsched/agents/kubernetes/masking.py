"""Keeps names out of the log that are not wanted there.

A name that a rule matches stands in the log as a keyed hash of itself: equal names stay equal, so a
selector still matches its label and a quota still counts its namespace, and whoever lacks the key
cannot try names until one fits. Of a pod whose namespace is masked the pod's own name is masked as
well. The length and the order of names are lost, and so are the numbers that ``Gt`` and ``Lt``
compare.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from hashlib import blake2b

from msgspec import Struct

MASKED = "masked-"
"""How every masked name begins."""

USER_LABEL = "yunikorn.apache.org/username"
"""The label in which YuniKorn looks for a user; its value is masked as a user is."""

_DIGEST_BYTES = 8


class MaskingRules(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which names are masked. Patterns are those of a shell: ``*``, ``?`` and ``[…]``, case counts.

    Attributes:
        key: What the hashes are keyed with, at most 64 bytes; keep it as secret as the names, and
            keep it: another key gives every masked object another name.
        namespaces: Patterns of namespaces.
        users: Patterns of users and groups.
        labels: Patterns of label keys; the key and the value are both masked.
    """

    key: str = ""
    namespaces: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


class Masking:
    """Applies the rules."""

    def __init__(self, rules: MaskingRules | None = None) -> None:
        """Take the rules; None: nothing is masked.

        Raises:
            ValueError: The key is longer than 64 bytes, or missing where something is masked.
        """
        self._rules = rules or MaskingRules()
        self._key = self._rules.key.encode()
        if len(self._key) > blake2b.MAX_KEY_SIZE:
            raise ValueError(
                f"key: {len(self._key)} bytes, expected at most {blake2b.MAX_KEY_SIZE}"
            )
        if not self._key and (self._rules.namespaces or self._rules.users or self._rules.labels):
            raise ValueError("key: missing, expected one where names are masked")

    def namespace(self, name: str) -> str:
        """Return a namespace as the log may name it."""
        return self._masked(name) if _matches(name, self._rules.namespaces) else name

    def object(self, namespace: str, name: str) -> str:
        """Return ``namespace/name`` of an object as the log may name it."""
        if _matches(namespace, self._rules.namespaces):
            return f"{self._masked(namespace)}/{self._masked(name)}"
        return f"{namespace}/{name}"

    def user(self, name: str) -> str:
        """Return a user or group as the log may name it."""
        return self._masked(name) if _matches(name, self._rules.users) else name

    def label(self, key: str, value: str) -> tuple[str, str]:
        """Return a label as the log may name it."""
        if key == USER_LABEL:
            value = self.user(value)
        if not _matches(key, self._rules.labels):
            return key, value
        return self._masked(key), self._masked(f"{key}={value}")

    def values(self, key: str, values: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
        """Return a label's key and the values that it is compared with."""
        return self.label(key, "")[0], tuple(self.label(key, value)[1] for value in values)

    def labels(self, labels: dict[str, str] | None) -> dict[str, str]:
        """Return labels in the order of their keys, so that equal ones are written equally."""
        return dict(sorted(self.label(key, value) for key, value in (labels or {}).items()))

    def _masked(self, name: str) -> str:
        digest = blake2b(name.encode(), key=self._key, digest_size=_DIGEST_BYTES)
        return MASKED + digest.hexdigest()


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
