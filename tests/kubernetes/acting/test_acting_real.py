"""Acting on a real control plane with the rights of the component: every mishap ends in a state that the log tells."""

import asyncio

import pytest

from events.vocabulary import (
    AllocationBound,
    AllocationReleased,
    AllocationRestored,
    BindingObserved,
    EvictionObserved,
    EvictionRefused,
    InputRejected,
    PreemptionDecided,
    PreemptionWithdrawn,
)
from evsched.agents.kubernetes.acting.actions import BindPod, EvictPod
from evsched.agents.kubernetes.acting.carrying import moment
from evsched.agents.kubernetes.connection import connected
from tests.kubernetes.acting.decider import ActingWorld
from tests.kubernetes.acting.test_contract import hold_the_conversation
from tests.kubernetes.cut import Cut
from tests.kubernetes.workload import pod_body

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

QUEUES = """
partitions:
  - name: default
    preemption: {enabled: true, quotapreemptionenabled: true, eviction: {grace: 3s, attempts: 2}}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: low
            properties: {preemption.delay: 1s, quota.preemption.delay: 1s}
          - name: high
            properties: {preemption.delay: 1s}
            resources: {guaranteed: {vcore: 8}}
          - name: rest
    placementrules:
      - name: provided
      - name: fixed
        value: root.rest
"""


@pytest.fixture
async def world(control_plane):
    """Return a world with one node of 8 cpus and these queues; nothing acts there yet."""
    made = ActingWorld(control_plane)
    try:
        await made.open(nodes=1)
        await made.configure(QUEUES)
        yield made
    finally:
        await made.close()


def body(world, name, queue, cpu="2", **spec):
    """Return a pod of a queue that runs on the nodes of this world."""
    made = pod_body(name, cpu, schedulerName="evsched", **spec)
    here = {"evsched-test": world.namespace}
    made["spec"]["nodeSelector"] = here
    made["metadata"]["labels"] |= {"queue": f"root.{queue}", "applicationId": queue}
    return made


async def create(world, name, queue, cpu="2", **spec):
    """Create such a pod."""
    path = f"/api/v1/namespaces/{world.namespace}/pods"
    return await world.do("create", path, body(world, name, queue, cpu, **spec))


async def fill(world, count=4):
    """Fill the node with pods of the low queue, and wait until the log has them confirmed."""
    for number in range(count):
        await create(world, f"low-{number}", "low")
    await world.until(lambda: len(mine(world, BindingObserved)) == count)


def mine(world, *kinds):
    """Return the events of these types about pods of this namespace."""
    return [
        one
        for one in world.said(*kinds)
        if (getattr(one, "ask", "") or getattr(one, "allocation", "")).startswith(world.namespace)
    ]


async def test_pods_are_bound_and_victims_evicted_by_what_the_log_says(world):
    """Bound by its own decision, the preemptor has the node of its victim; condition and Event of the victim say why."""
    world.act()
    await fill(world)
    marks = []
    await create(world, "urgent", "high")

    async def urgent_runs():
        for pod in await world.pods():
            marks.extend(
                (pod["metadata"]["name"], one["message"])
                for one in pod["status"].get("conditions", ())
                if one["type"] == "DisruptionTarget"
            )
        return bool(await world.home("urgent"))

    await world.until(urgent_runs)
    await world.equal()
    (decided,) = world.said(PreemptionDecided)
    (victim,) = decided.victims
    assert [(one.allocation, one.reason) for one in mine(world, AllocationReleased)] == [
        (victim.id, "preempted")
    ]
    assert [one.allocation for one in world.said(EvictionObserved)] == [victim.id]
    events = await world.do("get", f"/apis/events.k8s.io/v1/namespaces/{world.namespace}/events")
    (event,) = [one for one in events["items"] if one["reason"] == "Preempted"]
    assert event["note"].startswith(f"evsched decision {decided.seq}: makes room for")
    assert f"{world.namespace}/{event['regarding']['name']}" == victim.id
    assert event["related"]["name"] == "urgent"
    (bound,) = [one for one in mine(world, AllocationBound) if one.ask.endswith("urgent")]
    found = await world.pod("urgent")
    assert found["metadata"]["annotations"]["evsched.io/decision"] == str(bound.seq)
    assert world.said(InputRejected) == []


