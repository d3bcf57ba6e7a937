"""Who may ask what: every route, for every role, about what is its own and what is foreign."""

from __future__ import annotations

import json
import re

import pytest
from msgspec.structs import replace
from starlette.routing import Route

from events import vocabulary as v
from events.frame import encode_event
from evsched.api.app import OPERATIONS, application
from evsched.api.identity import AccessSettings, Identities
from evsched.api.masking import Masker
from evsched.api.rates import Rates
from evsched.api.rights import Rights
from evsched.core.engine import Engine
from tests.api.served import kept, led, served_over, serving, serving_steps
from tests.api.tenants import SECRETS, WHO, bearer, identities, pod, spec, steps
from tests.replays.logs import taken

JSON = {"content-type": "application/json"}
YAML = {"content-type": "application/yaml"}
EVERYBODY = ("alice", "bob", "carol", "dave", "mallory")
READERS, AUDITORS, ADMINISTRATORS = EVERYBODY, ("carol", "dave"), ("dave",)

ROUTES = {
    "live": ("/livez", None, "nobody"),
    "ready": ("/readyz", None, "nobody"),
    "problem": ("/v1/problems/not-found", None, "nobody"),
    "openapi": ("/v1/openapi.json", None, "nobody"),
    "asyncapi": ("/v1/asyncapi.json", None, "nobody"),
    "log": ("/v1/log", None, READERS),
    "logStream": ("/v1/log/stream?until=1", None, READERS),
    "rules": ("/v1/rules", None, READERS),
    "auditQuestions": ("/v1/audit", None, READERS),
    "stateRows": ("/v1/at/20/asks", None, READERS),
    "stateRow": ("/v1/at/20/nodes/n1", None, READERS),
    "nodeLoads": ("/v1/at/20/loads?resource=vcore", None, READERS),
    "diff": ("/v1/diff?from=12&to=20", None, READERS),
    "events": ("/v1/events?form=ndjson&until=20", None, READERS),
    "timeline": ("/v1/timeline?end=20", None, READERS),
    "configurationCheck": ("/v1/configuration/check", b"partitions: 7", READERS),
    "explain": ("/v1/at/20/explain/prod-1", None, ("alice", "carol", "dave")),
    "plan": ("/v1/at/20/plan", encode_event(pod("new", "prod", "alice")), ("alice", "dave")),
    "propose": ("/v1/proposals", encode_event(pod("new", "prod", "alice")), ("alice", "dave")),
    "status": ("/v1/status", None, AUDITORS),
    "bisect": ("/v1/bisect?expression=asks+>+0", None, AUDITORS),
    "audit": ("/v1/audit/still-waiting", None, AUDITORS),
    "sql": ("/v1/sql", b'{"sql":"SELECT 1"}', AUDITORS),
    "configurationInForce": ("/v1/at/20/configuration", None, AUDITORS),
    "configurationDiff": ("/v1/at/20/configuration/diff", b"partitions: 7", AUDITORS),
    "configurationApply": ("/v1/configuration", b"partitions: 7", ADMINISTRATORS),
    "whatIf": ("/v1/whatif", b'{"rules":2}', AUDITORS),
    "verify": ("/v1/verify", b"{}", AUDITORS),
    "verified": ("/v1/verify", None, AUDITORS),
    "job": ("/v1/jobs/verify-1", None, ("carol",)),
    "cancel": ("/v1/jobs/verify-1", None, ("carol",)),
}
"""By operation: a request, its body, and who is answered; ``nobody``: without showing who asks."""

REFUSED = {"explain": 404, "job": 404, "cancel": 404}
"""What whoever may not is answered, where that is not 403: it does not learn whether there is such a thing."""


def test_the_table_names_every_route():
    """A new one is not forgotten."""
    told = {one.name for one in OPERATIONS}
    assert told == set(ROUTES)


