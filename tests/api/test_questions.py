"""Every question over HTTP has the answer of the library of questions, to the byte."""

from __future__ import annotations

import msgspec

from events import vocabulary as v
from events.frame import encode_event
from evsched.api import sql
from projections.audit import questions
from replays.explaining.plan import PlanQuestion, plan
from replays.explaining.question import ExplainQuestion, explain
from replays.history.audit import AuditQuestion, audit
from replays.history.bisect import BisectQuestion, bisect
from replays.history.diff import DiffQuestion, diff
from replays.history.moments import Moment
from replays.history.rebuild import History
from replays.history.status import StatusQuestion, status
from tests.api.served import serving_steps
from tests.replays.logs import sealed, story, written

ASK = v.AskSubmitted(
    ask="new", application="test", queue="root.test", user="u", resources={"vcore": 2000}
)


async def past():
    """Return the past of the story."""
    return History(await written(sealed(story())))


def same(found, answer):
    """Tell whether what was sent is an answer."""
    return found.content == msgspec.json.encode(answer)


async def test_the_answers_are_those_of_the_library(tmp_path):
    """Explain, plan, diff, bisect and status; what belongs to a seq may be kept for ever."""
    history = await past()
    async with serving_steps(story(), tmp_path) as client:
        for subject in ("test-3", "prod-1", "test-5", "nobody", "root.test", "test", "n1", "u"):
            for seq in (12, 20, 35):
                found = await client.get(f"/v1/at/{seq}/explain/{subject}")
                answer = await explain(
                    history, ExplainQuestion(subject=subject, moment=Moment(seq=seq))
                )
                assert same(found, answer), (subject, seq)
                assert "immutable" in found.headers["cache-control"]
        found = await client.get("/v1/diff?from=12&to=30&views=asks,applications")
        question = DiffQuestion(before=Moment(seq=12), after=Moment(seq=30), views=("asks", "apps"))
        assert same(found, await diff(history, question))
        assert "immutable" in found.headers["cache-control"]
        for seq in (12, 35):
            found = await client.post(f"/v1/at/{seq}/plan", content=encode_event(ASK), headers=JSON)
            assert same(found, await plan(history, PlanQuestion(ask=ASK, moment=Moment(seq=seq))))
        for expression in ("ask prod-1 waits", "ask prod-1 gone", "asks > 100"):
            found = await client.get("/v1/bisect", params={"expression": expression})
            answer = await bisect(history, BisectQuestion(expression=expression))
            assert same(found, answer)
            assert ("immutable" in found.headers["cache-control"]) is (answer.first is not None)
        assert same(await client.get("/v1/status"), await status(history, StatusQuestion()))
        rules = (await client.get("/v1/rules")).json()
        assert [one["version"] for one in rules if one["in_force"]] == [1]


JSON = {"content-type": "application/json"}


async def test_times_lead_to_a_comparison_that_lasts(tmp_path):
    """Two moments that are no seqs are answered by a redirect to theirs."""
    async with serving_steps(story(), tmp_path) as client:
        found = await client.get("/v1/diff?from=-24500ms&views=asks")
        assert found.status_code == 307
        assert found.headers["location"] == "/v1/diff?from=12&to=35&views=asks"


async def test_audits_are_those_of_the_read_model(tmp_path):
    """Every ready question, narrowed by what it takes."""
    async with serving_steps(story(), tmp_path) as client:
        listed = (await client.get("/v1/audit")).json()
        assert [one["name"] for one in listed] == list(questions())
        for one in listed:
            narrow = {"of": "prod-1"} if "of" in one["takes"] else {}
            found = await client.get(f"/v1/audit/{one['name']}", params=narrow)
            answer = audit(tmp_path / "model.db", AuditQuestion(name=one["name"], **narrow))
            assert same(found, answer), one["name"]
        windowed = (await client.get("/v1/audit/who-preempted?from=1&to=20")).json()
        assert windowed["rows"] == []


