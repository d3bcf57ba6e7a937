-- The read model for people and programs that know SQL: what still holds ends with NULL, times are text of ISO 8601 in UTC,
-- amounts have a row for each resource. Rows that held for no time are left out. The comments are their reference
-- (`projections/catalogue.py`): column, type, kind, meaning, what NULL means; `like TABLE:` takes over what a table says of columns.
-- DuckDB parses a view and writes it anew before SQLite sees it. So each JOIN has its ON, which is no bare truth value; there is
-- EXISTS and no IN with a SELECT; and a UNION is a view of its own.

-- name: create_views()#
CREATE VIEW v_configurations AS -- each configuration, as long as it was in force
-- version INTEGER number: 1 for the first of the log
-- like configurations: format, actor, source, message, proposal, document, configuration
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT row_number() OVER (ORDER BY from_seq) AS version, format, actor, source, message, proposal, document, configuration,
    from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM configurations;
CREATE VIEW v_queues AS -- each queue, as long as its limits stayed the same
-- like queues: queue, parent, leaf, dynamic, draining, max_applications, weight_nano
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT queue, parent, leaf, dynamic, draining, max_applications, weight_nano,
    from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM queues WHERE to_time > from_time;
CREATE VIEW v_queue_limits AS -- each limit of a queue for a resource, as long as the limits of the queue stayed the same
-- like queues: queue
-- resource TEXT id: the resource; with Kueue FLAVOR/RESOURCE
-- guaranteed INTEGER amount: its guarantee. NULL: none
-- maximum INTEGER amount: its maximum. NULL: unlimited, or the configuration is Kueue's
-- nominal INTEGER amount: its own nominal quota. NULL: none
-- borrowing_limit INTEGER amount: most that it borrows. NULL: unlimited
-- lending_limit INTEGER amount: most that it lends. NULL: unlimited
-- quota INTEGER amount: of a cohort, with what those below it lend. NULL: it is no cohort, or has none
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT q.queue, r.resource,
    (SELECT value FROM json_each(q.guaranteed) WHERE key = r.resource) AS guaranteed,
    (SELECT value FROM json_each(q.maximum) WHERE key = r.resource) AS maximum,
    (SELECT value FROM json_each(q.nominal) WHERE key = r.resource) AS nominal,
    (SELECT value FROM json_each(q.borrowing_limit) WHERE key = r.resource) AS borrowing_limit,
    (SELECT value FROM json_each(q.lending_limit) WHERE key = r.resource) AS lending_limit,
    (SELECT value FROM json_each(q.quota) WHERE key = r.resource) AS quota,
    q.from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', q.from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(q.to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(q.to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM queues AS q JOIN resource_types AS r ON 1 = 1
WHERE q.to_time > q.from_time AND (
    EXISTS (SELECT 1 FROM json_each(q.guaranteed) WHERE key = r.resource) OR EXISTS (SELECT 1 FROM json_each(q.maximum) WHERE key = r.resource)
    OR EXISTS (SELECT 1 FROM json_each(q.nominal) WHERE key = r.resource) OR EXISTS (SELECT 1 FROM json_each(q.quota) WHERE key = r.resource)
);
CREATE VIEW v_queue_usage AS -- what a leaf used of a resource and what waited for it, as long as its amounts stayed the same
-- like queue_usage: queue
-- resource TEXT id: the resource
-- usage INTEGER amount: what ran, what was leaving included
-- pending INTEGER amount: what waited
-- preempting INTEGER amount: what of the usage was being evicted
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT u.queue, r.resource,
    coalesce((SELECT value FROM json_each(u.usage) WHERE key = r.resource), 0) AS usage,
    coalesce((SELECT value FROM json_each(u.pending) WHERE key = r.resource), 0) AS pending,
    coalesce((SELECT value FROM json_each(u.preempting) WHERE key = r.resource), 0) AS preempting,
    u.from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', u.from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(u.to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(u.to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM queue_usage AS u JOIN resource_types AS r ON 1 = 1
