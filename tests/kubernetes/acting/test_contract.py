"""The stand-in answers an acting agent as the real API server does: one conversation with either."""

import json

from evsched.agents.kubernetes.acting.actions import (
    AnnounceEviction,
    ApiRequest,
    BindPod,
    DeletePod,
    EvictPod,
    FreePod,
    LookAtPod,
    MarkVictim,
    TellWaiting,
    UnmarkVictim,
)
from evsched.agents.kubernetes.acting.outcomes import verdict_of
from evsched.agents.kubernetes.acting.seen import found_pod
from tests.kubernetes.acting.standin import StandInApi
from tests.kubernetes.objects import pod as read_pod

MOMENT = "2026-01-01T00:00:00.000000Z"
GATE = "evsched.io/admission"


class InMemory:
    """The stand-in."""

    def __init__(self):
        self._api = StandInApi()
        self.namespace = "default"

    def moment(self):
        """Return the time of its requests."""
        return MOMENT

    async def send(self, request):
        """Return its answer."""
        return self._api.answer(request)

    async def create(self, document):
        """Create a pod."""
        document["metadata"]["namespace"] = self.namespace
        return self._api.put("Pod", document)

    async def protect(self):
        """Let no pod of the app be evicted."""
        self._api.budgets["kept"] = 0


def document(name, **spec):
    """Return a pod that stays when it is deleted, as a finalizer holds it."""
    return {
        "metadata": {
            "name": name,
            "labels": {"app": name},
            "finalizers": ["example.com/hold"],
        },
        "spec": {"schedulerName": "evsched", "containers": [{"name": "main", "image": "none"}]}
        | spec,
        "status": {},
    }


async def hold_the_conversation(server):
    """Make every request that the agent makes, and hold its verdict; conflicts and repetitions included."""

    async def about(name, kind, expected, **more):
        action = kind(task=f"n/{name}", pod=pods[name], seq=7, **more)
        found = verdict_of(action, await server.send(action.request(server.moment())))
        assert found.verdict == expected, (name, kind.__name__, found.said)
        return found

    async def now(name):
        path = f"/api/v1/namespaces/{server.namespace}/pods/{name}"
        answer = await server.send(ApiRequest("GET", path))
        return found_pod(read_pod(json.loads(answer.body)))

    pods = {}
    for name, spec in (
        ("plain", {}),
        ("gated", {"schedulingGates": [{"name": GATE}, {"name": "example.com/other"}]}),
        ("kept", {}),
    ):
        made = await server.create(document(name, **spec))
        pods[name] = found_pod(read_pod(made))
    other = {"uid": "8a5f6dd5-0000-4000-8000-000000000000"}
    pods["another"] = type(pods["plain"])(
        namespace=server.namespace, name="plain", scheduler="evsched", **other
    )
    pods["missing"] = type(pods["plain"])(
        namespace=server.namespace, name="missing", scheduler="evsched", **other
    )
    await about("plain", TellWaiting, "done", message="waits", nominated="n1")
    assert (await now("plain")).nominated == "n1"
    assert (await now("plain")).waits == "waits"
    await about("another", TellWaiting, "skip", message="waits", nominated="")
    await about("another", BindPod, "refused", node="n1")
    await about("missing", BindPod, "later", node="n1")
    await about("plain", BindPod, "done", node="n1")
    assert ((await now("plain")).node, (await now("plain")).nominated) == ("n1", "")
    await about("plain", BindPod, "refused", node="n2")
    await about("plain", LookAtPod, "done", said="")
    await about("gated", BindPod, "refused", node="n1")
    await about("gated", FreePod, "done", gate=GATE)
    assert (await now("gated")).gates == ("example.com/other",)
    for _ in range(2):
        await about("plain", AnnounceEviction, "done", message="evsched decision 7: x")
    await about("plain", MarkVictim, "done", message="evsched decision 7: x")
    assert (await now("plain")).marked
    await about("plain", UnmarkVictim, "done")
    assert not (await now("plain")).marked
    await about("another", EvictPod, "later", asked=7, rehearsed=False)
    await about("plain", EvictPod, "done", asked=7, rehearsed=True)
    assert not (await now("plain")).terminating
    for _ in range(2):
        await about("plain", EvictPod, "done", asked=7, rehearsed=False)
    assert (await now("plain")).terminating
    await about("plain", BindPod, "refused", node="n1")
    await about("another", DeletePod, "later", asked=7)
    await about("missing", DeletePod, "later", asked=7)
    await about("gated", DeletePod, "done", asked=7)
    assert (await now("gated")).terminating
    return about


async def test_the_stand_in_answers_as_it_should():
    """Each request of the agent, with the verdict that follows from the answer."""
    server = InMemory()
    about = await hold_the_conversation(server)
    await about("kept", BindPod, "done", node="n1")
    await server.protect()
    for rehearsed in (True, False):
        await about("kept", EvictPod, "refused", asked=7, rehearsed=rehearsed)
