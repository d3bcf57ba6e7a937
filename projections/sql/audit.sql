-- Ready audit questions. Parameters: :from_seq and :to_seq (included, excluded) stand for the window of time, :seq for a moment,
-- :queue is a path or NULL for all (queues below it count too), :of an id, :limit the most rows, :bucket how many events share a
-- row of the counting tables, :earliest from when on waiting counts. The first comment line of a query is its sentence; lines `column: meaning` follow. NAME_leaf is how NAME is asked about one leaf, where that is quicker otherwise.
-- Which pauses were on at a moment is found by their length in events: one whose length has so many digits can only have begun within the
-- reach of that number. So whoever asks about the middle of a long log does not walk through all pauses before it, or behind.

-- name: who_preempted(queue, from_seq, to_seq, limit)
-- Which allocations of a queue were evicted, for whom and by what right.
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
WHERE seq >= :from_seq AND seq < :to_seq AND (:queue IS NULL OR +queue = :queue OR (+queue > :queue || '.' AND +queue < :queue || '/'))
ORDER BY seq, number LIMIT :limit;

-- name: who_preempted_leaf(queue, from_seq, to_seq, limit)
SELECT time, allocation, queue, node, kind, for_ask, for_queue, reason, seq
FROM victims WHERE queue = :queue AND seq >= :from_seq AND seq < :to_seq
ORDER BY seq, number LIMIT :limit;

-- name: preemptions_for(queue, from_seq, to_seq, limit)
-- Which asks of a queue preempted others, how long they had waited, and how many had to go.
-- time: when it was decided
-- ask: the ask that preempted
-- queue: its queue
-- node: reserved for it
-- algorithm: guarantee, required-node, classic or fair
-- waited_ms: from its creation to the decision
-- victims: how many were evicted
-- seq: of the decision
SELECT p.time, p.ask, p.queue, p.node, p.algorithm, p.waited_ms, (SELECT count(*) FROM victims v WHERE v.seq = p.seq) AS victims, p.seq
FROM preemptions p
WHERE p.seq >= :from_seq AND p.seq < :to_seq AND (:queue IS NULL OR +p.queue = :queue OR (+p.queue > :queue || '.' AND +p.queue < :queue || '/'))
ORDER BY p.seq LIMIT :limit;

-- name: preemptions_for_leaf(queue, from_seq, to_seq, limit)
SELECT p.time, p.ask, p.queue, p.node, p.algorithm, p.waited_ms, (SELECT count(*) FROM victims v WHERE v.seq = p.seq) AS victims, p.seq
FROM preemptions p WHERE p.queue = :queue AND p.seq >= :from_seq AND p.seq < :to_seq
ORDER BY p.seq LIMIT :limit;

-- name: preemptions_by_reason(queue, from_seq, to_seq, limit, bucket, wide)
-- How many allocations were evicted, by kind and rule.
-- kind: guarantee, required-node, classic, fair or quota
-- queue: whose allocations
-- reason: the rule that made them eligible
-- victims: how many
SELECT kind, queue, reason, sum(victims) AS victims
FROM (
    SELECT kind, queue, reason, victims FROM victim_counts
    WHERE events = :bucket * :wide AND bucket > :from_seq / :bucket / :wide AND bucket < (:to_seq - 1) / :bucket / :wide
    UNION ALL
    SELECT kind, queue, reason, victims FROM victim_counts
    WHERE events = :bucket AND bucket > :from_seq / :bucket
        AND bucket < min((:to_seq - 1) / :bucket, (:from_seq / :bucket / :wide + 1) * :wide)
    UNION ALL
    SELECT kind, queue, reason, victims FROM victim_counts
    WHERE events = :bucket AND bucket < (:to_seq - 1) / :bucket
        AND bucket >= max((:from_seq / :bucket / :wide + 1) * :wide, (:to_seq - 1) / :bucket / :wide * :wide)
    UNION ALL
    SELECT kind, queue, reason, 1 FROM victims
    WHERE seq >= :from_seq AND seq < min(:to_seq, (:from_seq / :bucket + 1) * :bucket)
    UNION ALL
    SELECT kind, queue, reason, 1 FROM victims
    WHERE seq >= max((:from_seq / :bucket + 1) * :bucket, (:to_seq - 1) / :bucket * :bucket) AND seq < :to_seq
)
WHERE (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
GROUP BY kind, queue, reason ORDER BY victims DESC, kind, queue, reason LIMIT :limit;

-- name: usage_over_time(queue, from_seq, to_seq, limit)
-- What ran and waited in a leaf, change by change.
-- from_time: since when it held
-- to_time: until when
-- queue: the leaf
-- usage: what ran, by resource
-- pending: what waited, by resource
-- pending_asks: how many asks waited
-- seq: of the event that brought it about
SELECT from_time, to_time, queue, usage, pending, pending_asks, seq
FROM (
    SELECT u.from_time, u.to_time, u.queue, u.usage, u.pending, u.pending_asks, u.from_seq AS seq
    FROM (SELECT DISTINCT queue FROM queues WHERE leaf = 1 AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))) q
    JOIN queue_usage u ON u.id = (
        SELECT b.id FROM queue_usage b WHERE b.queue = q.queue AND b.from_seq < :from_seq ORDER BY b.from_seq DESC LIMIT 1
    )
    WHERE u.to_seq > :from_seq AND u.to_time > u.from_time
    UNION ALL
    SELECT * FROM (
        SELECT from_time, to_time, queue, usage, pending, pending_asks, from_seq AS seq
        FROM queue_usage
        WHERE from_seq >= :from_seq AND from_seq < :to_seq AND to_time > from_time AND (:queue IS NULL OR +queue = :queue OR (+queue > :queue || '.' AND +queue < :queue || '/'))
        ORDER BY from_seq LIMIT :limit
    )
)
ORDER BY seq, queue LIMIT :limit;

