-- Ready audit questions. Parameters: :from_time and :to_time in milliseconds (included, excluded), :queue a path or NULL for all
-- (queues below it count too), :limit the most rows. The first comment line of a query is its sentence; lines `column: meaning` follow.

-- name: who_preempted(queue, from_time, to_time, limit)
-- Which allocations of a queue were told to go, for whom and by what right.
-- time: when they were told
-- allocation: the victim
-- queue: the victim's queue
-- node: where it ran
-- kind: guarantee, required-node, classic, fair or quota
-- for_ask: the ask that got its room; empty for quota enforcement
-- for_queue: the queue that gained, or whose maximum was lowered
-- reason: the rule that made it eligible
-- seq: of the decision, for `evsched explain` and `evsched at`
SELECT time, allocation, queue, node, kind, for_ask, for_queue, reason, seq
FROM victims
WHERE time >= :from_time AND time < :to_time
  AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
ORDER BY seq, number LIMIT :limit;

-- name: preemptions_for(queue, from_time, to_time, limit)
-- Which asks of a queue preempted others, how long they had waited, and how many had to go.
-- time: when it was decided
-- ask: the ask that preempted
-- queue: its queue
-- node: reserved for it
-- algorithm: guarantee, required-node, classic or fair
-- waited_ms: from its creation to the decision
-- victims: how many were told to go
-- seq: of the decision
SELECT p.time, p.ask, p.queue, p.node, p.algorithm, p.waited_ms, (SELECT count(*) FROM victims v WHERE v.seq = p.seq) AS victims, p.seq
FROM preemptions p
WHERE p.time >= :from_time AND p.time < :to_time
  AND (:queue IS NULL OR p.queue = :queue OR (p.queue > :queue || '.' AND p.queue < :queue || '/'))
ORDER BY p.seq LIMIT :limit;

-- name: preemptions_by_reason(queue, from_time, to_time, limit)
-- How many allocations were told to go, by kind and rule.
-- kind: guarantee, required-node, classic, fair or quota
-- queue: whose allocations
-- reason: the rule that made them eligible
-- victims: how many
SELECT kind, queue, reason, count(*) AS victims
FROM victims
WHERE time >= :from_time AND time < :to_time
  AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
GROUP BY kind, queue, reason ORDER BY victims DESC, kind, queue, reason LIMIT :limit;

-- name: usage_over_time(queue, from_time, to_time, limit)
-- What ran and waited in a leaf, change by change.
-- from_time: since when it held
-- to_time: until when
-- queue: the leaf
-- usage: what ran, by resource
-- pending: what waited, by resource
-- pending_asks: how many asks waited
-- seq: of the event that brought it about
SELECT u.from_time, u.to_time, u.queue, u.usage, u.pending, u.pending_asks, u.from_seq AS seq
FROM queue_usage u
WHERE u.from_seq >= (
        SELECT coalesce(max(b.from_seq), 0) FROM queue_usage b
        WHERE b.queue = u.queue AND b.from_seq <= (SELECT coalesce(max(seq), 0) FROM frames WHERE time <= :from_time)
      )
  AND u.from_seq <= (SELECT coalesce(max(seq), 0) FROM frames WHERE time < :to_time)
  AND u.queue = coalesce(:queue, u.queue) AND u.to_time > :from_time
ORDER BY u.from_seq LIMIT :limit;

-- name: waiting_times(queue, from_time, to_time, limit)
-- How long asks that stopped waiting in this time had waited, by queue and outcome.
-- queue: their queue
-- outcome: bound or withdrawn
-- asks: how many
-- mean_ms: mean time from creation to the end of waiting, rounded down
-- longest_ms: the longest
SELECT queue, outcome, count(*) AS asks, sum(to_time - min(created, from_time)) / count(*) AS mean_ms,
       max(to_time - min(created, from_time)) AS longest_ms
FROM asks
WHERE to_time >= :from_time AND to_time < :to_time
  AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
GROUP BY queue, outcome ORDER BY queue, outcome LIMIT :limit;

-- name: still_waiting(queue, from_time, to_time, limit)
-- Which asks wait now, the oldest first, and why the last try to preempt for them failed.
-- ask: the ask
-- queue: its queue
-- created: when its owner created it
-- priority: its priority
-- resources: what it asks for
-- reason: of the last failed preemption; empty when none was tried
SELECT a.ask, a.queue, a.created, a.priority, a.resources,
       coalesce((SELECT f.reason FROM failures f WHERE f.ask = a.ask ORDER BY f.seq DESC LIMIT 1), '') AS reason
FROM asks a
WHERE a.to_seq = 9223372036854775807 AND a.created >= :from_time AND a.created < :to_time
  AND (:queue IS NULL OR a.queue = :queue OR (a.queue > :queue || '.' AND a.queue < :queue || '/'))
ORDER BY a.created, a.ask LIMIT :limit;

-- name: config_history(queue, from_time, to_time, limit)
-- Which configurations were in force.
-- version: 1 for the first
-- from_time: since when
-- to_time: until when
-- format: yunikorn or kueue
-- proposal: the id of the proposal that brought it
-- seq: of the event
SELECT id AS version, from_time, to_time, format, proposal, from_seq AS seq
FROM configurations WHERE to_time > :from_time AND from_time < :to_time AND (:queue IS NULL OR 1) ORDER BY id LIMIT :limit;

-- name: queue_history(queue, from_time, to_time, limit)
-- How the limits of a queue changed.
-- from_time: since when
-- to_time: until when
-- queue: the queue
-- guaranteed: its guarantee
-- maximum: its maximum
-- draining: 1 when it was no longer in the configuration
-- seq: of the event that changed it
SELECT from_time, to_time, queue, guaranteed, maximum, draining, from_seq AS seq
FROM queues
WHERE to_time > :from_time AND from_time < :to_time
  AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
ORDER BY from_seq, id LIMIT :limit;

-- name: quota_actions(queue, from_time, to_time, limit)
-- What quota enforcement did: timers started, cancelled, fired.
-- time: when
-- queue: whose maximum
-- action: scheduled, cancelled, decided or unhelpful
-- due: for fired ones, when the timer was due; for scheduled ones, when it will be
-- target: what had to go
-- unmet: what of it stays
-- victims: how many were told to go
-- reason: why not, or why cancelled
-- seq: of the event
SELECT time, queue, action, coalesce(at, due) AS due, target, unmet, victims, reason, seq
FROM quota_actions
WHERE time >= :from_time AND time < :to_time
  AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
ORDER BY seq LIMIT :limit;

-- name: rejected_inputs(queue, from_time, to_time, limit)
-- Which proposals were refused, and why.
-- time: when
-- code: malformed, duplicate, unknown, invalid or conflict
-- type: of the proposal, empty when it could not be read
-- reason: the sentence its producer should read
-- proposal: its id
-- source: who proposed
-- position: in the inbox
-- seq: of the event
SELECT time, code, type, reason, proposal, source, position, seq
FROM rejected WHERE time >= :from_time AND time < :to_time AND (:queue IS NULL OR 1) ORDER BY seq LIMIT :limit;
