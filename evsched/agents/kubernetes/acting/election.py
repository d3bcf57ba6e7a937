"""Which of several agents acts: the holder of a Lease, by the rules and times of Kubernetes' own components.

Whoever does not hold it watches it. When the holder has not renewed it for as long as it lasts,
counted from when that was seen and by one's own clock, it may be taken. The holder counts from
before it asked for the last renewal, and stops earlier than anybody may take it. So no two clocks
are compared.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import structlog
from msgspec import Struct

from evsched.agents.kubernetes.acting.actions import ApiRequest
from evsched.agents.kubernetes.acting.outcomes import ApiAnswer
from evsched.agents.kubernetes.objects import ApiStruct

LASTS_S = 15
"""How long a Lease lasts that is not renewed (``leaseDuration`` of Kubernetes' components)."""

RENEWED_WITHIN_S = 10.0
"""How long the holder acts after the last renewal that succeeded (``renewDeadline``)."""

AGAIN_S = 2.0
"""How often it is renewed, or looked at by the others (``retryPeriod``)."""

_OK, _CREATED, _NOT_FOUND = 200, 201, 404

_log = structlog.get_logger(__name__)


class ElectionClock(Struct, frozen=True):
    """What an election needs of time.

    Attributes:
        steady: Seconds that never go back and count while the machine sleeps.
        moment: Now, as the API writes it with microseconds.
        sleep: Waits so many seconds.
    """

    steady: Callable[[], float]
    moment: Callable[[], str]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class _LeaseSpec(ApiStruct, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


class _LeaseMeta(ApiStruct, frozen=True):
    resource_version: str = ""


class _Lease(ApiStruct, frozen=True):
    metadata: _LeaseMeta
    spec: _LeaseSpec = _LeaseSpec()


_LEASE = msgspec.json.Decoder(_Lease)

SendRequest = Callable[[ApiRequest], Awaitable[ApiAnswer]]


class LeaseElection:
    """One candidate.

    Attributes:
        identity: By which the Lease names it; no two processes may have the same.
    """

    def __init__(
        self, send: SendRequest, namespace: str, name: str, identity: str, clock: ElectionClock
    ) -> None:
        """Hold nothing.

        Args:
            send: Asks the API server.
            namespace: Of the Lease.
            name: Of the Lease.
            identity: Of this candidate.
            clock: What it needs of time.
        """
        self.identity = identity
        self._send = send
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._namespace, self._name = namespace, name
        self._clock = clock
        self._until = 0.0
        self._seen: tuple[str, float] | None = None

    def holds(self) -> bool:
        """Tell whether this candidate may act now; asked right before each request that changes something."""
        return self._clock.steady() < self._until

    async def acquire(self) -> None:
        """Return when the Lease is held."""
        while not await self._try():
            await self._clock.sleep(AGAIN_S)
        _log.info("acting", lease=self._name, identity=self.identity)

    async def keep(self) -> None:
        """Renew the Lease; return when it is lost, which is before anybody else may have it."""
        while self.holds():
            await self._clock.sleep(AGAIN_S)
            left = self._until - self._clock.steady()
            try:
                async with asyncio.timeout(max(left, 0)):
                    await self._try()
            except TimeoutError:
                break
        _log.warning("not acting any more", lease=self._name, identity=self.identity)

    async def release(self) -> None:
        """Give the Lease back, so that the next agent need not wait; nothing is lost where that fails."""
        if not self.holds():
            return
        lease = await self._read()
        self._until = 0.0
        if lease is None or lease.spec.holder_identity != self.identity:
            return
        spec = {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": self._clock.moment(),
            "leaseTransitions": lease.spec.lease_transitions or 0,
        }
        await self._send(self._put(lease.metadata.resource_version, spec))

    async def _try(self) -> bool:
        """Take or renew the Lease where that is lawful; tell whether it is held."""
        asked = self._clock.steady()
        lease = await self._read()
        if lease is None:
            return False
        if lease.metadata.resource_version and not self._is_free(lease):
            self._until = 0.0
            return False
        answer = await self._send(self._wanted(lease))
        if answer.code not in {_OK, _CREATED}:
            return self.holds()
        self._until = asked + RENEWED_WITHIN_S
        return True

    async def _read(self) -> _Lease | None:
        """Return the Lease; without a version where there is none; None: that is not known."""
        answer = await self._send(ApiRequest("GET", f"{self._path}/{self._name}"))
        if answer.code == _NOT_FOUND:
            return _Lease(metadata=_LeaseMeta())
        if answer.code != _OK:
            _log.warning("lease not read", lease=self._name, code=answer.code)
            return None
        try:
            return _LEASE.decode(answer.body)
        except msgspec.MsgspecError as error:
            _log.warning("lease not read", lease=self._name, reason=str(error))
            return None

    def _is_free(self, lease: _Lease) -> bool:
        """Tell whether the Lease may be taken: it is ours, nobody's, or was not renewed for as long as it lasts."""
        spec = lease.spec
        if not spec.holder_identity or spec.holder_identity == self.identity:
            return True
        now, version = self._clock.steady(), lease.metadata.resource_version
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, now)
        return now >= self._seen[1] + (spec.lease_duration_seconds or LASTS_S)

    def _wanted(self, lease: _Lease) -> ApiRequest:
        """Return the request that makes the Lease ours; its version is the precondition."""
        held = lease.spec.holder_identity == self.identity
        moment, taken = self._clock.moment(), lease.spec.lease_transitions or 0
        spec = {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": LASTS_S,
            "acquireTime": (lease.spec.acquire_time or moment) if held else moment,
            "renewTime": moment,
            "leaseTransitions": taken if held or not lease.metadata.resource_version else taken + 1,
        }
        return self._put(lease.metadata.resource_version, spec)

    def _put(self, version: str, spec: dict[str, Any]) -> ApiRequest:
        metadata = {"name": self._name, "namespace": self._namespace}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        if not version:
            return ApiRequest("POST", self._path, body | {"metadata": metadata})
        found = metadata | {"resourceVersion": version}
        return ApiRequest("PUT", f"{self._path}/{self._name}", body | {"metadata": found})