-- name: usage_over_time_leaf(queue, from_seq, to_seq, limit)
SELECT from_time, to_time, queue, usage, pending, pending_asks, from_seq AS seq
FROM queue_usage
WHERE queue = :queue AND from_seq < :to_seq AND to_seq > :from_seq AND to_time > from_time AND from_seq >= coalesce((
    SELECT max(b.from_seq) FROM queue_usage b WHERE b.queue = :queue AND b.from_seq <= :from_seq
), 0)
ORDER BY from_seq LIMIT :limit;

-- name: waiting_times(queue, from_seq, to_seq, limit, bucket, wide, earliest)
-- How long asks that stopped waiting in this time had waited, by queue and outcome.
-- queue: their queue
-- outcome: bound or withdrawn
-- asks: how many
-- mean_ms: mean time from creation to the end of waiting, rounded down
-- longest_ms: the longest
SELECT queue, outcome, sum(asks) AS asks, sum(waited_ms) / sum(asks) AS mean_ms, max(longest_ms) AS longest_ms
FROM (
    SELECT queue, outcome, asks, waited_ms, longest_ms FROM waits
    WHERE events = :bucket * :wide AND bucket > :from_seq / :bucket / :wide AND bucket < (:to_seq - 1) / :bucket / :wide
    UNION ALL
    SELECT queue, outcome, asks, waited_ms, longest_ms FROM waits
    WHERE events = :bucket AND bucket > :from_seq / :bucket
        AND bucket < min((:to_seq - 1) / :bucket, (:from_seq / :bucket / :wide + 1) * :wide)
    UNION ALL
    SELECT queue, outcome, asks, waited_ms, longest_ms FROM waits
    WHERE events = :bucket AND bucket < (:to_seq - 1) / :bucket
        AND bucket >= max((:from_seq / :bucket / :wide + 1) * :wide, (:to_seq - 1) / :bucket / :wide * :wide)
    UNION ALL
    SELECT queue, outcome, 1, to_time - max(min(created, from_time), :earliest), to_time - max(min(created, from_time), :earliest) FROM asks
    WHERE to_seq >= :from_seq AND to_seq < min(:to_seq, (:from_seq / :bucket + 1) * :bucket)
    UNION ALL
    SELECT queue, outcome, 1, to_time - max(min(created, from_time), :earliest), to_time - max(min(created, from_time), :earliest) FROM asks
    WHERE to_seq >= max((:from_seq / :bucket + 1) * :bucket, (:to_seq - 1) / :bucket * :bucket) AND to_seq < :to_seq
)
WHERE (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
GROUP BY queue, outcome ORDER BY queue, outcome LIMIT :limit;

-- name: still_waiting(queue, from_seq, to_seq, limit)
-- Which asks that were submitted in this time still wait, the oldest first, and why preempting for them failed last.
-- ask: the ask
-- queue: its queue
-- created: when its owner created it
-- priority: its priority
-- resources: what it asks for
-- reason: of the last failed preemption; empty when none was tried
SELECT a.ask, a.queue, a.created, a.priority, a.resources,
       coalesce((SELECT f.reason FROM failures f WHERE f.ask = a.ask ORDER BY f.seq DESC LIMIT 1), '') AS reason
FROM asks a
WHERE a.to_seq = 9223372036854775807 AND a.from_seq >= :from_seq AND a.from_seq < :to_seq AND (:queue IS NULL OR a.queue = :queue OR (a.queue > :queue || '.' AND a.queue < :queue || '/'))
ORDER BY a.created, a.ask LIMIT :limit;

-- name: life_of(of, limit)
-- What became of one ask or allocation: everything that held about it, in order.
-- seq: of the event that brought it about
-- from_time: since when it held
-- to_time: until when
-- what: waiting, reserved, running or leaving; paused: its application was, while it waited
-- queue: its queue
-- node: where it runs, or for it kept
-- detail: the ask or queue it makes room for, or the application that was paused
-- outcome: how it ended
SELECT * FROM (
    SELECT from_seq AS seq, from_time, to_time, 'waiting' AS what, queue, NULL AS node, '' AS detail, outcome FROM asks WHERE ask = :of
    UNION ALL
    SELECT max(p.from_seq, a.from_seq), max(p.from_time, a.from_time), min(p.to_time, a.to_time), 'paused', p.queue, NULL,
           p.application, CASE WHEN p.to_seq > a.to_seq THEN '' ELSE p.outcome END
    FROM asks a JOIN pauses p ON p.application = a.application AND p.from_seq < a.to_seq AND p.to_seq > a.from_seq
        AND p.from_seq >= coalesce((
            SELECT max(b.from_seq) FROM pauses b WHERE b.application = a.application AND b.from_seq <= a.from_seq
        ), 0)
    WHERE a.ask = :of
    UNION ALL
    SELECT from_seq, from_time, to_time, 'reserved', NULL, node, '', '' FROM reservations WHERE ask = :of
    UNION ALL
    SELECT from_seq, from_time, to_time, CASE WHEN eviction_requested > 0 THEN 'leaving' ELSE 'running' END, queue, node,
           CASE WHEN victim_of <> '' THEN victim_of ELSE quota_of END, outcome
    FROM allocations WHERE allocation = :of
)
ORDER BY seq, what DESC LIMIT :limit;

-- name: queues_at(queue, seq, limit)
-- What the limits of queues were at a moment and, of leaves, what ran and waited.
-- queue: the queue
-- guaranteed: its guarantee; nothing with Kueue
-- maximum: its maximum; nothing with Kueue
-- usage: what ran when the step before ended, by resource; of leaves
-- pending: what waited, by resource; of leaves
-- pending_asks: how many asks waited; of leaves
-- since: seq of the event that set the limits
SELECT q.queue, q.guaranteed, q.maximum, u.usage, u.pending, u.pending_asks, q.from_seq AS since
FROM queues q
LEFT JOIN queue_usage u ON u.id = (
    SELECT b.id FROM queue_usage b WHERE b.queue = q.queue AND b.from_seq <= :seq ORDER BY b.from_seq DESC LIMIT 1
) AND u.to_seq > :seq
WHERE q.from_seq <= :seq AND q.to_seq > :seq AND (:queue IS NULL OR q.queue = :queue OR (q.queue > :queue || '.' AND q.queue < :queue || '/'))
ORDER BY q.queue LIMIT :limit;

-- name: quotas_at(queue, seq, limit)
-- What the quotas of Kueue's ClusterQueues and cohorts were at a moment.
-- queue: the ClusterQueue, or cohort/NAME
-- cohort: the one above it; nothing at the top
-- nominal: its own nominal quota
-- borrowing_limit: most that it borrows
-- lending_limit: most that it lends
-- quota: of a cohort, with what those below it lend
-- since: seq of the event that set them
SELECT queue, parent AS cohort, nominal, borrowing_limit, lending_limit, quota, from_seq AS since
FROM queues
WHERE nominal IS NOT NULL AND from_seq <= :seq AND to_seq > :seq AND (:queue IS NULL OR queue = :queue)
ORDER BY place, queue LIMIT :limit;

-- name: config_history(from_seq, to_seq, limit)
-- Which configurations were in force, who applied each and why, and what it changed.
-- version: 1 for the first
-- from_time: since when
-- to_time: until when
-- format: yunikorn or kueue
-- actor: the person or account that applied it, as far as the program said
-- source: the program that applied it
-- message: why, in the words of who applied it
-- difference: what it changed, as of `evsched config diff`; empty for the first
-- proposal: the id of the proposal that brought it
-- seq: of the event
SELECT version, from_time, to_time, format, actor, source, message, difference, proposal, seq
FROM (
    SELECT row_number() OVER (ORDER BY from_seq) AS version, from_time, to_time, to_seq, format, proposal, from_seq AS seq,
           actor, source, message,
           json_array(lag(configuration) OVER (ORDER BY from_seq), configuration) AS difference
    FROM configurations
)
WHERE to_seq > :from_seq AND seq < :to_seq ORDER BY seq LIMIT :limit;

-- name: queue_history(queue, from_seq, to_seq, limit)
-- How the limits of a queue changed.
-- from_time: since when
-- to_time: until when
-- queue: the queue
-- guaranteed: its guarantee; nothing with Kueue
-- maximum: its maximum; nothing with Kueue
-- nominal: its nominal quota; nothing with YuniKorn
-- draining: 1 when it was no longer in the configuration
-- seq: of the event that changed it
SELECT from_time, to_time, queue, guaranteed, maximum, nominal, draining, from_seq AS seq
FROM queues
WHERE to_seq > :from_seq AND from_seq < :to_seq AND to_time > from_time AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
ORDER BY from_seq, queue LIMIT :limit;

-- name: quota_actions(queue, from_seq, to_seq, limit)
-- What quota enforcement did: timers started, cancelled, fired.
-- time: when
-- queue: whose maximum
-- action: scheduled, cancelled, decided or unhelpful
-- due: for fired ones, when the timer was due; for scheduled ones, when it will be
-- target: what had to go
-- unmet: what of it stays
-- victims: how many were evicted
-- reason: why not, or why cancelled
-- seq: of the event
SELECT time, queue, action, coalesce(at, due) AS due, target, unmet, victims, reason, seq
FROM quota_actions
WHERE seq >= :from_seq AND seq < :to_seq AND (:queue IS NULL OR +queue = :queue OR (+queue > :queue || '.' AND +queue < :queue || '/'))
ORDER BY seq LIMIT :limit;

-- name: pauses(queue, from_seq, to_seq, limit)
-- Which applications were paused, until when, and why.
-- from_time: since when it was not looked at
-- to_time: until when
-- application: the application
-- queue: its queue
-- until: when the pause was to end
-- asks: how many of its asks fitted on no node
-- threshold: how many are too many, by the queue's application.unschedasks.backoff
-- outcome: how it ended, which is time over, configuration, last ask bound or last ask withdrawn
-- seq: of the event that paused it
WITH RECURSIVE lengths (digits, reach) AS (
    SELECT 1, 10 UNION ALL SELECT 19, 9223372036854775807 UNION ALL SELECT digits + 1, reach * 10 FROM lengths WHERE digits < 18
)
SELECT from_time, to_time, application, queue, until, asks, threshold, outcome, seq
FROM (
    SELECT from_time, to_time, application, queue, until, asks, threshold, outcome, from_seq AS seq
    FROM lengths CROSS JOIN pauses
    ON length(to_seq - from_seq) = digits AND from_seq > :from_seq - reach AND from_seq < :from_seq AND to_seq > :from_seq
    WHERE (:queue IS NULL OR +queue = :queue OR (+queue > :queue || '.' AND +queue < :queue || '/'))
    UNION ALL
    SELECT * FROM (
        SELECT from_time, to_time, application, queue, until, asks, threshold, outcome, from_seq AS seq
        FROM pauses
        WHERE from_seq >= :from_seq AND from_seq < :to_seq AND (:queue IS NULL OR +queue = :queue OR (+queue > :queue || '.' AND +queue < :queue || '/'))
        ORDER BY from_seq LIMIT :limit
    )
)
ORDER BY seq LIMIT :limit;

-- name: pauses_leaf(queue, from_seq, to_seq, limit)
WITH RECURSIVE lengths (digits, reach) AS (
    SELECT 1, 10 UNION ALL SELECT 19, 9223372036854775807 UNION ALL SELECT digits + 1, reach * 10 FROM lengths WHERE digits < 18
)
SELECT from_time, to_time, application, queue, until, asks, threshold, outcome, seq
FROM (
    SELECT from_time, to_time, application, queue, until, asks, threshold, outcome, from_seq AS seq
    FROM lengths CROSS JOIN pauses
    ON length(to_seq - from_seq) = digits AND from_seq > :from_seq - reach AND from_seq < :from_seq AND to_seq > :from_seq
    WHERE +queue = :queue
    UNION ALL
    SELECT * FROM (
        SELECT from_time, to_time, application, queue, until, asks, threshold, outcome, from_seq AS seq
        FROM pauses WHERE queue = :queue AND from_seq >= :from_seq AND from_seq < :to_seq
        ORDER BY from_seq LIMIT :limit
    )
)
ORDER BY seq LIMIT :limit;

-- name: paused_at(queue, seq, limit)
-- Which applications were paused at a moment, and until when they were to be.
-- application: the application
-- queue: its queue
-- from_time: since when it was not looked at
-- until: when the pause was to end
-- asks: how many of its asks fitted on no node
-- threshold: how many are too many, by the queue's application.unschedasks.backoff
-- seq: of the event that paused it
WITH RECURSIVE lengths (digits, reach) AS (
    SELECT 1, 10 UNION ALL SELECT 19, 9223372036854775807 UNION ALL SELECT digits + 1, reach * 10 FROM lengths WHERE digits < 18
)
SELECT application, queue, from_time, until, asks, threshold, from_seq AS seq
FROM lengths CROSS JOIN pauses
    ON length(to_seq - from_seq) = digits AND from_seq > :seq - reach AND from_seq <= :seq AND to_seq > :seq
    WHERE (:queue IS NULL OR +queue = :queue OR (+queue > :queue || '.' AND +queue < :queue || '/'))
ORDER BY seq LIMIT :limit;

-- name: rejected_inputs(from_seq, to_seq, limit)
-- Which proposals were refused, and why.
-- time: when
-- code: malformed, duplicate, unknown, invalid or conflict
-- type: of the proposal, empty when it could not be read
-- reason: the sentence its producer should read
-- proposal: its id
-- source: the program that proposed
-- actor: the person or account behind it, as far as the program said
-- position: in the inbox
-- seq: of the event
SELECT time, code, type, reason, proposal, source, actor, position, seq
FROM rejected WHERE seq >= :from_seq AND seq < :to_seq ORDER BY seq LIMIT :limit;

-- name: usage_by_hour(queue, from_seq, to_seq, limit)
-- What each user used in a queue, hour by hour: GPU-hours, core-hours, byte-hours.
-- hour: the hour that begins then, UTC
-- queue: the leaf
-- user: whose applications
-- resource: the resource
-- used_hours: amount in base units times hours
WITH RECURSIVE span (first, last) AS (
    SELECT coalesce((SELECT f.time FROM frames f WHERE f.seq >= :from_seq ORDER BY f.seq LIMIT 1), p.time),
           coalesce((SELECT f.time FROM frames f WHERE f.seq >= :to_seq ORDER BY f.seq LIMIT 1), p.time)
    FROM position p
), pieces (application, seq, queue, resources, start, stop) AS (
    SELECT a.application, a.from_seq, a.queue, a.resources, max(a.from_time, s.first), min(a.to_time, s.last)
    FROM span s JOIN allocations a ON a.from_time < s.last AND a.to_time > s.first
    WHERE (:queue IS NULL OR a.queue = :queue OR (a.queue > :queue || '.' AND a.queue < :queue || '/'))
    UNION ALL
    SELECT application, seq, queue, resources, (start / 3600000 + 1) * 3600000, stop FROM pieces WHERE (start / 3600000 + 1) * 3600000 < stop
)
SELECT strftime('%Y-%m-%dT%H:00:00Z', p.start / 1000, 'unixepoch') AS hour, p.queue, coalesce((
        SELECT o.user FROM applications o WHERE o.application = p.application AND o.from_seq <= p.seq ORDER BY o.from_seq DESC LIMIT 1
    ), '') AS user,
    r.key AS resource, total(r.value * ((min(p.stop, (p.start / 3600000 + 1) * 3600000) - p.start) / 3600000.0)) AS used_hours
FROM pieces p JOIN json_each(p.resources) r WHERE p.stop > p.start
GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4 LIMIT :limit;

-- name: below_guarantee(queue, from_seq, to_seq, limit)
-- How long queues used less than their guarantee while something waited there for the resource.
-- queue: the queue, with all below it
-- resource: the resource
-- below_ms: for how long, all stretches together
-- most_missing: the most that was missing
-- first_time: since when the first time
-- last_time: until when the last time
WITH span (first, last) AS (
    SELECT coalesce((SELECT f.time FROM frames f WHERE f.seq >= :from_seq ORDER BY f.seq LIMIT 1), p.time),
           coalesce((SELECT f.time FROM frames f WHERE f.seq >= :to_seq ORDER BY f.seq LIMIT 1), p.time)
    FROM position p
), stretches AS (
    SELECT u.queue, u.resource, min(g.value, u.usage + u.pending) - u.usage AS missing,
        max(u.from_ms, q.from_time, s.first) AS start, min(coalesce(u.to_ms, 9223372036854775807), q.to_time, s.last) AS stop
    FROM span s JOIN v_queue_totals u JOIN queues q ON q.queue = u.queue
        AND q.from_time < coalesce(u.to_ms, 9223372036854775807) AND q.to_time > u.from_ms
    JOIN json_each(q.guaranteed) g ON g.key = u.resource
    WHERE u.usage < g.value AND u.pending > 0
        AND (:queue IS NULL OR u.queue = :queue OR (u.queue > :queue || '.' AND u.queue < :queue || '/'))
)
SELECT queue, resource, sum(stop - start) AS below_ms, max(missing) AS most_missing, min(start) AS first_time, max(stop) AS last_time
FROM stretches WHERE stop > start GROUP BY queue, resource ORDER BY below_ms DESC, queue, resource LIMIT :limit;

-- name: above_maximum(queue, from_seq, to_seq, limit)
-- Which queues used more than their maximum, and since when.
-- from_time: since when
-- to_time: until when, as far as the time that is asked about goes
-- queue: the queue, with all below it
-- resource: the resource
-- most_used: the most that was used meanwhile
-- lowest_maximum: the lowest maximum meanwhile
WITH span (first, last) AS (
    SELECT coalesce((SELECT f.time FROM frames f WHERE f.seq >= :from_seq ORDER BY f.seq LIMIT 1), p.time),
           coalesce((SELECT f.time FROM frames f WHERE f.seq >= :to_seq ORDER BY f.seq LIMIT 1), p.time)
    FROM position p
), parts AS (
    SELECT u.queue, u.resource, u.usage, m.value AS maximum,
        max(u.from_ms, q.from_time, s.first) AS start, min(coalesce(u.to_ms, 9223372036854775807), q.to_time, s.last) AS stop
    FROM span s JOIN v_queue_totals u JOIN queues q ON q.queue = u.queue
        AND q.from_time < coalesce(u.to_ms, 9223372036854775807) AND q.to_time > u.from_ms
    JOIN json_each(q.maximum) m ON m.key = u.resource
    WHERE u.usage > m.value AND (:queue IS NULL OR u.queue = :queue OR (u.queue > :queue || '.' AND u.queue < :queue || '/'))
), marked AS (
    SELECT *, start > coalesce(max(stop) OVER (
        PARTITION BY queue, resource ORDER BY start ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    ), -1) AS begins
    FROM parts WHERE stop > start
), stretches AS (
    SELECT *, sum(begins) OVER (PARTITION BY queue, resource ORDER BY start) AS stretch FROM marked
)
SELECT min(start) AS from_time, max(stop) AS to_time, queue, resource, max(usage) AS most_used, min(maximum) AS lowest_maximum
FROM stretches GROUP BY queue, resource, stretch ORDER BY 1, 3, 4 LIMIT :limit;

-- name: who_preempts_whom(queue, from_seq, to_seq, limit)
-- Which queues preempted in which others, by algorithm and rule.
-- for_queue: the queue that gained, or whose maximum was lowered
-- queue: the queue that lost
-- kind: guarantee, required-node, classic, fair or quota
-- reason: the rule that made the victims eligible
-- victims: how many
SELECT for_queue, queue, kind, reason, count(*) AS victims
FROM victims
WHERE seq >= :from_seq AND seq < :to_seq AND (
    :queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/')
    OR for_queue = :queue OR (for_queue > :queue || '.' AND for_queue < :queue || '/')
)
GROUP BY for_queue, queue, kind, reason ORDER BY victims DESC, for_queue, queue, kind, reason LIMIT :limit;

-- name: config_difference(from_seq, to_seq, limit)
-- What changed between the configuration in force when a time begins and the one at its end.
-- from_version: the earlier one, 1 for the first of the log
-- to_version: the later one
-- difference: what changed, as of `evsched config diff`; empty where both are the same
WITH versions AS (
    SELECT row_number() OVER (ORDER BY from_seq) AS version, from_seq, configuration FROM configurations
)
SELECT a.version AS from_version, b.version AS to_version, json_array(a.configuration, b.configuration) AS difference
FROM versions a JOIN versions b
WHERE a.version = coalesce((SELECT max(v.version) FROM versions v WHERE v.from_seq <= :from_seq), 1)
    AND b.version = (SELECT max(v.version) FROM versions v WHERE v.from_seq < :to_seq)
LIMIT :limit;

-- name: fairness(queue, from_seq, to_seq, limit)
-- What queues used on average, against their guarantee or nominal quota.
-- queue: the queue, with all below it
-- resource: the resource
-- mean_used: what it used, on average over the time
-- mean_entitled: its guarantee or nominal quota, on average
-- ratio: what it used as a part of that; nothing where it has none
-- weight: its fair sharing weight, the latest; nothing where the configuration is YuniKorn's
-- mean_borrowed: what a ClusterQueue used above its nominal quota, on average; nothing for a cohort
-- mean_share: its share in fair sharing, on average (above nominal, as a part of what its cohort could lend, by weight; the largest of all resources); nothing for a cohort, or where it is endless
WITH span (first, last) AS (
    SELECT coalesce((SELECT f.time FROM frames f WHERE f.seq >= :from_seq ORDER BY f.seq LIMIT 1), p.time),
           coalesce((SELECT f.time FROM frames f WHERE f.seq >= :to_seq ORDER BY f.seq LIMIT 1), p.time)
    FROM position p
), used AS (
    SELECT u.queue, u.resource,
        total(u.usage * ((min(coalesce(u.to_ms, s.last), s.last) - max(u.from_ms, s.first)) / (1.0 * (s.last - s.first)))) AS mean
    FROM span s JOIN v_queue_totals u ON u.from_ms < s.last AND coalesce(u.to_ms, s.last) > s.first
    WHERE (:queue IS NULL OR u.queue = :queue OR (u.queue > :queue || '.' AND u.queue < :queue || '/'))
    GROUP BY u.queue, u.resource
), entitled AS (
    SELECT q.queue, r.key AS resource,
        total(r.value * ((min(q.to_time, s.last) - max(q.from_time, s.first)) / (1.0 * (s.last - s.first)))) AS mean
    FROM span s JOIN queues q ON q.from_time < s.last AND q.to_time > s.first JOIN json_each(coalesce(q.guaranteed, q.nominal)) r
    WHERE (:queue IS NULL OR q.queue = :queue OR (q.queue > :queue || '.' AND q.queue < :queue || '/'))
    GROUP BY q.queue, r.key
), named AS (
    SELECT queue, resource FROM used UNION SELECT queue, resource FROM entitled
), limits AS (
    SELECT q.queue, q.nominal, q.weight_nano, p.lendable, max(q.from_time, p.from_time, s.first) AS from_ms, min(q.to_time, p.to_time, s.last) AS to_ms
    FROM span s JOIN queues q ON q.from_time < s.last AND q.to_time > s.first AND q.leaf = 1 AND q.nominal IS NOT NULL
    JOIN queues p ON p.queue = q.parent AND p.from_time < q.to_time AND p.to_time > q.from_time
    WHERE (:queue IS NULL OR q.queue = :queue OR (q.queue > :queue || '.' AND q.queue < :queue || '/'))
), pieces AS (
    SELECT l.queue, l.nominal, l.weight_nano, l.lendable, u.usage,
        (min(u.to_time, l.to_ms) - max(u.from_time, l.from_ms)) / (1.0 * (s.last - s.first)) AS part
    FROM span s JOIN limits l ON l.from_ms < l.to_ms
    JOIN queue_usage u ON u.queue = l.queue AND u.from_time < l.to_ms AND u.to_time > l.from_ms AND u.to_time > u.from_time
), borrowed AS (
    SELECT p.queue, r.key AS resource, total(max(0, r.value - coalesce(n.value, 0)) * p.part) AS mean
    FROM pieces p JOIN json_each(p.usage) r LEFT JOIN json_each(p.nominal) n ON n.key = r.key
    GROUP BY p.queue, r.key
), dominant AS (
    SELECT p.queue, p.weight_nano, p.part, coalesce((
            SELECT max(b.excess / (1.0 * l.value)) FROM (
                /* The flavors of a resource count together. */
                SELECT substr(r.key, instr(r.key, '/') + 1) AS resource, sum(max(0, r.value - coalesce(n.value, 0))) AS excess
                FROM json_each(p.usage) r LEFT JOIN json_each(p.nominal) n ON n.key = r.key GROUP BY 1
            ) b JOIN json_each(p.lendable) l ON l.key = b.resource AND l.value > 0
        ), 0.0) AS part_of_lendable
    FROM pieces p
), shares AS (
    /* With weight 0 the share of a queue that borrows is endless. */
    SELECT queue, CASE WHEN NOT max(weight_nano = 0 AND part_of_lendable > 0) THEN total(part * part_of_lendable * 1e9 / weight_nano) END AS mean
    FROM dominant GROUP BY queue
)
SELECT n.queue, n.resource, coalesce(u.mean, 0.0) AS mean_used, coalesce(e.mean, 0.0) AS mean_entitled,
    coalesce(u.mean, 0.0) / nullif(e.mean, 0) AS ratio,
    (SELECT q.weight_nano / 1e9 FROM queues q JOIN span s WHERE q.queue = n.queue AND q.from_time < s.last ORDER BY q.from_seq DESC LIMIT 1) AS weight,
    b.mean AS mean_borrowed, h.mean AS mean_share
FROM named n LEFT JOIN used u ON u.queue = n.queue AND u.resource = n.resource
LEFT JOIN entitled e ON e.queue = n.queue AND e.resource = n.resource
LEFT JOIN borrowed b ON b.queue = n.queue AND b.resource = n.resource
LEFT JOIN shares h ON h.queue = n.queue
ORDER BY n.queue, n.resource LIMIT :limit;

-- name: users_and_limits(queue, seq, limit)
-- What users and groups used at a moment against the limits of queues.
-- queue: the queue with the limit
-- kind: user or group
-- who: the user or group; * is everybody whom no limit of the queue names
-- resource: what is limited; empty where only applications are
-- used: what runs there and below, as far as it counts against the limit
-- maximum: the limit
-- applications: how many of its applications run
-- max_applications: how many may
WITH work AS (
    SELECT a.application, a.queue, a.user, a.groups
    FROM applications a WHERE a.from_seq <= :seq AND a.to_seq > :seq
), runs AS (
    SELECT a.application, r.key AS resource, sum(r.value) AS amount
    FROM allocations a JOIN json_each(a.resources) r WHERE a.from_seq <= :seq AND a.to_seq > :seq GROUP BY a.application, r.key
), limits AS (
    SELECT * FROM user_limits
    WHERE from_seq <= :seq AND to_seq > :seq
        AND (:queue IS NULL OR queue = :queue OR (queue > :queue || '.' AND queue < :queue || '/'))
), matches AS (
    SELECT w.application, l.user_limit, l.queue, l.kind, l.maximum, l.max_applications,
        CASE WHEN l.name = '*' AND l.kind = 'user' THEN w.user ELSE l.name END AS name,
        row_number() OVER (PARTITION BY w.application, l.queue, l.kind ORDER BY l.name = '*', l.place) AS choice
    FROM work w JOIN limits l ON (w.queue = l.queue OR (w.queue > l.queue || '.' AND w.queue < l.queue || '/'))
        AND (l.name = '*' OR (l.kind = 'user' AND l.name = w.user)
            OR (l.kind = 'group' AND l.name IN (SELECT value FROM json_each(w.groups))))
), counted AS (
    SELECT m.queue, m.kind, m.name, m.user_limit, m.maximum, m.max_applications,
        count(DISTINCT CASE WHEN EXISTS (SELECT 1 FROM runs r WHERE r.application = m.application) THEN m.application END) AS applications
    FROM matches m WHERE m.choice = 1 GROUP BY m.queue, m.kind, m.name
)
SELECT c.queue, c.kind, c.name AS who, coalesce(r.key, '') AS resource, coalesce((
        SELECT sum(u.amount) FROM matches m JOIN runs u ON u.application = m.application AND u.resource = r.key
        WHERE m.choice = 1 AND m.queue = c.queue AND m.kind = c.kind AND m.name = c.name
    ), 0) AS used, r.value AS maximum, c.applications, c.max_applications
FROM counted c LEFT JOIN json_each(c.maximum) r
ORDER BY c.queue, c.kind, c.name, r.key LIMIT :limit;
