-- A stretch of the log for the page's time bar and timeline. Every statement is one look into an index.

-- name: frame_at(place)^
SELECT frame, time, seq FROM frames WHERE frame >= :place ORDER BY frame LIMIT 1;

-- name: last_frame()^
SELECT frame, time, seq FROM frames ORDER BY frame DESC LIMIT 1;

-- name: frame_by_time(time)^
SELECT frame, time, seq FROM frames WHERE time <= :time ORDER BY time DESC, seq DESC LIMIT 1;

-- name: evictions(after, until)$
SELECT count(*) FROM victims WHERE seq > :after AND seq <= :until;

-- name: refusals(after, until)$
SELECT count(*) FROM rejected WHERE seq > :after AND seq <= :until;

-- name: configurations(after, until, limit)
SELECT from_seq AS seq, from_time AS time, proposal FROM configurations
WHERE from_seq > :after AND from_seq <= :until ORDER BY from_seq LIMIT :limit;

-- name: quota_actions(after, until, limit)
SELECT seq, time, action, queue FROM quota_actions WHERE seq > :after AND seq <= :until ORDER BY seq LIMIT :limit;

-- name: leaves(until, queue, limit)
SELECT DISTINCT queue FROM queues
WHERE leaf = 1 AND from_seq <= :until AND to_seq > :until
    AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
ORDER BY queue LIMIT :limit;

-- name: limits(queue, after, until)
SELECT from_seq AS seq, from_time AS time, guaranteed, maximum FROM queues
WHERE queue = :queue AND to_seq > :after AND from_seq <= :until ORDER BY from_seq;

-- name: usage(queue, seq)^
SELECT usage, pending, pending_asks FROM queue_usage
WHERE queue = :queue AND from_seq <= :seq ORDER BY from_seq DESC LIMIT 1;
