-- What held at one moment. `seq` is the last event to be counted in.

-- name: queues_at(seq)
SELECT queue, parent, leaf, dynamic, draining, guaranteed, maximum FROM queues WHERE from_seq <= :seq AND to_seq > :seq ORDER BY queue;

-- name: usage_at(seq)
SELECT queue, usage, pending, pending_asks FROM queue_usage WHERE from_seq <= :seq AND to_seq > :seq ORDER BY queue;

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
