"""The shell of an acting agent, over an API server in memory: what it asks for, and when it must not ask."""

import asyncio
import time
from contextlib import suppress

import pytest
import structlog

from events.streams import Streams
from events.streams.memory import MemoryInbox, MemoryLog, MemoryStore
from events.vocabulary import BindingObserved, ConfigurationApplied
from evsched.agents.kubernetes.acting.carrying import ClusterActing, Deposed, Hands
from evsched.agents.kubernetes.masking import Masking, MaskingRules
from evsched.agents.kubernetes.reading import Reading
from evsched.cli.main import run
from evsched.config import load_texts
from tests.kubernetes.acting.decider import Decider
from tests.kubernetes.acting.served import ServedApi
from tests.kubernetes.acting.test_acting import OPEN
from tests.kubernetes.objects import node_json, pod_json

LABELS = {"queue": "root.low", "applicationId": "low"}


class Stage:
    """A cluster in memory, the leader that decides for it, and an agent."""

    def __init__(self):
        self.cluster = ServedApi()
        self.store = MemoryStore()
        self.leader = Decider(self.streams())
        self.agent = None

    def streams(self):
        """Return log and inbox, as a program of its own opens them."""
        return Streams(MemoryLog(self.store), MemoryInbox(self.store))

    async def open(self):
        """Lead the log, with queues and a node."""
        await self.leader.start()
        queues = load_texts([("queues.yaml", OPEN)]).configurations[0]
        applied = ConfigurationApplied(configuration=queues, proposal="queues")
        await self.streams().inbox.propose([applied], "tests")
        self.cluster.api.put("Node", node_json("n1"))

    def create(self, name):
        """Create a pod."""
        document = pod_json(name, {"schedulerName": "evsched"}, labels=LABELS)
        self.cluster.api.put("Pod", document)
        self.cluster.stir()

    def act(self, masking=None, may_act=lambda: True):
        """Start an agent."""
        hands = Hands(now=lambda: time.monotonic_ns() // 1_000_000, may_act=may_act)
        reading = Reading(masking=masking or Masking())
        acting = ClusterActing(self.streams(), self.cluster, reading, None, hands)
        self.agent = asyncio.create_task(acting.run())

    async def confirmed(self, count):
        """Return once so many bindings are confirmed in the log."""

        def said():
            return [one for one in self.leader.events if isinstance(one, BindingObserved)]

        await self.leader.until(lambda: len(said()) == count)
        return said()

    async def close(self):
        """End everything."""
        if self.agent is not None:
            self.agent.cancel()
            with suppress(asyncio.CancelledError, BaseExceptionGroup):
                await self.agent
        await self.leader.stop()


@pytest.fixture
async def stage():
    """Return a stage on which nobody acts yet."""
    made = Stage()
    await made.open()
    try:
        yield made
    finally:
        await made.close()


async def test_what_was_there_and_what_comes_is_bound_by_what_the_log_says(stage):
    """From the watch to the log, to the Binding, to the confirmation; a second agent has nothing left to do."""
    stage.create("before")
    stage.act()
    await stage.confirmed(1)
    stage.create("after")
    await stage.confirmed(2)
    asked = [one.path for one in stage.cluster.asked]
    assert sorted(asked) == [
        "/api/v1/namespaces/default/pods/after/binding",
        "/api/v1/namespaces/default/pods/before/binding",
    ]
    stage.agent.cancel()
    stage.act()
    stage.create("third")
    await stage.confirmed(3)
    assert len(stage.cluster.asked) == 3


async def test_masked_names_are_acted_on_under_their_true_names(stage):
    """The log has the hashes, the API the pod."""
    stage.create("secret")
    stage.act(masking=Masking(MaskingRules(key="k", namespaces=("default",))))
    (confirmed,) = await stage.confirmed(1)
    assert "secret" not in confirmed.ask
    (asked,) = stage.cluster.asked
    assert asked.path == "/api/v1/namespaces/default/pods/secret/binding"


async def test_an_agent_that_may_not_act_any_more_sends_nothing(stage):
    """The question is asked right before each request, and ends the agent."""
    stage.create("a")
    stage.act(may_act=lambda: False)
    with pytest.raises(BaseExceptionGroup) as found:
        await stage.agent
    assert found.value.subgroup(Deposed) is not None
    assert stage.cluster.asked == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--kueue", "kueue-system"], "found --mode act and --kueue"),
        (["--lease", "evsched"], "--lease evsched: expected namespace/name"),
    ],
)
def test_what_acting_cannot_do_is_refused(arguments, said, tmp_path, capsys):
    """Before anything is listed or led."""
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        " clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}],"
        " users: [{name: u, user: {}}], contexts: [{name: c, context: {cluster: c, user: u}}]}"
    )
    log = str(tmp_path / "log.db")
    command = ["agent", "kubernetes", "--mode", "act", "--log", log]
    assert run([*command, "--kubeconfig", str(kubeconfig), *arguments]) == 2
    structlog.reset_defaults()
    assert said in capsys.readouterr().err
