-- What held at one moment. `seq` is the last event to be counted in.

-- name: queues_at(seq)
SELECT queue, parent, leaf, dynamic, draining, guaranteed, maximum FROM queues WHERE from_seq <= :seq AND to_seq > :seq ORDER BY queue;

-- name: nodes_at(seq)
SELECT node, capacity, labels, schedulable FROM nodes WHERE from_seq <= :seq AND to_seq > :seq ORDER BY node;

-- name: applications_at(seq)
SELECT application, queue, user, created FROM applications WHERE from_seq <= :seq AND to_seq > :seq ORDER BY application;

-- name: asks_at(seq)
SELECT ask, application, queue, resources, priority, created FROM asks WHERE from_seq <= :seq AND to_seq > :seq ORDER BY ask;

-- name: allocations_at(seq)
SELECT allocation, application, queue, node, resources, priority, created, bound, eviction_requested, victim_of, quota_of
FROM allocations WHERE from_seq <= :seq AND to_seq > :seq ORDER BY allocation;

-- name: reservations_at(seq)
SELECT ask, node FROM reservations WHERE from_seq <= :seq AND to_seq > :seq ORDER BY ask;

-- name: pauses_at(seq)
SELECT application, queue, until, from_seq FROM pauses WHERE from_seq <= :seq AND to_seq > :seq ORDER BY application;

-- name: configuration_at(seq)
SELECT format, configuration FROM configurations WHERE from_seq <= :seq AND to_seq > :seq;

-- name: seq_at_time(time)$
SELECT coalesce((SELECT seq FROM frames WHERE time <= :time ORDER BY time DESC, seq DESC LIMIT 1), 0);

-- name: belongs_at(name, seq)^
SELECT application, queue FROM (
    SELECT application, queue, from_seq FROM asks WHERE ask = :name AND from_seq <= :seq
    UNION ALL
    SELECT application, queue, from_seq FROM allocations WHERE allocation = :name AND from_seq <= :seq
) ORDER BY from_seq DESC LIMIT 1;

-- name: document_at(seq)$
SELECT document FROM configurations WHERE from_seq <= :seq AND to_seq > :seq;

-- name: queue_of_ever(name)$
SELECT queue FROM (
    SELECT queue FROM asks WHERE ask = :name
    UNION ALL SELECT queue FROM allocations WHERE allocation = :name
    UNION ALL SELECT queue FROM applications WHERE application = :name
) LIMIT 1;

-- name: is_queue_ever(name)$
SELECT EXISTS (SELECT 1 FROM queues WHERE queue = :name);

-- name: configured_at(seq)$
SELECT coalesce(max(from_seq), 0) FROM configurations WHERE from_seq <= :seq;

-- What the rows of one moment are made of (`replays/history/tabled.py`). `fork` is one of the places of
-- `projections.temporal.places`; keys come in their order, behind `after`.

-- name: end_seq()$
SELECT seq FROM position;

-- name: frame_of(seq)^
SELECT time FROM frames WHERE seq >= :seq ORDER BY seq LIMIT 1;

-- name: resource_order()
SELECT resource, number FROM resource_types ORDER BY number;

-- name: queue_rows(seq)
SELECT queue, parent, leaf, dynamic, draining, guaranteed, maximum, nominal, borrowing_limit, lending_limit, quota
FROM queues WHERE from_seq <= :seq AND to_seq > :seq ORDER BY place, queue;

-- What leaves have is written down at the end of each step; within one it is counted on from the last.
-- name: step_before(seq)$
SELECT coalesce((SELECT seq FROM frames WHERE seq <= :seq ORDER BY seq DESC LIMIT 1), 0);

-- name: leaf_usage(seq)
SELECT q.queue, u.usage, u.pending, u.preempting, u.pending_asks, u.allocations, u.applications
FROM (SELECT DISTINCT queue FROM queues WHERE from_seq <= :seq AND to_seq > :seq AND leaf = 1) AS q
JOIN queue_usage AS u ON u.id = (
    SELECT b.id FROM queue_usage AS b WHERE b.queue = q.queue AND b.from_seq <= :seq ORDER BY b.from_seq DESC LIMIT 1
) AND u.to_seq > :seq;

