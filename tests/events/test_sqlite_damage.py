"""An SQLite file that is not what it was: damage is told as damage, whatever the library makes of it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from events import errors
from events.streams import open_streams

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return where the file lies."""
    return tmp_path / "log.db"


def test_a_file_that_is_no_database_is_damaged(path: Path) -> None:
    """It is not overwritten."""
    path.write_bytes(b"no database at all" * 1000)

    async def use() -> None:
        async with open_streams(f"sqlite://{path}") as streams:
            with pytest.raises(errors.LogDamaged):
                await streams.log.check()
            with pytest.raises(errors.LogDamaged):
                await streams.log.create()

    asyncio.run(use())
    assert path.read_bytes().startswith(b"no database")


def test_a_schema_that_is_no_text_is_damage(path: Path) -> None:
    """SQLite quotes it in its error, which Python cannot read then: still the file is damaged, for readers and writers."""

    async def make() -> None:
        async with open_streams(f"sqlite://{path}") as streams:
            await streams.log.create()

    async def use() -> None:
        async with open_streams(f"sqlite://{path}") as streams:
            with pytest.raises(errors.LogDamaged):
                await streams.log.check()
            with pytest.raises(errors.LogDamaged):
                await streams.log.create()
            with pytest.raises(errors.LogDamaged):
                await streams.log.append(b"{}")

    asyncio.run(make())
    data = path.read_bytes()
    assert data.count(b"CREATE TABLE log") == 1
    path.write_bytes(data.replace(b"CREATE TABLE log", b"CREATE \xda\xffBLE log"))
    asyncio.run(use())
