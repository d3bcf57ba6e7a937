"""The streams that keep events: the log (the truth) and the inbox (proposals), on Kafka, on SQLite and in memory."""

from events.streams.leadership import Leadership
from events.streams.opening import open_log, open_streams
from events.streams.protocols import EventLog, Heartbeat, Inbox, Record, Streams

__all__ = [
    "EventLog",
    "Heartbeat",
    "Inbox",
    "Leadership",
    "Record",
    "Streams",
    "open_log",
    "open_streams",
]