-- What began between a step and a moment lies at the places of the moment, what ended then at those of the step.
-- name: asks_since(step, seq, now, before)
SELECT queue, resources, 1 FROM asks WHERE fork IN (SELECT value FROM json_each(:now)) AND from_seq > :step AND from_seq <= :seq AND to_seq > :seq
UNION ALL
SELECT queue, resources, -1 FROM asks WHERE fork IN (SELECT value FROM json_each(:before)) AND to_seq > :step AND to_seq <= :seq AND from_seq <= :step;

-- name: allocations_since(step, seq, now, before)
SELECT queue, resources, 1, eviction_requested > 0 FROM allocations
WHERE fork IN (SELECT value FROM json_each(:now)) AND from_seq > :step AND from_seq <= :seq AND to_seq > :seq
UNION ALL
SELECT queue, resources, -1, eviction_requested > 0 FROM allocations
WHERE fork IN (SELECT value FROM json_each(:before)) AND to_seq > :step AND to_seq <= :seq AND from_seq <= :step;

-- name: applications_since(step, seq, now, before)
SELECT queue, 1 FROM applications WHERE fork IN (SELECT value FROM json_each(:now)) AND from_seq > :step AND from_seq <= :seq AND to_seq > :seq
UNION ALL
SELECT queue, -1 FROM applications WHERE fork IN (SELECT value FROM json_each(:before)) AND to_seq > :step AND to_seq <= :seq AND from_seq <= :step;

-- How many hold of those that lie behind the moment, or before it; `most` are counted at most.
-- name: applications_behind(fork, seq, most)$
SELECT count(*) FROM (SELECT 1 FROM applications WHERE fork = :fork AND from_seq <= :seq LIMIT :most);
-- name: applications_before(fork, seq, most)$
SELECT count(*) FROM (SELECT 1 FROM applications WHERE fork = :fork AND to_seq > :seq LIMIT :most);
-- name: asks_behind(fork, seq, most)$
SELECT count(*) FROM (SELECT 1 FROM asks WHERE fork = :fork AND from_seq <= :seq LIMIT :most);
-- name: asks_before(fork, seq, most)$
SELECT count(*) FROM (SELECT 1 FROM asks WHERE fork = :fork AND to_seq > :seq LIMIT :most);
-- name: allocations_behind(fork, seq, most)$
SELECT count(*) FROM (SELECT 1 FROM allocations WHERE fork = :fork AND from_seq <= :seq LIMIT :most);
-- name: allocations_before(fork, seq, most)$
SELECT count(*) FROM (SELECT 1 FROM allocations WHERE fork = :fork AND to_seq > :seq LIMIT :most);

-- name: node_keys(seq, after)
SELECT node, id FROM nodes WHERE node > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY node;

-- name: node_number(seq)$
SELECT count(*) FROM nodes WHERE from_seq <= :seq AND to_seq > :seq;

-- Where many hold they are read in the order of their keys, and the walk ends with the page; a few are sorted.
-- name: application_keys(fork, seq, after)
SELECT application, id FROM applications INDEXED BY application_by_fork
WHERE fork = :fork AND application > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY application;

-- name: application_few_behind(fork, seq, after)
SELECT application, id FROM applications INDEXED BY application_by_start
WHERE fork = :fork AND application > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY application;

-- name: application_few_before(fork, seq, after)
SELECT application, id FROM applications INDEXED BY application_by_stop
WHERE fork = :fork AND application > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY application;

-- name: application_keys_in(fork, seq, after, queues)
SELECT application, id FROM applications INDEXED BY application_by_fork
WHERE fork = :fork AND application > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY application;

-- name: application_few_behind_in(fork, seq, after, queues)
SELECT application, id FROM applications INDEXED BY application_by_start
WHERE fork = :fork AND application > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY application;

