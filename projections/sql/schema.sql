-- The read model of one log. Every row of a temporal table holds from (from_seq, from_time), included, to (to_seq, to_time), excluded;
-- a row that still holds has 9223372036854775807 in both. Times are milliseconds since the epoch, UTC; amounts are JSON objects in
-- base units. As of a moment:  WHERE from_seq <= :seq AND to_seq > :seq

-- name: create_schema()#
CREATE TABLE position (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    schema_version INTEGER NOT NULL,
    log_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    time INTEGER NOT NULL,
    head TEXT NOT NULL
);
CREATE TABLE kept_state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    head TEXT NOT NULL,
    state BLOB NOT NULL,
    fold BLOB NOT NULL
);
CREATE TABLE frames (
    frame INTEGER PRIMARY KEY, time INTEGER NOT NULL, seq INTEGER NOT NULL
);
CREATE TABLE configurations (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    format TEXT NOT NULL, configuration TEXT NOT NULL, document TEXT NOT NULL, proposal TEXT NOT NULL,
    source TEXT NOT NULL, actor TEXT NOT NULL, message TEXT NOT NULL
);
CREATE TABLE queues (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    queue TEXT NOT NULL, parent TEXT, leaf INTEGER NOT NULL, dynamic INTEGER NOT NULL, draining INTEGER NOT NULL,
    guaranteed TEXT NOT NULL, maximum TEXT NOT NULL
);
CREATE TABLE queue_usage (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    queue TEXT NOT NULL, usage TEXT NOT NULL, pending TEXT NOT NULL, pending_asks INTEGER NOT NULL
);
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    node TEXT NOT NULL, capacity TEXT NOT NULL, labels TEXT NOT NULL, schedulable INTEGER NOT NULL
);
CREATE TABLE applications (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    application TEXT NOT NULL, queue TEXT NOT NULL, user TEXT NOT NULL, created INTEGER NOT NULL
);
CREATE TABLE asks (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    ask TEXT NOT NULL, application TEXT NOT NULL, queue TEXT NOT NULL, resources TEXT NOT NULL, priority INTEGER NOT NULL,
    created INTEGER NOT NULL, outcome TEXT NOT NULL
);
CREATE TABLE allocations (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    allocation TEXT NOT NULL, application TEXT NOT NULL, queue TEXT NOT NULL, node TEXT, resources TEXT NOT NULL,
    priority INTEGER NOT NULL, created INTEGER NOT NULL, bound INTEGER NOT NULL, eviction_requested INTEGER NOT NULL, victim_of TEXT NOT NULL,
    quota_of TEXT NOT NULL, outcome TEXT NOT NULL
);
CREATE TABLE reservations (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    ask TEXT NOT NULL, node TEXT NOT NULL
);
CREATE TABLE pauses (
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    application TEXT NOT NULL, queue TEXT NOT NULL, until INTEGER NOT NULL, asks INTEGER NOT NULL, threshold INTEGER NOT NULL,
    outcome TEXT NOT NULL
);
CREATE TABLE preemptions (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, due INTEGER, ask TEXT NOT NULL, application TEXT NOT NULL, queue TEXT NOT NULL,
    priority INTEGER NOT NULL, node TEXT, algorithm TEXT NOT NULL, cut INTEGER NOT NULL, waited_ms INTEGER NOT NULL
);
CREATE TABLE victims (
    seq INTEGER NOT NULL, number INTEGER NOT NULL, time INTEGER NOT NULL, allocation TEXT NOT NULL, application TEXT NOT NULL,
    queue TEXT NOT NULL, node TEXT, resources TEXT NOT NULL, priority INTEGER NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL,
    for_ask TEXT, for_queue TEXT NOT NULL, kind TEXT NOT NULL,
    PRIMARY KEY (seq, number)
) WITHOUT ROWID;
CREATE TABLE quota_actions (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, due INTEGER, queue TEXT NOT NULL, action TEXT NOT NULL, at INTEGER,
    reason TEXT NOT NULL, target TEXT NOT NULL, unmet TEXT NOT NULL, victims INTEGER NOT NULL
);
CREATE TABLE rejected (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, code TEXT NOT NULL, reason TEXT NOT NULL, proposal TEXT NOT NULL,
    source TEXT NOT NULL, position INTEGER NOT NULL, type TEXT NOT NULL, input TEXT NOT NULL, actor TEXT NOT NULL
);
CREATE TABLE waits (
    bucket INTEGER NOT NULL, queue TEXT NOT NULL, outcome TEXT NOT NULL, asks INTEGER NOT NULL, waited_ms INTEGER NOT NULL,
    longest_ms INTEGER NOT NULL, PRIMARY KEY (bucket, queue, outcome)
) WITHOUT ROWID;
CREATE TABLE victim_counts (
    bucket INTEGER NOT NULL, kind TEXT NOT NULL, queue TEXT NOT NULL, reason TEXT NOT NULL, victims INTEGER NOT NULL,
    PRIMARY KEY (bucket, kind, queue, reason)
) WITHOUT ROWID;
CREATE TABLE failures (
    seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, ask TEXT NOT NULL, queue TEXT NOT NULL, reason TEXT NOT NULL, cut INTEGER NOT NULL
);

-- name: create_indices()#
CREATE INDEX frame_by_time ON frames (time, seq);
CREATE INDEX queue_by_name ON queues (queue, from_seq);
CREATE INDEX usage_by_queue ON queue_usage (queue, from_seq);
CREATE INDEX usage_by_seq ON queue_usage (from_seq);
CREATE INDEX node_by_name ON nodes (node, from_seq);
CREATE INDEX application_by_id ON applications (application, from_seq);
CREATE INDEX ask_by_id ON asks (ask, from_seq);
CREATE INDEX ask_by_application ON asks (application, from_seq);
CREATE INDEX ask_by_end ON asks (to_seq);
CREATE INDEX ask_waiting ON asks (created, ask) WHERE to_seq = 9223372036854775807;
CREATE INDEX allocation_by_id ON allocations (allocation, from_seq);
CREATE INDEX allocation_by_application ON allocations (application, from_seq);
CREATE INDEX reservation_by_ask ON reservations (ask, from_seq);
CREATE INDEX pause_by_application ON pauses (application, from_seq);
CREATE INDEX pause_by_queue ON pauses (queue, from_seq);
CREATE INDEX pause_by_seq ON pauses (from_seq);
-- Whatever began before a window and reaches into it: among those with so many digits of length, only the latest can.
CREATE INDEX pause_by_length ON pauses (length(to_seq - from_seq), from_seq);
CREATE INDEX preemption_by_queue ON preemptions (queue, seq);
CREATE INDEX victim_by_allocation ON victims (allocation, seq);
CREATE INDEX victim_by_queue ON victims (queue, seq);
CREATE INDEX failure_by_ask ON failures (ask, seq);

-- name: get_position()^
SELECT schema_version, log_id, head FROM position WHERE only = 1;

-- name: set_position(schema_version, log_id, seq, time, head)!
INSERT OR REPLACE INTO position (only, schema_version, log_id, seq, time, head)
VALUES (1, :schema_version, :log_id, :seq, :time, :head);

-- name: get_kept_state()^
SELECT head, state, fold FROM kept_state WHERE only = 1;

-- name: set_kept_state(head, state, fold)!
INSERT OR REPLACE INTO kept_state (only, head, state, fold) VALUES (1, :head, :state, :fold);