WHERE u.to_time > u.from_time AND (
    EXISTS (SELECT 1 FROM json_each(u.usage) WHERE key = r.resource) OR EXISTS (SELECT 1 FROM json_each(u.pending) WHERE key = r.resource)
);
CREATE VIEW v_queue_sums AS -- what a queue and all below it have, as long as it stayed the same: `v_queue_totals` with all resources in one row
-- like queue_totals: queue, usage, pending, from_time, to_time
SELECT queue, usage, pending, from_time, to_time FROM queue_usage
UNION ALL
SELECT queue, usage, pending, from_time, to_time FROM queue_totals;
CREATE VIEW v_queue_totals AS -- what a queue and all below it used of a resource and what waited, as long as its amounts stayed the same
-- queue TEXT id: the queue
-- resource TEXT id: the resource
-- usage INTEGER amount: what ran there and below
-- pending INTEGER amount: what waited there and below
-- from_time TEXT timestamp: since when it held
-- to_time TEXT timestamp: until when it held. NULL: it still holds
-- from_ms INTEGER time: since when it held
-- to_ms INTEGER time: until when it held. NULL: it still holds
SELECT u.queue, r.resource,
    coalesce((SELECT value FROM json_each(u.usage) WHERE key = r.resource), 0) AS usage,
    coalesce((SELECT value FROM json_each(u.pending) WHERE key = r.resource), 0) AS pending,
    strftime('%Y-%m-%dT%H:%M:%fZ', u.from_time / 1000.0, 'unixepoch') AS from_time,
    strftime('%Y-%m-%dT%H:%M:%fZ', nullif(u.to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time,
    u.from_time AS from_ms, nullif(u.to_time, 9223372036854775807) AS to_ms
FROM v_queue_sums AS u JOIN resource_types AS r ON 1 = 1
WHERE u.to_time > u.from_time AND (
    EXISTS (SELECT 1 FROM json_each(u.usage) WHERE key = r.resource) OR EXISTS (SELECT 1 FROM json_each(u.pending) WHERE key = r.resource)
);
CREATE VIEW v_user_limits AS -- each limit on users or groups in a queue
-- like user_limits: queue, kind, name, max_applications
-- resource TEXT id: the resource. NULL: only applications are limited
-- maximum INTEGER amount: most that each may use of it. NULL: not limited
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT u.queue, u.kind, u.name, u.max_applications, r.key AS resource, r.value AS maximum,
    u.from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', u.from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(u.to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(u.to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM user_limits AS u LEFT JOIN json_each(u.maximum) AS r ON 1 = 1 WHERE u.to_time > u.from_time;
CREATE VIEW v_nodes AS -- each node, as long as it stayed the same
-- like nodes: node, labels, schedulable
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT node, labels, schedulable,
    from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM nodes WHERE to_time > from_time;
CREATE VIEW v_node_capacity AS -- what each node had of a resource
-- like nodes: node
-- resource TEXT id: the resource
-- amount INTEGER amount: what it has
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT n.node, r.key AS resource, r.value AS amount,
    n.from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', n.from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(n.to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(n.to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM nodes AS n JOIN json_each(n.capacity) AS r ON 1 = 1 WHERE n.to_time > n.from_time;
CREATE VIEW v_applications AS -- each application
-- like applications: application, queue, user, groups
-- created TEXT timestamp: when it was created, or its oldest ask
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT application, queue, user, groups, strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') AS created,
    from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM applications WHERE to_time > from_time;
CREATE VIEW v_asks AS -- each ask, as long as it waited; one that was bound at once is there, too
-- like asks: ask, application, queue, priority, required_node, outcome
-- created TEXT timestamp: when its owner created it
-- waited_ms INTEGER duration: from its creation until it was bound or withdrawn. NULL: it still waits
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT ask, application, queue, priority, required_node, outcome, strftime('%Y-%m-%dT%H:%M:%fZ', created / 1000.0, 'unixepoch') AS created,
    nullif(to_time, 9223372036854775807) - created AS waited_ms,
    from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM asks;
CREATE VIEW v_ask_resources AS -- what each ask asked for of a resource
-- like asks: ask, application, queue
-- resource TEXT id: the resource
-- amount INTEGER amount: how much of it
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT a.ask, a.application, a.queue, r.key AS resource, r.value AS amount,
    a.from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', a.from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(a.to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(a.to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM asks AS a JOIN json_each(a.resources) AS r ON 1 = 1;
CREATE VIEW v_allocations AS -- each allocation, one row from its beginning to its end
-- like allocations: allocation, application, queue
-- user TEXT text: whose it is; empty: its application was never placed
-- like allocations: node, priority
-- created TEXT timestamp: when its ask was created
-- bound TEXT timestamp: when it was bound
-- eviction_requested TEXT timestamp: when its eviction was requested. NULL: it was not, or it was called off
-- like allocations: victim_of, quota_of, outcome
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT a.allocation, a.application, a.queue, coalesce((
        SELECT p.user FROM applications AS p WHERE p.application = a.application AND p.from_seq <= a.from_seq ORDER BY p.from_seq DESC LIMIT 1
    ), '') AS user,
    a.node, a.priority, strftime('%Y-%m-%dT%H:%M:%fZ', a.created / 1000.0, 'unixepoch') AS created, strftime('%Y-%m-%dT%H:%M:%fZ', a.bound / 1000.0, 'unixepoch') AS bound,
    strftime('%Y-%m-%dT%H:%M:%fZ', nullif(a.eviction_requested, 0) / 1000.0, 'unixepoch') AS eviction_requested, a.victim_of, a.quota_of, a.outcome,
    a.first_seq AS from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', (SELECT f.from_time FROM allocations AS f WHERE f.allocation = a.allocation AND f.from_seq = a.first_seq) / 1000.0, 'unixepoch') AS from_time,
    nullif(a.to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(a.to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM (
    SELECT a.*, (
        SELECT max(b.from_seq) FROM allocations AS b WHERE b.allocation = a.allocation AND b.from_seq <= a.from_seq AND NOT EXISTS (
            SELECT 1 FROM allocations AS c WHERE c.allocation = b.allocation AND c.to_seq = b.from_seq AND c.outcome = ''
        )
    ) AS first_seq
    FROM allocations AS a WHERE a.outcome <> '' OR a.to_seq = 9223372036854775807
) AS a;
CREATE VIEW v_allocation_resources AS -- what an allocation used of a resource, while it stayed the same; a row for each part of its life
-- like allocations: allocation, application, queue, node
-- resource TEXT id: the resource
-- amount INTEGER amount: how much of it
-- from_ms INTEGER time: since when
-- to_ms INTEGER time: until when. NULL: it still does
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT a.allocation, a.application, a.queue, a.node, r.key AS resource, r.value AS amount, a.from_time AS from_ms,
    nullif(a.to_time, 9223372036854775807) AS to_ms,
    a.from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', a.from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(a.to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(a.to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM allocations AS a JOIN json_each(a.resources) AS r ON 1 = 1 WHERE a.to_time > a.from_time;
CREATE VIEW v_reservations AS -- each node that was kept for an ask
-- like reservations: ask, node
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT ask, node,
    from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM reservations WHERE to_time > from_time;
CREATE VIEW v_timers AS -- each timer, as long as it was armed
-- like timers: timer, kind, subject, cause
-- due TEXT timestamp: when it fires
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT timer, kind, subject, cause, strftime('%Y-%m-%dT%H:%M:%fZ', due / 1000.0, 'unixepoch') AS due,
    from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM timers WHERE to_time > from_time;
CREATE VIEW v_pauses AS -- each pause of an application
-- like pauses: application, queue, asks, threshold, outcome
-- until TEXT timestamp: when the pause was to end
-- from_seq INTEGER seq: of the event with which it began to hold
-- from_time TEXT timestamp: since when it held
-- to_seq INTEGER seq: of the event with which it ended. NULL: it still holds
-- to_time TEXT timestamp: until when it held. NULL: it still holds
SELECT application, queue, asks, threshold, outcome, strftime('%Y-%m-%dT%H:%M:%fZ', until / 1000.0, 'unixepoch') AS until,
    from_seq, strftime('%Y-%m-%dT%H:%M:%fZ', from_time / 1000.0, 'unixepoch') AS from_time,
    nullif(to_seq, 9223372036854775807) AS to_seq, strftime('%Y-%m-%dT%H:%M:%fZ', nullif(to_time, 9223372036854775807) / 1000.0, 'unixepoch') AS to_time
FROM pauses WHERE to_time > from_time;
CREATE VIEW v_preemptions AS -- each preemption that was decided
-- like preemptions: seq
-- time TEXT timestamp: of the decision
-- due TEXT timestamp: when the timer behind it was due. NULL: no timer was
-- like preemptions: ask, application, queue, priority, node, algorithm, cut, waited_ms
SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch') AS time, strftime('%Y-%m-%dT%H:%M:%fZ', due / 1000.0, 'unixepoch') AS due, ask, application, queue, priority, node, algorithm, cut, waited_ms FROM preemptions;
CREATE VIEW v_victims AS -- each allocation whose eviction was decided
-- like victims: seq, number
-- time TEXT timestamp: of the decision
-- like victims: allocation, application, queue, node, priority, reason, message, for_ask, for_queue, kind
SELECT seq, number, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch') AS time, allocation, application, queue, node, priority, reason, message, for_ask, for_queue, kind FROM victims;
CREATE VIEW v_victim_resources AS -- what each victim used of a resource
-- like victims: seq, number, allocation, queue, for_queue, kind
-- resource TEXT id: the resource
-- amount INTEGER amount: how much of it
SELECT v.seq, v.number, v.allocation, v.queue, v.for_queue, v.kind, r.key AS resource, r.value AS amount
FROM victims AS v JOIN json_each(v.resources) AS r ON 1 = 1;
CREATE VIEW v_quota_actions AS -- each act of quota enforcement
-- like quota_actions: seq
-- time TEXT timestamp: of the event
-- due TEXT timestamp: when the timer behind it was due. NULL: no timer was
-- like quota_actions: queue, action
-- at TEXT timestamp: when a scheduled one will fire. NULL: nothing was scheduled
-- like quota_actions: reason, target, unmet, victims
SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch') AS time, strftime('%Y-%m-%dT%H:%M:%fZ', due / 1000.0, 'unixepoch') AS due, queue, action, strftime('%Y-%m-%dT%H:%M:%fZ', "at" / 1000.0, 'unixepoch') AS "at", reason, target, unmet, victims FROM quota_actions;
CREATE VIEW v_rejected AS -- each proposal that was refused
-- like rejected: seq
-- time TEXT timestamp: of the refusal
-- like rejected: code, type, reason, proposal, source, actor, position, input
SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch') AS time, code, type, reason, proposal, source, actor, position, input FROM rejected;
CREATE VIEW v_failures AS -- each preemption that was tried in vain
-- like failures: seq
-- time TEXT timestamp: of the event
-- like failures: ask, queue, reason, cut
SELECT seq, strftime('%Y-%m-%dT%H:%M:%fZ', time / 1000.0, 'unixepoch') AS time, ask, queue, reason, cut FROM failures;