-- name: application_few_before_in(fork, seq, after, queues)
SELECT application, id FROM applications INDEXED BY application_by_stop
WHERE fork = :fork AND application > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY application;

-- name: ask_keys(fork, seq, after)
SELECT ask, id FROM asks INDEXED BY ask_by_fork
WHERE fork = :fork AND ask > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY ask;

-- name: ask_few_behind(fork, seq, after)
SELECT ask, id FROM asks INDEXED BY ask_by_start
WHERE fork = :fork AND ask > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY ask;

-- name: ask_few_before(fork, seq, after)
SELECT ask, id FROM asks INDEXED BY ask_by_stop
WHERE fork = :fork AND ask > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY ask;

-- name: ask_keys_in(fork, seq, after, queues)
SELECT ask, id FROM asks INDEXED BY ask_by_fork
WHERE fork = :fork AND ask > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY ask;

-- name: ask_few_behind_in(fork, seq, after, queues)
SELECT ask, id FROM asks INDEXED BY ask_by_start
WHERE fork = :fork AND ask > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY ask;

-- name: ask_few_before_in(fork, seq, after, queues)
SELECT ask, id FROM asks INDEXED BY ask_by_stop
WHERE fork = :fork AND ask > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY ask;

-- name: allocation_keys(fork, seq, after)
SELECT allocation, id FROM allocations INDEXED BY allocation_by_fork
WHERE fork = :fork AND allocation > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY allocation;

-- name: allocation_few_behind(fork, seq, after)
SELECT allocation, id FROM allocations INDEXED BY allocation_by_start
WHERE fork = :fork AND allocation > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY allocation;

-- name: allocation_few_before(fork, seq, after)
SELECT allocation, id FROM allocations INDEXED BY allocation_by_stop
WHERE fork = :fork AND allocation > :after AND from_seq <= :seq AND to_seq > :seq ORDER BY allocation;

-- name: allocation_keys_in(fork, seq, after, queues)
SELECT allocation, id FROM allocations INDEXED BY allocation_by_fork
WHERE fork = :fork AND allocation > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY allocation;

-- name: allocation_few_behind_in(fork, seq, after, queues)
SELECT allocation, id FROM allocations INDEXED BY allocation_by_start
WHERE fork = :fork AND allocation > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY allocation;

-- name: allocation_few_before_in(fork, seq, after, queues)
SELECT allocation, id FROM allocations INDEXED BY allocation_by_stop
WHERE fork = :fork AND allocation > :after AND from_seq <= :seq AND to_seq > :seq AND queue IN (SELECT value FROM json_each(:queues)) ORDER BY allocation;

-- name: asks_of(seq, application)
SELECT ask, id, queue FROM asks
WHERE application = :application AND from_seq <= :seq AND to_seq > :seq ORDER BY ask;

-- name: allocations_of(seq, application)
SELECT allocation, id, queue, node FROM allocations
WHERE application = :application AND from_seq <= :seq AND to_seq > :seq ORDER BY allocation;

-- name: allocations_on(seq, node)
SELECT allocation, id, queue, node FROM allocations
WHERE node = :node AND from_seq <= :seq AND to_seq > :seq ORDER BY allocation;

-- name: node_by(seq, key)^
SELECT node, id FROM nodes WHERE node = :key AND from_seq <= :seq AND to_seq > :seq;

-- name: application_by(seq, key)^
SELECT application, id FROM applications WHERE application = :key AND from_seq <= :seq AND to_seq > :seq;

-- name: ask_by(seq, key)^
SELECT ask, id FROM asks WHERE ask = :key AND from_seq <= :seq AND to_seq > :seq;

-- name: allocation_by(seq, key)^
SELECT allocation, id FROM allocations WHERE allocation = :key AND from_seq <= :seq AND to_seq > :seq;

-- name: node_rows(ids)
SELECT node, capacity, labels, schedulable FROM nodes WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY node;

-- name: application_rows(ids, seq)
SELECT a.application, a.queue, a.user, a.created,
    (SELECT p.until FROM pauses AS p WHERE p.application = a.application AND p.from_seq <= :seq AND p.to_seq > :seq)
