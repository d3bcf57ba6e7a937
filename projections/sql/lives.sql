-- What the state at a moment no longer holds of applications: when they began to ask and to run, what they used, how they ended.
-- `seq` is the last event to be counted in, `time` that of its frame. `applications` is JSON: [id, seq of
-- the event that brought it in, seq up to which it is looked at] each.

-- name: asked(applications)
SELECT one.value ->> 0, one.value ->> 1, min(a.from_time)
FROM json_each(:applications) AS one
JOIN asks AS a ON a.application = one.value ->> 0 AND a.from_seq BETWEEN one.value ->> 1 AND one.value ->> 2
GROUP BY 1, 2;

-- name: used(seq, time, applications)
SELECT one.value ->> 0, one.value ->> 1, a.node, a.resources, sum(min(a.to_time, :time) - a.from_time), min(a.from_time),
    CASE
        WHEN a.to_seq > :seq THEN 0
        WHEN a.outcome <> '' THEN a.outcome = 'preempted'
        -- Its eviction was requested: another row of the same allocation followed, and has its end.
        ELSE coalesce((
            SELECT last.outcome = 'preempted' FROM allocations AS last
            WHERE last.allocation = a.allocation AND last.from_seq >= a.to_seq AND last.to_seq <= :seq AND last.outcome <> ''
            ORDER BY last.from_seq LIMIT 1
        ), 0)
    END AS preempted
FROM json_each(:applications) AS one
JOIN allocations AS a ON a.application = one.value ->> 0 AND a.from_seq BETWEEN one.value ->> 1 AND one.value ->> 2
GROUP BY 1, 2, 3, 4, 7;

-- name: said(seq, asks)
SELECT ask, reason, time, seq FROM failures WHERE ask IN (SELECT value FROM json_each(:asks)) AND seq <= :seq ORDER BY seq;

-- A row that another one of the same application follows at once is no end: the application became older.
-- name: ended(seq, since, most, application)
SELECT a.application, a.queue, a.user, a.created, a.to_time, a.to_seq,
    (
        SELECT max(b.from_seq) FROM applications AS b
        WHERE b.application = a.application AND b.from_seq <= a.from_seq AND NOT EXISTS (
            SELECT 1 FROM applications AS p WHERE p.application = b.application AND p.to_seq = b.from_seq AND p.from_seq < b.from_seq
        )
    )
FROM applications AS a
WHERE a.to_seq <= :seq AND a.to_time > :since AND NOT EXISTS (
    SELECT 1 FROM applications AS n WHERE n.application = a.application AND n.from_seq = a.to_seq
) AND a.application = coalesce(:application, a.application)
ORDER BY a.to_seq DESC, a.application LIMIT :most;

-- name: ended_number(seq, since)$
SELECT count(*) FROM applications AS a
WHERE a.to_seq <= :seq AND a.to_time > :since AND NOT EXISTS (
    SELECT 1 FROM applications AS n WHERE n.application = a.application AND n.from_seq = a.to_seq
);

-- name: rejected_number(seq, since)$
SELECT count(*) FROM rejected WHERE seq <= :seq AND time > :since AND type = 'ApplicationSubmitted';

-- name: rejected(seq, since, most)
SELECT time, reason, input FROM rejected
WHERE seq <= :seq AND time > :since AND type = 'ApplicationSubmitted' ORDER BY seq DESC LIMIT :most;

-- name: subjects(seq, names)
SELECT ask, application, resources, '' FROM asks WHERE ask IN (SELECT value FROM json_each(:names)) AND from_seq <= :seq
UNION ALL
SELECT allocation, application, resources, coalesce(node, '') FROM allocations
WHERE allocation IN (SELECT value FROM json_each(:names)) AND from_seq <= :seq;

-- How many began by each full minute, and ended. Minutes are counted since the epoch; what began before the first one began by it.
-- name: applications_begun(seq, first)
SELECT max((from_time + 59999) / 60000, :first) AS minute, count(*) FROM applications
WHERE from_seq <= :seq AND to_time > :first * 60000 GROUP BY minute;

-- name: applications_over(seq, first)
SELECT (to_time + 59999) / 60000 AS minute, count(*) FROM applications
WHERE to_seq <= :seq AND to_time > :first * 60000 GROUP BY minute;

-- name: allocations_begun(seq, first)
SELECT max((from_time + 59999) / 60000, :first) AS minute, count(*) FROM allocations
WHERE from_seq <= :seq AND to_time > :first * 60000 GROUP BY minute;

-- name: allocations_over(seq, first)
SELECT (to_time + 59999) / 60000 AS minute, count(*) FROM allocations
WHERE to_seq <= :seq AND to_time > :first * 60000 GROUP BY minute;

-- name: began()$
SELECT coalesce(min(time), 0) FROM frames;

-- name: first_configured()$
SELECT coalesce(min(from_time), 0) FROM configurations;

-- name: time_of(seq)$
SELECT coalesce((SELECT time FROM frames WHERE seq >= :seq ORDER BY frame LIMIT 1), 0);