async def test_every_route_for_every_role(tmp_path):
    """Who may is answered, who may not is refused, and whoever does not show who asks gets nothing but health."""
    operations = {one.name: one for one in OPERATIONS}
    async with serving_steps(steps(), tmp_path, identities()) as client:
        await client.post("/v1/verify", content=b"{}", headers={**JSON, **bearer("carol")})
        for name, (address, body, allowed) in ROUTES.items():
            operation = operations[name]
            headers = {"content-type": operation.body_types[0]} if body is not None else {}
            plain = await client.request(operation.method, address, content=body, headers=headers)
            assert (plain.status_code == 401) is (allowed != "nobody"), name
            wrong = {**headers, **bearer("stranger")}
            found = await client.request(operation.method, address, content=body, headers=wrong)
            assert (found.status_code == 401) is (allowed != "nobody"), name
            for who in EVERYBODY if allowed != "nobody" else ():
                own = {**headers, **bearer(who)}
                found = await client.request(operation.method, address, content=body, headers=own)
                expected = REFUSED.get(name, 403)
                assert (found.status_code == expected) is (who not in allowed), (
                    name,
                    who,
                    found.text,
                )
                assert found.status_code < 500, (name, who, found.text)


BESIDE = {
    "partition": "default",
    "queue": "root.prod",
    "application": "prod",
    "node": "n1",
    "user": "alice",
    "group": "dev",
    "state": "active",
    "moment": "20",
}
"""What the addresses of YuniKorn's interface are filled with."""


async def test_what_tells_of_the_whole_partition_is_for_auditors(tmp_path):
    """Metrics, and every route of YuniKorn's interface, now and at a moment: nothing in them is masked."""
    known = {one.path for one in OPERATIONS}
    served = served_over(f"sqlite://{tmp_path / 'log.db'}", tmp_path, identities())
    routes = [
        one
        for one in application(served).routes
        if isinstance(one, Route) and one.path not in known
    ]
    assert len(routes) > 40
    async with serving_steps(steps(), tmp_path, identities()) as client:
        for route in routes:
            if route.path.endswith("/events/stream"):
                continue  # it does not end; the next test asks for it
            method = min((route.methods or set()) - {"HEAD"})
            address = route.path.format(**BESIDE)
            plain = await client.request(method, address, content=b"partitions: []")
            assert plain.status_code == 401, address
            for who in EVERYBODY:
                found = await client.request(
                    method, address, content=b"partitions: []", headers=bearer(who)
                )
                assert (found.status_code == 403) is (who not in AUDITORS), (address, who)
                assert found.status_code < 500, (address, who, found.text)


@pytest.mark.parametrize("who", [None, "alice"])
async def test_a_stream_of_yunikorns_events_is_for_auditors(tmp_path, who):
    """It does not even begin for others."""
    async with serving_steps(steps(), tmp_path, identities()) as client:
        headers = {} if who is None else bearer(who)
        found = await client.get("/ws/v1/events/stream", headers=headers)
        assert found.status_code == (401 if who is None else 403)


READS = (
    *(
        f"/v1/at/{{seq}}/{view}"
        for view in ("queues", "nodes", "applications", "asks", "allocations", "timers")
    ),
    "/v1/diff?from=0&to={seq}",
    "/v1/events?form=ndjson&until={seq}",
    "/v1/events?form=cloudevents&until={seq}",
    "/v1/timeline?end={seq}&lanes=*",
)


async def test_no_answer_holds_a_foreign_name(tmp_path):
    """Neither in lists nor in explanations, differences, streams or plans; and one's own is all there."""
    end = steps()[-1][1][-1].seq
    async with serving_steps(steps(), tmp_path, identities()) as client:
        for who, own, foreign in (("alice", "prod", "test"), ("bob", "test", "prod")):
            addresses = [one.format(seq=seq) for one in READS for seq in range(0, end + 1, 5)]
            addresses += [
                f"/v1/at/{seq}/explain/{name}"
                for seq in range(12, end + 1, 4)
                for name in sorted(SECRETS[own])
                if "-" in name
            ]
            said = ""
            for address in addresses:
                found = await client.get(address, headers=bearer(who))
                assert found.status_code in (200, 404), (address, found.text)
                said += found.text
                words = set(re.findall(r"[A-Za-z0-9][\w.-]*\w", found.text))
                assert not words & SECRETS[foreign], (who, address, words & SECRETS[foreign])
            assert SECRETS[own] <= set(re.findall(r"[A-Za-z0-9][\w.-]*\w", said))
            assert "hidden-1" in said
            secret = max(SECRETS[foreign])
            unknown = await client.get("/v1/at/20/explain/none", headers=bearer(who))
            hidden = await client.get(f"/v1/at/20/explain/{secret}", headers=bearer(who))
            assert hidden.status_code == unknown.status_code == 404
            assert hidden.text.replace(secret, "none") == unknown.text
            # What a queue, node or user has is said of all that is there: for audits alone.
            for thing in (f"root.{own}", "n1"):
                found = await client.get(f"/v1/at/20/explain/{thing}", headers=bearer(who))
                assert found.status_code == 404 or found.json()["overview"] is None, found.text


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("root.test", "hidden-1"),
        ("root.test's maximum", "hidden-1's maximum"),
        ("(root.test), root.prod.", "(hidden-1), root.prod."),
        ("quota:root.test", "quota:hidden-1"),
        ("queue=root.test→test-1", "queue=hidden-2→hidden-1"),
        ("'test-1' and “test-2”, test-1", "'hidden-1' and “hidden-2”, hidden-1"),
        ("a test of root.testing", "a hidden-1 of root.testing"),
    ],
)
def test_a_name_is_masked_wherever_it_stands_in_a_sentence(said, shown):
    """In quotes, in parentheses, with an ending, behind a colon; and the same name is the same all along."""
    engine = Engine()
    for time, events, _ in steps():
        for event in events:
            engine.apply(event, time)
    state = engine.state
    rights = Rights(WHO["alice"], identities().settings, state, state)
    ever = dict.fromkeys(SECRETS["test"] - {"root.test", "bob"}, "root.test")
    masker = Masker(rights, (state, state), ever.get, lambda name: name == "root.test")
    assert masker.answer({"sentence": [said]}) == {"sentence": [shown]}