async def test_a_budget_that_refuses_for_ever_ends_in_a_preemption_withdrawn(world):
    """The Eviction API says 429, the log knows each refusal, and the victims stay unmarked."""
    budget = {
        "metadata": {"name": "all"},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"app": "low"}}},
    }
    path = f"/apis/policy/v1/namespaces/{world.namespace}/poddisruptionbudgets"
    await world.do("create", path, budget)
    world.act()
    await fill(world)
    await create(world, "urgent", "high")
    await world.until(lambda: world.said(PreemptionWithdrawn))
    assert len(world.said(EvictionRefused)) == 2
    assert "disruption budget" in world.said(EvictionRefused)[0].reason
    await world.equal()
    assert len(await world.pods()) == 5
    assert await world.home("urgent") == ""


async def test_a_victim_with_a_finalizer_is_told_to_leave_once(world):
    """It stays in the cluster, being deleted; the log says that the preemption was withdrawn."""
    world.act()
    await fill(world)
    for pod in await world.pods():
        path = f"/api/v1/namespaces/{world.namespace}/pods/{pod['metadata']['name']}"
        await world.do("patch", path, {"metadata": {"finalizers": ["example.com/hold"]}})
    await create(world, "urgent", "high")
    await world.until(lambda: world.said(PreemptionWithdrawn))
    (decided,) = world.said(PreemptionDecided)
    name = decided.victims[0].id.partition("/")[2]
    victim = await world.pod(name)
    assert victim["metadata"]["deletionTimestamp"]

    async def says_why():
        conditions = (await world.pod(name))["status"]["conditions"]
        (mark,) = [one for one in conditions if one["type"] == "DisruptionTarget"]
        return mark["message"].startswith(f"evsched decision {decided.seq}: ")

    await world.until(says_why)
    await world.equal()


async def test_a_pod_that_somebody_else_bound_first_runs_where_they_bound_it(world):
    """The Binding is refused with 409; the log releases its own decision and restores theirs."""
    from tests.kubernetes.workload import node_body  # noqa: PLC0415 - used here alone

    other = f"{world.namespace}-theirs"
    await world.do("create", "/api/v1/nodes", node_body(other, "elsewhere"))
    try:
        cut = Hold()
        world.act(through=cut.around)
        await create(world, "raced-0", "low")
        await cut.wait_for("/binding")
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "raced-0"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": other},
        }
        path = f"/api/v1/namespaces/{world.namespace}/pods/raced-0/binding"
        await world.do("create", path, binding)
        cut.let_go()
        await world.until(lambda: mine(world, AllocationRestored))
        await world.until(lambda: cut.codes["/binding"])  # the watch may have told of it before
        await world.equal()
        ends = [one.reason for one in mine(world, AllocationReleased)]
        assert ends == ["bound elsewhere"]
        assert cut.codes["/binding"] == [409]
    finally:
        await world.do("delete", f"/api/v1/nodes/{other}")


async def test_a_pod_created_again_under_its_name_gets_a_decision_of_its_own(world):
    """The Binding of the first is refused by its uid."""
    hold = Hold()
    world.act(through=hold.around)
    await create(world, "again-0", "low")
    await hold.wait_for("/binding")
    path = f"/api/v1/namespaces/{world.namespace}/pods"
    await world.do("delete", f"{path}/again-0", {"gracePeriodSeconds": 0})
    await create(world, "again-0", "low")
    hold.let_go()

    async def second_runs():
        return bool(await world.home("again-0")) and len(mine(world, BindingObserved)) == 1

    await world.until(second_runs)
    await world.until(lambda: len(hold.codes["/binding"]) > 1)
    await world.equal()
    assert len(mine(world, AllocationBound)) == 2
    assert hold.codes["/binding"] == [409, 201]


