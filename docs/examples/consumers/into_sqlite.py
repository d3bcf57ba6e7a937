"""Every event into SQLite exactly once, whatever is killed when: python into_sqlite.py localhost:9092 cluster events.db

Events and place are one transaction, so there is never one without the other.
"""

import asyncio
import json
import sqlite3
import sys

from aiokafka import AIOKafkaConsumer, TopicPartition
from steps import Steps

SCHEMA = """
CREATE TABLE IF NOT EXISTS events (seq INTEGER PRIMARY KEY, time INTEGER, type TEXT, event TEXT);
CREATE TABLE IF NOT EXISTS place (log TEXT PRIMARY KEY, place TEXT);
"""


async def main(bootstrap, name, path, partition=0):
    database = sqlite3.connect(path)
    database.executescript(SCHEMA)
    log = TopicPartition(f"{name}-log", partition)
    found = database.execute("SELECT place FROM place WHERE log = ?", (str(log),)).fetchone()
    steps = Steps(json.loads(found[0])) if found else Steps()
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        enable_auto_commit=False,  # the place is in the database and nowhere else
        auto_offset_reset="none",  # a topic that lost its beginning is an error
    )
    await consumer.start()
    try:
        consumer.assign([log])
        consumer.seek(log, steps.place[0] + 1)
        async for record in consumer:
            step = steps.take(record.offset, record.value)
            if step is not None:
                keep(database, str(log), step, steps.place)
    finally:
        await consumer.stop()


def keep(database, log, step, place):
    """Write the events of a step and the place behind it together."""
    time, events = step
    rows = [(event["seq"], time, event["type"], json.dumps(event)) for event in events]
    with database:  # commits, or writes nothing at all
        database.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
        database.execute("INSERT OR REPLACE INTO place VALUES (?, ?)", (log, json.dumps(place)))
    print(rows[-1][0] if rows else "-", flush=True)


asyncio.run(main(*sys.argv[1:]))