async def test_whoever_audits_sees_what_an_open_server_shows(tmp_path):
    """To the byte."""
    (tmp_path / "open").mkdir()
    async with (
        serving_steps(steps(), tmp_path, identities()) as client,
        serving_steps(steps(), tmp_path / "open") as other,
    ):
        for address in (*(one.format(seq=20) for one in READS), "/v1/at/20/explain/prod-1"):
            found = await client.get(address, headers=bearer("carol"))
            assert found.content == (await other.get(address)).content, address


async def test_a_right_that_was_taken_away_is_gone_for_the_past(tmp_path):
    """And one that was given does not reach back: the stricter of then and now counts."""
    history = [
        (0, [pod("test-1", "test", "bob")], False),
        (1000, [v.ConfigurationApplied(configuration=spec(bob="erin"))], False),
        (1000, [pod("test-2", "test", "erin")], False),
    ]
    who = {**identities()._tokens}
    moved = taken(spec(), history)
    changed = next(
        event.seq
        for _, events, _ in moved
        for event in events
        if isinstance(event, v.ConfigurationApplied) and event.seq > 5
    )
    async with serving_steps(moved, tmp_path, Identities(AccessSettings(), who)) as client:
        for seq in (changed - 1, changed):
            found = await client.get(f"/v1/at/{seq}/allocations", headers=bearer("bob"))
            assert found.json()["rows"] == []
        stream = await client.get("/v1/events?form=ndjson", headers=bearer("bob"))
        assert stream.text == ""
        everything = (await client.get("/v1/at/latest/allocations", headers=bearer("dave"))).json()
        assert [row["allocation"] for row in everything["rows"]] == ["test-1", "test-2"]


PROPOSALS = (
    ("alice", pod("a", "prod", "alice"), True),
    ("alice", pod("a", "prod", "bob"), False),
    ("alice", pod("a", "test", "alice"), False),
    ("alice", v.AskSubmitted(ask="a", application="test", queue="root.prod", user="alice"), False),
    ("alice", v.AskSubmitted(ask="a", application="prod", user="alice", groups=("ops",)), False),
    ("alice", v.AskWithdrawn(ask="prod-1"), True),
    ("alice", v.AllocationReleased(allocation="test-1"), False),
    ("alice", v.AllocationReleased(allocation="nothing"), False),
    ("bob", v.AllocationReleased(allocation="test-1"), True),
    ("bob", v.ApplicationRemoved(application="test"), True),
    ("bob", v.ApplicationRemoved(application="prod"), False),
    ("bob", v.NodeRemoved(node="n1"), False),
    ("bob", v.ConfigurationApplied(configuration=spec()), False),
    ("carol", v.NodeRemoved(node="n1"), False),
    ("dave", v.NodeRemoved(node="n1"), True),
    ("dave", v.RulesAdopted(rules=2), True),
    ("mallory", pod("a", "prod", "mallory"), False),
)