FROM applications AS a
WHERE a.id IN (SELECT value FROM json_each(:ids)) ORDER BY a.application;

-- name: ask_rows(ids, seq)
SELECT a.ask, a.queue, a.application, a.resources, a.priority, a.created, a.required_node,
    (SELECT r.node FROM reservations AS r WHERE r.ask = a.ask AND r.from_seq <= :seq AND r.to_seq > :seq),
    t.first_cycle, t.preempted, t.failed
FROM asks AS a LEFT JOIN attempts AS t ON t.ask = a.ask AND t.from_seq <= :seq AND t.to_seq > :seq
WHERE a.id IN (SELECT value FROM json_each(:ids)) ORDER BY a.ask;

-- name: allocation_rows(ids)
SELECT allocation, queue, application, node, resources, priority, created, bound, eviction_requested, victim_of, quota_of
FROM allocations WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY allocation;

-- name: cycles_by(seq)$
SELECT coalesce((SELECT number FROM cycles WHERE seq <= :seq ORDER BY seq DESC LIMIT 1), 0);

-- name: reservations_in(fork, seq)
SELECT from_seq, ask, node FROM reservations WHERE fork = :fork AND from_seq <= :seq AND to_seq > :seq;

-- name: timers_in(fork, seq)
SELECT due, timer, kind, subject, cause FROM timers WHERE fork = :fork AND from_seq <= :seq AND to_seq > :seq;

-- How much of each amount began and ended between the last mark of an application and a moment, and that mark.
-- name: application_marks(names, seq)
SELECT n.value, m.usage, m.asks, m.allocations, coalesce(m.seq, 0)
FROM json_each(:names) AS n LEFT JOIN marks AS m ON m.kind = 'application' AND m.name = n.value AND m.seq = (
    SELECT max(l.seq) FROM marks AS l WHERE l.kind = 'application' AND l.name = n.value AND l.seq <= :seq
);

-- name: node_marks(names, seq)
SELECT n.value, m.usage, m.asks, m.allocations, coalesce(m.seq, 0)
FROM json_each(:names) AS n LEFT JOIN marks AS m ON m.kind = 'node' AND m.name = n.value AND m.seq = (
    SELECT max(l.seq) FROM marks AS l WHERE l.kind = 'node' AND l.name = n.value AND l.seq <= :seq
);

-- name: application_changes(marks, seq)
WITH m (name, since) AS MATERIALIZED (SELECT key, value FROM json_each(:marks))
SELECT m.name, a.resources, count(*) FROM m CROSS JOIN allocations AS a
ON a.application = m.name AND a.from_seq > m.since AND a.from_seq <= :seq
GROUP BY 1, 2
UNION ALL
SELECT m.name, a.resources, -count(*) FROM m CROSS JOIN allocations AS a
ON a.application = m.name AND a.to_seq > m.since AND a.to_seq <= :seq
GROUP BY 1, 2;

-- name: application_asks(marks, seq)
WITH m (name, since) AS MATERIALIZED (SELECT key, value FROM json_each(:marks))
SELECT m.name,
    (SELECT count(*) FROM asks AS a WHERE a.application = m.name AND a.from_seq > m.since AND a.from_seq <= :seq)
    - (SELECT count(*) FROM asks AS a WHERE a.application = m.name AND a.to_seq > m.since AND a.to_seq <= :seq)
FROM m;

-- name: node_changes(marks, seq)
WITH m (name, since) AS MATERIALIZED (SELECT key, value FROM json_each(:marks))
SELECT m.name, a.resources, count(*) FROM m CROSS JOIN allocations AS a
ON a.node = m.name AND a.from_seq > m.since AND a.from_seq <= :seq
GROUP BY 1, 2
UNION ALL
SELECT m.name, a.resources, -count(*) FROM m CROSS JOIN allocations AS a
ON a.node = m.name AND a.to_seq > m.since AND a.to_seq <= :seq
GROUP BY 1, 2;