async def test_sql_reads_and_does_nothing_else(tmp_path, monkeypatch):
    """Only statements that read, only so long, only so much; the file is never written."""
    async with serving_steps(story(), tmp_path) as client:

        async def asked(text, **more):
            return await client.post("/v1/sql", json={"sql": text, **more})

        found = await asked("SELECT ask, queue FROM asks ORDER BY ask, from_seq", limit=2)
        assert found.json()["columns"] == ["ask", "queue"]
        assert (len(found.json()["rows"]), found.json()["cut"]) == (2, True)
        assert found.json()["seq"] == 35
        odd = (await asked("SELECT 9e999, x'00ff', NULL")).json()["rows"]
        assert odd == [[None, "00ff", None]]
        before = (tmp_path / "model.db").read_bytes()
        for text in (
            "DELETE FROM asks",
            "DROP TABLE asks",
            "ATTACH 'other.db' AS other",
            "PRAGMA writable_schema = 1",
            "CREATE TEMP TABLE t (a)",
            "SELECT load_extension('x')",
            "SELECT state FROM kept_state",
            "SELECT zeroblob(100000000)",
            "SELECT 1; SELECT 2",
            "COMMIT",
            "no sql",
            "",
        ):
            found = await asked(text)
            if text:
                assert found.status_code == 400, text
                assert found.json()["place"] == {"where": "body", "name": "sql"}
        monkeypatch.setattr(sql, "SQL_S", 0.05)
        endless = (
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        )
        assert (await asked(endless)).status_code == 503
        assert (tmp_path / "model.db").read_bytes() == before
    assert not (tmp_path / "other.db").exists()


MISTAKES = (
    ("GET", "/v1/diff", None, 400, "from"),
    ("GET", "/v1/diff?from=1&to=99", None, 404, "to"),
    ("GET", "/v1/diff?from=x", None, 400, "from"),
    ("GET", "/v1/diff?from=1&views=pods", None, 400, "views"),
    ("GET", "/v1/bisect?expression=ask+t1+flies", None, 400, "expression"),
    ("GET", "/v1/audit/none", None, 404, "name"),
    ("GET", "/v1/audit/life-of", None, 400, "of"),
    ("GET", "/v1/audit/life-of?of=a&queue=root", None, 400, "queue"),
    ("GET", "/v1/audit/who-preempted?from=20&to=10", None, 400, "from"),
    ("GET", "/v1/audit/who-preempted?queue=root.none", None, 404, "queue"),
    ("POST", "/v1/at/20/plan", b"{", 400, ""),
    ("POST", "/v1/at/20/plan", b'{"type":"NodeRemoved","node":"n1"}', 400, "type"),
    ("POST", "/v1/at/20/plan", b'{"type":"AskSubmitted","ask":"a","colour":1}', 400, ""),
    ("POST", "/v1/sql", b'{"sql":"SELECT 1","limit":0}', 400, "limit"),
    ("POST", "/v1/sql", b'{"sql":1}', 400, "sql"),
    ("POST", "/v1/sql", b'{"sql":"SELECT 1","colour":1}', 400, "colour"),
    ("POST", "/v1/sql", b"{}", 400, "sql"),
)


async def test_mistakes_have_their_place(tmp_path):
    """In parameters and bodies; and a body of another media type is not read at all."""
    async with serving_steps(story(), tmp_path) as client:
        for method, address, body, code, name in MISTAKES:
            found = await client.request(method, address, content=body, headers=JSON)
            assert found.status_code == code, (address, found.text)
            assert found.json()["place"]["name"] == name, (address, found.text)
        for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
            found = await client.post("/v1/sql", content=b"{}", headers={"content-type": kind})
            assert found.status_code == 415
        large = b'{"sql":"' + b"x" * 4_000_001
        assert (await client.post("/v1/sql", content=large, headers=JSON)).status_code == 413