async def test_everybody_proposes_for_themselves(tmp_path):
    """Into one's own queues, in one's own name; what is refused is not sent, and what is sent says who asked."""
    async with serving_steps(steps(), tmp_path, identities()) as client:
        for who, proposed, allowed in PROPOSALS:
            found = await client.post(
                "/v1/proposals", content=encode_event(proposed), headers={**JSON, **bearer(who)}
            )
            assert found.status_code == (202 if allowed else 403), (who, proposed, found.text)
        taken_in = await client.served.streams.inbox.read(0)
        assert [one.input.actor for one in taken_in] == [
            who for who, _, allowed in PROPOSALS if allowed
        ]


async def test_other_interfaces_are_for_whoever_sees_everything(tmp_path):
    """YuniKorn's routes and the metrics tell of the whole partition."""
    async with serving_steps(steps(), tmp_path, identities()) as client:
        for address in ("/metrics", "/ws/v1/config", "/ws/v1/clusters", "/at/20/ws/v1/clusters"):
            assert (await client.get(address)).status_code == 401, address
            for who, status in (("alice", 403), ("mallory", 403)):
                found = await client.get(address, headers=bearer(who))
                assert found.status_code == status, (address, who)
            assert (await client.get(address, headers=bearer("carol"))).status_code != 403


async def test_what_depends_on_rights_is_asked_for_again(tmp_path):
    """Nobody else's cache keeps it, and one's own asks whether it is still so."""
    async with serving_steps(steps(), tmp_path, identities()) as client:
        found = await client.get("/v1/at/20/asks", headers=bearer("alice"))
        assert found.headers["cache-control"] == "private, no-cache"
        assert found.headers["vary"] == "Authorization"
        again = {**bearer("alice"), "if-none-match": found.headers["etag"]}
        assert (await client.get("/v1/at/20/asks", headers=again)).status_code == 304


async def test_viewers_look_at_everything_and_propose_nothing(tmp_path):
    """Where a network is listed, whoever comes from it need not show who asks; and may change nothing."""
    viewers = Identities(AccessSettings(viewers=("127.0.0.0/8",)))
    async with serving_steps(steps(), tmp_path, viewers) as client:
        for name, (address, body, _) in ROUTES.items():
            if name in ("job", "cancel"):
                continue
            operation = next(one for one in OPERATIONS if one.name == name)
            headers = {"content-type": operation.body_types[0]} if body is not None else {}
            found = await client.request(operation.method, address, content=body, headers=headers)
            changes = name in ("propose", "plan", "configurationApply")
            assert (found.status_code == 403) is changes, (name, found.text)


async def test_the_log_says_who_asked(tmp_path):
    """The actor is whose token it is, whatever the body says."""
    url = f"sqlite://{tmp_path / 'log.db'}"
    await kept([], url)
    served = served_over(url, tmp_path, identities())
    applied = replace(v.ConfigurationApplied(configuration=spec()), actor="somebody else")
    async with led(url), serving(url, tmp_path, served) as client:
        client.served.past._access = (
            None  # there is no administrator before the first configuration
        )
        headers = {**JSON, **bearer("dave")}
        found = await client.post(
            "/v1/proposals?wait=20", content=encode_event(applied), headers=headers
        )
        assert found.json()["answer"] == "accepted", found.text
        told = (
            await client.get("/v1/events?form=ndjson&types=ConfigurationApplied", headers=headers)
        ).text
    assert json.loads(told.splitlines()[0])["event"]["actor"] == "dave"


def test_a_bucket_is_empty_after_so_many_requests_and_fills_again():
    """Each principal has its own."""
    rates = Rates()
    settings = AccessSettings().rate
    for _ in range(settings.burst):
        rates.take("alice", settings, 10.0)
    with pytest.raises(Exception, match="too-many-requests"):
        rates.take("alice", settings, 10.0)
    rates.take("bob", settings, 10.0)
    rates.take("alice", settings, 10.02)


async def test_a_page_of_another_site_changes_nothing(tmp_path):
    """A browser says where a request comes from; reading is forbidden to that page by the browser itself."""
    async with serving_steps(steps(), tmp_path) as client:
        for headers in (
            {"origin": "http://evil.example"},
            {"origin": "null"},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
        ):
            found = await client.post("/v1/verify", content=b"{}", headers={**JSON, **headers})
            assert (found.status_code, found.json()["type"]) == (403, "/v1/problems/cross-site")
        own = {"origin": "http://localhost", "sec-fetch-site": "same-origin"}
        assert (await client.post("/v1/verify", json={}, headers=own)).status_code == 202
