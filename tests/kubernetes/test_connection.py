"""How the answers of an API server are understood, over HTTP, from a server that is a script."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest
import yaml

from evsched.agents.kubernetes.connection import ConfigError, connected
from evsched.agents.kubernetes.objects import NODES, PODS
from evsched.agents.kubernetes.reflecting import Gone, Unavailable


def answer(status, body=b"{}", **headers):
    """Return an answer as it goes over the line."""
    named = {"Content_Length": str(len(body)), "Content_Type": "application/json", **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items())
    return f"HTTP/1.1 {status} Said\r\n{lines}\r\n".encode() + body


def stream(*chunks):
    """Return the beginning of an answer that goes on, with these chunks."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks)


LAST = b"0\r\n\r\n"


@asynccontextmanager
async def api(folder, *answers, silent_s=90.0):
    """Serve these answers, one a request; yield a source that asks for them, and the paths that it asked for."""
    left, asked, handled = list(answers), [], set()

    async def accept(reader, writer):
        handled.add(asyncio.current_task())
        while line := await reader.readline():
            asked.append(line.split()[1].decode())
            while (await reader.readline()).strip():
                pass
            said = left.pop(0)
            writer.write(said)
            if said.startswith(stream()) and not said.endswith(LAST):
                # Neither more nor an end: silence, until the other side has had enough.
                await reader.read()
                break
            if b"half" in said:
                break
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "word"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    try:
        async with connected(path, silent_s=silent_s) as source:
            yield source, asked
    finally:
        server.close()
        if handled:
            await asyncio.wait(handled)


async def heard(source, version="7"):
    """Return the lines of a watch."""
    return [line async for line in source.watch(PODS, version)]


async def test_lists_are_asked_for_in_pages(tmp_path):
    """The first page has a limit, the next names where the one before ended."""
    async with api(tmp_path, answer(200, b"one"), answer(200, b"two")) as (source, asked):
        assert await source.page(NODES, "") == b"one"
        assert await source.page(NODES, "mark") == b"two"
    assert asked == ["/api/v1/nodes?limit=500", "/api/v1/nodes?limit=500&continue=mark"]


async def test_a_watch_asks_for_bookmarks_and_is_read_line_by_line(tmp_path):
    """Lines come as they please: several in a chunk, or one in several."""
    said = stream(b'{"a":1}\n{"b"', b":2}\n", b"\n") + LAST
    async with api(tmp_path, said) as (source, asked):
        assert await heard(source) == [b'{"a":1}', b'{"b":2}']
    (path,) = asked
    for part in ("watch=true", "resourceVersion=7", "allowWatchBookmarks=true", "timeoutSeconds="):
        assert part in path


TOO_LARGE = b'{"message":"Too large resource version: 9, current: 7"}'
TROUBLE = {
    "410 is a place that is gone": (answer(410, b'{"reason":"Expired"}'), Gone, None),
    "a version from the future is one too": (answer(504, TOO_LARGE), Gone, None),
    "429 says how long to wait": (answer(429, Retry_After="7"), Unavailable, 7.0),
    "429 may say nothing": (answer(429), Unavailable, None),
    "503 may say how long as well": (answer(503, Retry_After="2"), Unavailable, 2.0),
    "500 passes": (answer(500), Unavailable, None),
    "a missing right may be given later": (answer(403), Unavailable, None),
    "a kind that is not there may come later": (answer(404), Unavailable, None),
}


@pytest.mark.parametrize(("said", "kind", "wait"), TROUBLE.values(), ids=TROUBLE.keys())
async def test_what_a_refusal_means(tmp_path, said, kind, wait):
    """For lists and for watches alike; the server's words are in the reason."""
    async with api(tmp_path, said, said) as (source, _):
        with pytest.raises(kind) as listing:
            await source.page(PODS, "")
        with pytest.raises(kind):
            await heard(source)
    assert getattr(listing.value, "retry_after_s", None) == wait
    assert listing.value.reason.startswith(said.split()[1].decode())


async def test_a_watch_that_is_silent_is_given_up(tmp_path):
    """However much was heard before: a connection without a word counts as dead."""
    async with api(tmp_path, stream(b'{"a":1}\n'), silent_s=0.05) as (source, _):
        with pytest.raises(Unavailable, match="ReadTimeout"):
            await heard(source)


async def test_a_connection_that_ends_in_the_middle_is_trouble_that_passes(tmp_path):
    """The server has promised more than it sent."""
    broken = answer(200, b"half", Content_Length="9")
    async with api(tmp_path, broken) as (source, _):
        with pytest.raises(Unavailable):
            await source.page(PODS, "")


async def test_a_kubeconfig_that_is_not_there_is_said(tmp_path):
    """Whoever called is at fault, and is told the file."""
    with pytest.raises(ConfigError, match=r"nowhere\.yaml"):
        async with connected(tmp_path / "nowhere.yaml"):
            pass
