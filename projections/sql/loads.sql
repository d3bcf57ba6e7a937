-- What nodes use after an event. Allocations that hold lie at the places of the event (projections.temporal).

-- name: nodes(seq)
SELECT node, capacity, schedulable FROM nodes WHERE from_seq <= :seq AND to_seq > :seq ORDER BY node;

-- name: holding(places, seq)
SELECT a.node, a.resources, count(*)
FROM json_each(:places) AS p CROSS JOIN allocations AS a
ON a.fork = p.value
WHERE a.from_seq <= :seq AND a.to_seq > :seq AND a.node IS NOT NULL
GROUP BY a.node, a.resources;

-- Of those that hold after the later event, the ones that did not after the earlier.
-- name: begun(places, earlier, later)
SELECT a.node, a.resources
FROM json_each(:places) AS p CROSS JOIN allocations AS a INDEXED BY allocation_by_start
ON a.fork = p.value AND a.from_seq > :earlier AND a.from_seq <= :later
WHERE a.to_seq > :later AND a.node IS NOT NULL;

-- Of those that held after the earlier event, the ones that do not after the later.
-- name: ended(places, earlier, later)
SELECT a.node, a.resources
FROM json_each(:places) AS p CROSS JOIN allocations AS a INDEXED BY allocation_by_stop
ON a.fork = p.value AND a.to_seq > :earlier AND a.to_seq <= :later
WHERE a.from_seq <= :earlier AND a.node IS NOT NULL;
