"""evsched's own metrics.

Amounts are in base units: thousandths of a core, bytes, pieces. Moments are seconds since the epoch,
so that ``time() - x`` is an age on whatever clock the reader has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evsched.api.metrics.series import counter, gauge, histogram, seconds, shown_queues

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.core import Metric

    from evsched.api.metrics.scrape import Scrape

SUSPENDED = ("ask", "timer", "cycle", "allocation", "checkpoint")


def metrics(scrape: Scrape) -> Iterator[Metric]:
    """Yield them, in the same order each time."""
    yield from _log(scrape)
    yield from _decisions(scrape)
    yield from _waiting(scrape)
    yield from process(scrape)


def _log(scrape: Scrape) -> Iterator[Metric]:
    state, counts = scrape.state, scrape.fold.counts
    yield gauge("evsched_seq", "Number of the last event that was read.", (), [((), state.seq)])
    yield gauge(
        "evsched_log_timestamp_seconds",
        "Time of the last frame that was read.",
        (),
        [((), seconds(state.time))],
    )
    yield gauge("evsched_term", "Number of the leader's term.", (), [((), state.term)])
    yield gauge("evsched_rules", "Version of the rules in force.", (), [((), state.rules_version)])
    yield counter("evsched_steps", "Steps in the log.", (), counts, "steps")
    yield counter("evsched_events", "Events in the log, by type.", ("type",), counts, "events")
    yield counter(
        "evsched_rejected_proposals", "Refused proposals, by code.", ("code",), counts, "rejected"
    )
    yield counter(
        "evsched_checkpoints",
        "Digests in the log: equal to that of the state, or of a record that this release cannot make.",
        ("result",),
        counts,
        "checkpoints",
    )
    yield gauge(
        "evsched_verified_seq",
        "The last event up to which the state was found equal to the log's digest of it.",
        (),
        [((), counts.compared)],
    )


def _decisions(scrape: Scrape) -> Iterator[Metric]:
    state, counts = scrape.state, scrape.fold.counts
    yield counter(
        "evsched_preemptions",
        "Victims, by the queue of the preemptor (empty for quota enforcement), their own, and the rule.",
        ("preemptor_queue", "victim_queue", "rule"),
        counts,
        "preemptions",
    )
    yield counter(
        "evsched_preemptions_failed",
        "Times that no lawful plan was found, for another reason than the last time.",
        (),
        counts,
        "preemptions_failed",
    )
    yield counter(
        "evsched_evictions_repeated",
        "Evictions that were asked for again, as the victim did not leave in its grace time.",
        (),
        counts,
        "evictions_repeated",
    )
    yield histogram(
        "evsched_decided_to_gone_seconds",
        "From the decision to evict a victim to its end, for a preemption or for a quota.",
        ("kind",),
        counts,
        "gone",
    )
    yield counter(
        "evsched_suspensions",
        "Decisions that were set aside because evsched failed at them.",
        ("kind",),
        counts,
        "suspended",
    )
    now = dict.fromkeys(SUSPENDED, 0)
    for kind, _ in state.suspended:
        now[kind] += 1
    yield gauge(
        "evsched_suspended_decisions",
        "What is set aside now because evsched failed at it.",
        ("kind",),
        [((kind,), number) for kind, number in sorted(now.items())],
    )
    yield gauge(
        "evsched_quota_deadline_timestamp_seconds",
        "When a lowered quota is enforced by evictions, by queue.",
        ("queue",),
        [
            ((queue,), seconds(due))
            for queue, due in sorted(counts.deadlines.items())
            if queue in state.queues
        ],
    )


def _waiting(scrape: Scrape) -> Iterator[Metric]:
    state, fold = scrape.state, scrape.fold
    shown = {queue.path: queue for queue in shown_queues(state)}
    yield gauge(
        "evsched_waiting_asks",
        "Asks that wait, by leaf.",
        ("queue",),
        [((path,), queue.pending_asks) for path, queue in shown.items() if queue.leaf],
    )
    oldest = fold.oldest()
    yield gauge(
        "evsched_oldest_waiting_ask_timestamp_seconds",
        "When the ask that waits longest was created, by leaf in which one waits.",
        ("queue",),
        [((path,), seconds(oldest[path])) for path in shown if path in oldest],
    )
    yield gauge(
        "evsched_guarantee_lacking",
        "What is lacking of a guarantee now while at least as much waits.",
        ("queue", "resource"),
        [(key, amount) for key, amount in sorted(fold.lacking().items()) if key[0] in shown],
    )
    yield counter(
        "evsched_guarantee_unmet",
        "Amount-seconds by which a guarantee was not met while at least as much waited.",
        ("queue", "resource"),
        fold.shown_unmet(shown),
        "unmet",
    )
    yield gauge(
        "evsched_queues_not_shown",
        "Queues without series of their own, as there are too many.",
        (),
        [((), len(state.queues) - len(shown))],
    )


def process(scrape: Scrape) -> Iterator[Metric]:
    """Yield what this process knows of itself and of the leader."""
    vitals = scrape.vitals
    age = vitals.heartbeat_age_ms
    yield gauge(
        "evsched_heartbeat_age_seconds",
        "Since a sign of life of a leader was last seen.",
        (),
        [] if age is None else [((), seconds(age))],
    )
    yield gauge(
        "evsched_leader_resigned",
        "1: the leader said that it no longer leads.",
        (),
        [((), int(vitals.resigned))],
    )
    yield gauge(
        "evsched_log_lag_frames",
        "Frames that a leader has written and this process has yet to read.",
        (),
        [] if vitals.lag_frames is None else [((), vitals.lag_frames)],
    )
    yield gauge(
        "evsched_verification_state",
        "1: what the last verification that was run here came to.",
        ("state",),
        [
            ((state,), int(state == vitals.verification))
            for state in ("none", "equal", "different", "damaged")
        ],
    )
    yield gauge(
        "evsched_ready",
        "1: all that was in the log at the start of this process has been read.",
        (),
        [((), int(vitals.ready))],
    )
