"""Watching one kind without losing a change, against an API server that is a script."""

import asyncio
import json

import pytest

from evsched.agents.kubernetes.objects import PODS
from evsched.agents.kubernetes.reflecting import Gone, Reflector, Relisted, Unavailable
from tests.kubernetes.objects import pod_json


class Script:
    """An API server that answers as it was told, one answer after the other, then nothing for ever.

    Attributes:
        asked: What was asked of it: the page after which, or the version behind which.
    """

    def __init__(self, *answers):
        """Take the answers: pages and lists of lines; an exception in place of either is raised."""
        self._answers = list(answers)
        self.asked = []
        self.done = asyncio.Event()

    def _next(self):
        if not self._answers:
            self.done.set()
            return None
        return self._answers.pop(0)

    async def page(self, kind, after):
        """Return the next answer, which has to be a page."""
        self.asked.append(("list", after))
        answer = self._next()
        if isinstance(answer, Exception):
            raise answer
        assert answer is not None
        return answer

    async def watch(self, kind, version):
        """Yield the lines of the next answer."""
        self.asked.append(("watch", version))
        answer = self._next()
        if answer is None:
            await asyncio.Event().wait()
        for line in answer:
            if isinstance(line, Exception):
                raise line
            yield line


def page(version, *names, after=""):
    """Return a page with pods of these names."""
    items = [pod_json(name) for name in names]
    meta = {"resourceVersion": version} | ({"continue": after} if after else {})
    return json.dumps({"metadata": meta, "items": items}).encode()


def line(kind, version, name="a"):
    """Return a line of a watch."""
    return json.dumps({"type": kind, "object": pod_json(name, resourceVersion=version)}).encode()


def failed(code, reason):
    """Return the line with which a server ends a watch in error."""
    status = {"code": code, "reason": reason, "message": "too old resource version"}
    return json.dumps({"type": "ERROR", "object": status}).encode()


async def reflected(*answers):
    """Return the script, what was delivered, and how long was waited, once all answers are used."""
    script, delivered, waits = Script(*answers), [], []

    async def deliver(news):
        delivered.append(news)

    async def sleep(seconds):
        waits.append(seconds)

    reflector = Reflector(PODS, script, deliver, sleep)
    running = asyncio.create_task(reflector.run())
    await script.done.wait()
    running.cancel()
    await asyncio.wait({running})
    return script, delivered, waits


def names(news):
    """Return what a list or a change is about."""
    if isinstance(news, Relisted):
        return [one.metadata.name for one in news.objects]
    return news.object.metadata.name


async def test_a_list_comes_in_pages_and_the_watch_begins_behind_it():
    """All pages are one list, at the version of the last."""
    script, delivered, _ = await reflected(page("7", "a", after="more"), page("7", "b"))
    (listed,) = delivered
    assert (names(listed), listed.version, listed.before) == (["a", "b"], "7", "")
    assert script.asked == [("list", ""), ("list", "more"), ("watch", "7")]


async def test_a_watch_that_ends_goes_on_behind_its_last_word():
    """Changes and bookmarks both count, and nothing is listed again."""
    script, delivered, _ = await reflected(
        page("7"),
        [line("ADDED", "8"), line("DELETED", "9")],
        [line("BOOKMARK", "20")],
    )
    assert [(one.object.metadata.name, one.gone) for one in delivered[1:]] == [
        ("a", False),
        ("a", True),
    ]
    assert script.asked[1:] == [("watch", "7"), ("watch", "9"), ("watch", "20")]


@pytest.mark.parametrize(
    "lost",
    [[failed(410, "Expired")], [Gone("410 Expired")], [line("MODIFIED", "8"), Gone("410")]],
    ids=["said in the watch", "said in the answer", "said after changes"],
)
async def test_after_410_the_objects_are_listed_again_behind_the_last_version_that_was_seen(lost):
    """The list says up to which version everything had been told, and why that was not enough."""
    script, delivered, _ = await reflected(page("7", "a"), lost, page("90", "b"))
    again = delivered[-1]
    seen = "8" if len(lost) == 2 else "7"
    assert (again.before, again.version, names(again)) == (seen, "90", ["b"])
    assert "410" in again.reason
    assert script.asked[-1] == ("watch", "90")


async def test_a_page_that_is_gone_begins_the_list_anew():
    """A list that took longer than the server remembers is no list; the version before it stays."""
    script, delivered, _ = await reflected(
        page("7", "a", after="more"), Gone("410 Expired"), page("8", "a")
    )
    assert script.asked == [("list", ""), ("list", "more"), ("list", ""), ("watch", "8")]
    assert [(one.version, one.before) for one in delivered] == [("8", "")]


@pytest.mark.parametrize(
    "trouble",
    [
        Unavailable("500 internal error"),
        Unavailable("ReadTimeout"),
        Unavailable("ConnectError: refused"),
    ],
)
async def test_a_server_that_is_away_is_asked_again_where_the_watch_was(trouble):
    """A 500, a silent watch and a lost connection lose nothing: the watch goes on behind its last word."""
    script, delivered, waits = await reflected(
        page("7"), [line("ADDED", "8"), trouble], [line("MODIFIED", "9")]
    )
    assert script.asked[1:] == [("watch", "7"), ("watch", "8"), ("watch", "9")]
    assert len(delivered) == 3
    assert waits == [0.2]


async def test_waits_grow_while_nothing_works_and_begin_anew_afterwards():
    """Each attempt in vain waits twice as long; a word from the server ends that."""
    away = [Unavailable("503")]
    _, _, waits = await reflected(page("7"), away, away, away, [line("ADDED", "8")], away)
    assert waits == [0.2, 0.4, 0.8, 0.2]


async def test_a_server_that_asks_to_be_left_alone_is_left_alone_for_as_long():
    """429 with Retry-After counts, for lists and watches alike."""
    busy = Unavailable("429 Too Many Requests", 3.0)
    script, delivered, waits = await reflected(busy, page("7"), [busy])
    assert waits == [3.0, 3.0]
    assert len(delivered) == 1
    assert script.asked == [("list", ""), ("list", ""), ("watch", "7"), ("watch", "7")]


async def test_an_object_that_cannot_be_read_stops_its_kind_and_no_other_way_is_taken():
    """Passing over it would make it look deleted; so the kind is asked for again until it can be read."""
    broken = json.dumps({"metadata": {"resourceVersion": "7"}, "items": [{"spec": {}}]}).encode()
    _, delivered, waits = await reflected(broken, page("8", "a"))
    assert waits == [0.2]
    assert [one.version for one in delivered] == ["8"]


async def test_a_list_can_be_asked_for_while_the_watch_is_silent():
    """The watch is left where it is, and the list says why it was made."""
    script = Script(page("7", "a"))
    delivered = asyncio.Queue()
    reflector = Reflector(PODS, script, delivered.put)
    running = asyncio.create_task(reflector.run())
    await delivered.get()
    await script.done.wait()
    script._answers.append(page("9", "a"))
    reflector.list_again("node n1 came back")
    again = await delivered.get()
    running.cancel()
    await asyncio.wait({running})
    assert (again.before, again.version, again.reason) == ("7", "9", "node n1 came back")