@pytest.mark.own_control_plane
async def test_a_cut_network_and_a_restarted_server_leave_nothing_undone(world):
    """Bindings that got no answer are made once; what came while nobody was heard is bound afterwards."""
    cut = Cut(int(world.plane.url.rpartition(":")[2]))
    await cut.start()
    try:
        world.act(kubeconfig=world.plane.way(cut.port))
        await fill(world, 2)
        cut.cut()
        await create(world, "low-2", "low")
        await asyncio.to_thread(world.plane.stop_server)
        await asyncio.to_thread(world.plane.start_server)
        cut.mend()
        await create(world, "low-3", "low")
        await world.until(lambda: len(mine(world, BindingObserved)) == 4)
        await world.equal()
        assert mine(world, AllocationReleased) == []
    finally:
        await cut.stop()


async def test_of_two_agents_one_acts_and_the_other_goes_on_where_it_was_killed(world):
    """The Lease names who acts; when it is given back the next one needs no quarter of a minute."""
    world.act("first")
    await fill(world, 2)
    world.act("second")
    lease = f"/apis/coordination.k8s.io/v1/namespaces/{world.namespace}/leases/evsched-agent"
    assert (await world.do("get", lease))["spec"]["holderIdentity"] == "first"
    await world.stop("first")
    await create(world, "low-2", "low")
    await world.until(lambda: len(mine(world, BindingObserved)) == 3)
    spec = (await world.do("get", lease))["spec"]
    assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("second", 1)
    await world.equal()
    assert mine(world, AllocationReleased) == []


async def test_a_real_api_server_answers_the_same(world):
    """The conversation that the stand-in is held to (`test_contract.py`)."""
    async with connected(world.plane.kubeconfig) as source:
        server = Real(world, source)
        about = await hold_the_conversation(server)
        await about("kept", BindPod, "done", node=world.node(0))

        async def runs():
            return (await world.pod("kept"))["status"].get("phase") == "Running"

        await world.until(runs)
        await server.protect()
        for rehearsed in (True, False):
            await about("kept", EvictPod, "refused", asked=7, rehearsed=rehearsed)


class Real:
    """A real API server."""

    def __init__(self, world, source):
        self._world = world
        self.namespace = world.namespace
        self.send = source.send
        # The controller manager takes back the mark of a victim that is there for two minutes.
        self.moment = moment

    async def create(self, document):
        """Create a pod."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        return await self._world.do("create", path, document)

    async def protect(self):
        """Let no pod of the app be evicted, once the disruption controller has seen the budget."""
        path = f"/apis/policy/v1/namespaces/{self.namespace}/poddisruptionbudgets"
        selector = {"matchLabels": {"app": "kept"}}
        budget = {"metadata": {"name": "kept"}, "spec": {"minAvailable": 5, "selector": selector}}
        await self._world.do("create", path, budget)

        async def seen():
            found = await self._world.do("get", f"{path}/kept")
            return found.get("status", {}).get("observedGeneration") == 1

        await self._world.until(seen)


class Hold:
    """Stands between an agent and the API server and holds back the first request of a kind.

    Attributes:
        codes: Part of a path to the answers to such requests.
    """

    def __init__(self):
        self.codes = {"/binding": []}
        self._came = asyncio.Event()
        self._go = asyncio.Event()
        self._source = None

    def around(self, source):
        """Stand in front of a source."""
        self._source = source
        return self

    async def wait_for(self, _):
        """Return when such a request has come."""
        await self._came.wait()

    def let_go(self):
        """Let it through, and all that come."""
        self._go.set()

    def page(self, kind, after):
        """Hand on."""
        return self._source.page(kind, after)

    def watch(self, kind, version):
        """Hand on."""
        return self._source.watch(kind, version)

    async def send(self, request):
        """Hand on, once that may be."""
        held = request.path.endswith("/binding")
        if held:
            self._came.set()
            await self._go.wait()
        answer = await self._source.send(request)
        if held:
            self.codes["/binding"].append(answer.code)
        return answer
