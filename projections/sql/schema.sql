-- The read model of one log. Every row of a temporal table holds from (from_seq, from_time), included, to (to_seq, to_time), excluded;
-- a row that still holds has 9223372036854775807 in both. As of a moment:  WHERE from_seq <= :seq AND to_seq > :seq
-- The comments are the reference of tables and columns (`projections/catalogue.py` reads them): kind, meaning, what NULL means, which values there are.
-- A column without one is among those that all temporal tables have.

-- name: create_schema()#
CREATE TABLE position ( -- the place up to which the log was read (one row)
    only INTEGER PRIMARY KEY CHECK (only = 1), -- internal: always 1
    schema_version INTEGER NOT NULL, -- number: version of this schema
    log_id TEXT NOT NULL, -- id: of the log
    seq INTEGER NOT NULL, -- seq: of the last event in the read model
    time INTEGER NOT NULL, -- time: of its frame
    head TEXT NOT NULL -- json: the place of the log up to which it was read
);
CREATE TABLE kept_state ( -- the folded state, for a quick restart (one row)
    only INTEGER PRIMARY KEY CHECK (only = 1), -- internal: always 1
    head TEXT NOT NULL, -- json: the place of the log after which it was kept
    state BLOB NOT NULL, -- internal: a snapshot
    fold BLOB NOT NULL -- internal: what a server keeps with it
);
CREATE TABLE frames ( -- each step
    frame INTEGER PRIMARY KEY, -- number: of its last frame
    time INTEGER NOT NULL, -- time: of the step
    seq INTEGER NOT NULL -- seq: of its last event
);
CREATE TABLE cycles ( -- each preemption cycle
    seq INTEGER PRIMARY KEY, -- seq: of the event that says that it ran
    number INTEGER NOT NULL -- number: 1 for the first of the log
);
CREATE TABLE resource_types ( -- each type of resource, in the order in which amounts name them
    number INTEGER PRIMARY KEY, -- number: 0 for the first that the log names
    resource TEXT NOT NULL, -- id: its name; with Kueue FLAVOR/RESOURCE
    seq INTEGER NOT NULL -- seq: of the event that named it first
);
CREATE TABLE configurations ( -- each configuration, as long as it was in force
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    format TEXT NOT NULL, -- enum: the language of the configuration. One of: yunikorn, kueue, custom
    configuration TEXT NOT NULL, -- json: as evsched reads it
    document TEXT NOT NULL, -- text: as it was written; empty where the text was not kept
    proposal TEXT NOT NULL, -- id: of the proposal that brought it; may be empty
    source TEXT NOT NULL, -- text: the program that applied it; may be empty
    actor TEXT NOT NULL, -- text: the person or account that applied it; may be empty
    message TEXT NOT NULL -- text: why, in the words of whoever applied it; may be empty
);
CREATE TABLE queues ( -- each queue, as long as its limits stayed the same
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    queue TEXT NOT NULL, -- id: its full path; with Kueue the name of the ClusterQueue, or cohort/NAME
    parent TEXT, -- id: the queue above, empty above a tree of cohorts. NULL: it is the root
    place INTEGER NOT NULL, -- number: order among the queues of one parent
    leaf INTEGER NOT NULL, -- bool: whether applications run in it
    dynamic INTEGER NOT NULL, -- bool: whether a placement rule created it
    draining INTEGER NOT NULL, -- bool: whether it is no longer in the configuration
    max_applications INTEGER, -- number: most applications that run in it and below. NULL: not limited
    guaranteed TEXT, -- amounts: its guarantee; a resource that is not named has none. NULL: the configuration is Kueue's
    maximum TEXT, -- amounts: its maximum; a resource that is not named is unlimited. NULL: the configuration is Kueue's
    nominal TEXT, -- amounts: its own nominal quota. NULL: the configuration is YuniKorn's
    borrowing_limit TEXT, -- amounts: most that it borrows; a resource that is not named is unlimited. NULL: the configuration is YuniKorn's
    lending_limit TEXT, -- amounts: most that it lends; a resource that is not named is unlimited. NULL: the configuration is YuniKorn's
    quota TEXT, -- amounts: of a cohort, with what those below it lend. NULL: it is no cohort
    weight_nano INTEGER, -- number: its weight in fair sharing, in billionths. NULL: the configuration is YuniKorn's
    lendable TEXT -- amounts: of a cohort, what could be used there of each resource, its flavors together. NULL: it is no cohort
);
CREATE TABLE user_limits ( -- each limit on users or groups in a queue
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    user_limit TEXT NOT NULL, -- id: queue, kind and name, with blanks between
    queue TEXT NOT NULL, -- id: the queue with the limit; it counts what runs below, too
    kind TEXT NOT NULL, -- enum: whom it limits. One of: user, group
    name TEXT NOT NULL, -- text: of the user or group; * for each that has no limit of its own
    place INTEGER NOT NULL, -- number: place among the limits of the queue: an application counts for the first of its groups
    maximum TEXT, -- amounts: most that each may use. NULL: not limited
    max_applications INTEGER -- number: most applications that each may run. NULL: not limited
);
CREATE TABLE queue_usage ( -- each leaf, as long as its amounts stayed the same; as they were at the end of steps
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    queue TEXT NOT NULL, -- id: the leaf
    usage TEXT NOT NULL, -- amounts: what runs, what is leaving included
    pending TEXT NOT NULL, -- amounts: what waits
    preempting TEXT NOT NULL, -- amounts: what of the usage is being evicted
    pending_asks INTEGER NOT NULL, -- number: asks that wait
    allocations INTEGER NOT NULL, -- number: allocations that run
    applications INTEGER NOT NULL -- number: applications in it
);
CREATE TABLE queue_totals ( -- each queue that has others below it, as long as its amounts stayed the same; as they were at the end of steps
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    queue TEXT NOT NULL, -- id: the queue
    usage TEXT NOT NULL, -- amounts: what runs below it, what is leaving included
    pending TEXT NOT NULL -- amounts: what waits below it
);
CREATE TABLE nodes ( -- each node
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    node TEXT NOT NULL, -- id: its name
    capacity TEXT NOT NULL, -- amounts: what it has
    labels TEXT NOT NULL, -- json: its labels
    schedulable INTEGER NOT NULL -- bool: whether allocations may be bound to it
);
CREATE TABLE applications ( -- each application
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    fork INTEGER NOT NULL,
    application TEXT NOT NULL, -- id: of the application
    queue TEXT NOT NULL, -- id: the leaf it was placed in
    user TEXT NOT NULL, -- text: whose it is
    groups TEXT NOT NULL, -- json: the groups of the user
    created INTEGER NOT NULL -- time: when it was created, or its oldest ask
);
CREATE TABLE asks ( -- each ask, as long as it waited
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    fork INTEGER NOT NULL,
    ask TEXT NOT NULL, -- id: of the ask; the allocation has the same
    application TEXT NOT NULL, -- id: its application
    queue TEXT NOT NULL, -- id: its leaf
    resources TEXT NOT NULL, -- amounts: what it asks for
    priority INTEGER NOT NULL, -- number: its priority
    created INTEGER NOT NULL, -- time: when its owner created it
    required_node TEXT, -- id: the only node on which it may run. NULL: any
    outcome TEXT NOT NULL -- enum: how its wait ended, empty while it waits. One of: bound, withdrawn
);
CREATE TABLE attempts ( -- each ask that preemption was tried for, as long as the memory of it stayed the same
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    fork INTEGER NOT NULL,
    ask TEXT NOT NULL, -- id: of the ask
    first_cycle INTEGER, -- number: the first cycle that tried it in vain. NULL: none did
    preempted INTEGER NOT NULL, -- bool: whether others were evicted for it before
    failed TEXT NOT NULL -- text: why the last attempt failed; empty: it did not
);
CREATE TABLE allocations ( -- each allocation, a new row when its eviction is requested or called off
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    fork INTEGER NOT NULL,
    allocation TEXT NOT NULL, -- id: of the allocation; its ask had the same
    application TEXT NOT NULL, -- id: its application
    queue TEXT NOT NULL, -- id: its leaf
    node TEXT, -- id: where it runs. NULL: admitted by quota alone
    resources TEXT NOT NULL, -- amounts: what it uses
    priority INTEGER NOT NULL, -- number: its priority
    created INTEGER NOT NULL, -- time: when its ask was created
    bound INTEGER NOT NULL, -- time: when it was bound
    eviction_requested INTEGER NOT NULL, -- time: when its eviction was requested; 0: it was not
    victim_of TEXT NOT NULL, -- id: the ask that it makes room for; empty: none
    quota_of TEXT NOT NULL, -- id: the queue for whose maximum it is evicted; empty: none
    outcome TEXT NOT NULL -- text: the reason of its end, as whoever ended it says; empty: it runs, or another row follows
);
CREATE TABLE reservations ( -- each node that is kept for an ask
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    fork INTEGER NOT NULL,
    ask TEXT NOT NULL, -- id: of the ask
    node TEXT NOT NULL -- id: of the node
);
CREATE TABLE timers ( -- each timer, as long as it was armed
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    fork INTEGER NOT NULL,
    timer TEXT NOT NULL, -- id: of the timer
    due INTEGER NOT NULL, -- time: when it fires
    kind TEXT NOT NULL, -- text: what it does
    subject TEXT NOT NULL, -- id: what it is about
    cause INTEGER NOT NULL -- seq: of the event that armed it
);
CREATE TABLE pauses ( -- each pause of an application
    id INTEGER PRIMARY KEY, from_seq INTEGER NOT NULL, from_time INTEGER NOT NULL, to_seq INTEGER NOT NULL, to_time INTEGER NOT NULL,
    application TEXT NOT NULL, -- id: of the application
    queue TEXT NOT NULL, -- id: its leaf
    until INTEGER NOT NULL, -- time: when the pause was to end
    asks INTEGER NOT NULL, -- number: asks that no node had room for
    threshold INTEGER NOT NULL, -- number: how many are too many, by the queue's application.unschedasks.backoff
    outcome TEXT NOT NULL -- enum: how it ended, empty while it lasts. One of: time over, configuration, last ask bound, last ask withdrawn
);
CREATE TABLE preemptions ( -- each preemption that was decided
    seq INTEGER PRIMARY KEY, -- seq: of the decision
    time INTEGER NOT NULL, -- time: of the decision
    due INTEGER, -- time: when the timer behind it was due. NULL: no timer was
    ask TEXT NOT NULL, -- id: of the ask that preempts
    application TEXT NOT NULL, -- id: its application
    queue TEXT NOT NULL, -- id: its leaf
    priority INTEGER NOT NULL, -- number: its priority
    node TEXT, -- id: reserved for it. NULL: admission is by quota alone
    algorithm TEXT NOT NULL, -- enum: which algorithm decided. One of: guarantee, required-node, classic, fair
    cut INTEGER NOT NULL, -- bool: whether the search was cut off by its budget
    waited_ms INTEGER NOT NULL -- duration: from the ask's creation to the decision
);
CREATE TABLE victims ( -- each allocation whose eviction was decided
    seq INTEGER NOT NULL, -- seq: of the decision
    number INTEGER NOT NULL, -- number: its place among the victims of the decision, 0 for the first
    time INTEGER NOT NULL, -- time: of the decision
    allocation TEXT NOT NULL, -- id: of the victim
    application TEXT NOT NULL, -- id: its application
    queue TEXT NOT NULL, -- id: its leaf
    node TEXT, -- id: where it runs. NULL: admitted by quota alone
    resources TEXT NOT NULL, -- amounts: what it uses
    priority INTEGER NOT NULL, -- number: its priority
    reason TEXT NOT NULL, -- text: the rule that made it eligible
    message TEXT NOT NULL, -- text: the same as a sentence; may be empty
    for_ask TEXT, -- id: the ask that gets its room. NULL: a maximum is enforced
    for_queue TEXT NOT NULL, -- id: the queue that gains, or whose maximum is enforced
    kind TEXT NOT NULL, -- enum: the algorithm, or quota enforcement. One of: guarantee, required-node, classic, fair, quota
    PRIMARY KEY (seq, number)
) WITHOUT ROWID;
CREATE TABLE quota_actions ( -- each act of quota enforcement
    seq INTEGER PRIMARY KEY, -- seq: of the event
    time INTEGER NOT NULL, -- time: of the event
    due INTEGER, -- time: when the timer behind it was due. NULL: no timer was
    queue TEXT NOT NULL, -- id: whose maximum
    action TEXT NOT NULL, -- enum: what was done. One of: scheduled, cancelled, decided, unhelpful
    at INTEGER, -- time: when a scheduled one will fire. NULL: nothing was scheduled
    reason TEXT NOT NULL, -- text: why it was cancelled, or of no help; may be empty
    target TEXT NOT NULL, -- amounts: what has to go
    unmet TEXT NOT NULL, -- amounts: what of it stays
    victims INTEGER NOT NULL -- number: allocations that are evicted
);
CREATE TABLE rejected ( -- each proposal that was refused
    seq INTEGER PRIMARY KEY, -- seq: of the refusal
    time INTEGER NOT NULL, -- time: of the refusal
    code TEXT NOT NULL, -- enum: why. One of: malformed, duplicate, unknown, invalid, conflict, unsupported, internal-error
    reason TEXT NOT NULL, -- text: the sentence its producer should read
    proposal TEXT NOT NULL, -- id: of the proposal; may be empty
    source TEXT NOT NULL, -- text: the program that proposed; may be empty
    position INTEGER NOT NULL, -- number: its position in the inbox; -1: it did not come from there
    type TEXT NOT NULL, -- text: its event type; empty: it could not be read
    input TEXT NOT NULL, -- json: the proposal; what could not be read is text
    actor TEXT NOT NULL -- text: the person or account behind it; may be empty
);
CREATE TABLE failures ( -- each preemption that was tried in vain, and whose reason was written down
    seq INTEGER PRIMARY KEY, -- seq: of the event
    time INTEGER NOT NULL, -- time: of the event
    ask TEXT NOT NULL, -- id: of the ask
    queue TEXT NOT NULL, -- id: its leaf
    reason TEXT NOT NULL, -- text: why it failed
    cut INTEGER NOT NULL -- bool: whether the search was cut off by its budget
);
CREATE TABLE waits ( -- each queue and outcome of waits that ended, added up over 4,096 events, and again over 131,072
    events INTEGER NOT NULL, -- number: over how many events
    bucket INTEGER NOT NULL, -- number: seq / events
    queue TEXT NOT NULL, -- id: the leaf
    outcome TEXT NOT NULL, -- enum: how the waits ended. One of: bound, withdrawn
    asks INTEGER NOT NULL, -- number: how many ended
    waited_ms INTEGER NOT NULL, -- duration: all of them together
    longest_ms INTEGER NOT NULL, -- duration: the longest
    PRIMARY KEY (events, bucket, queue, outcome)
) WITHOUT ROWID;
CREATE TABLE victim_counts ( -- each queue and rule of victims, counted over 4,096 events, and again over 131,072
    events INTEGER NOT NULL, -- number: over how many events
    bucket INTEGER NOT NULL, -- number: seq / events
    kind TEXT NOT NULL, -- enum: the algorithm, or quota enforcement. One of: guarantee, required-node, classic, fair, quota
    queue TEXT NOT NULL, -- id: whose allocations
    reason TEXT NOT NULL, -- text: the rule that made them eligible
    victims INTEGER NOT NULL, -- number: how many
    PRIMARY KEY (events, bucket, kind, queue, reason)
) WITHOUT ROWID;
CREATE TABLE marks ( -- each application or node when it had changed a few times: what it uses at a moment is counted up from there
    kind TEXT NOT NULL, -- enum: what it is. One of: application, node
    name TEXT NOT NULL, -- id: of the application or node
    seq INTEGER NOT NULL, -- seq: after this event
    usage TEXT NOT NULL, -- amounts: what ran
    asks INTEGER NOT NULL, -- number: asks that waited; 0 for a node
    allocations INTEGER NOT NULL, -- number: allocations that ran
    PRIMARY KEY (kind, name, seq)
) WITHOUT ROWID;

-- name: create_indices()#
CREATE INDEX frame_by_time ON frames (time, seq);
CREATE INDEX frame_by_seq ON frames (seq);
CREATE INDEX queue_by_name ON queues (queue, from_seq);
CREATE INDEX user_limit_by_queue ON user_limits (queue, from_seq);
CREATE INDEX usage_by_queue ON queue_usage (queue, from_seq);
CREATE INDEX usage_by_seq ON queue_usage (from_seq);
CREATE INDEX total_by_queue ON queue_totals (queue, from_seq);
CREATE INDEX node_by_name ON nodes (node, from_seq);
CREATE INDEX application_by_id ON applications (application, from_seq);
CREATE INDEX application_by_start ON applications (fork, from_seq);
CREATE INDEX application_by_stop ON applications (fork, to_seq);
CREATE INDEX application_by_fork ON applications (fork, application, from_seq, to_seq);
CREATE INDEX ask_by_id ON asks (ask, from_seq);
CREATE INDEX ask_by_application ON asks (application, from_seq);
CREATE INDEX ask_by_start ON asks (fork, from_seq);
CREATE INDEX ask_by_end ON asks (to_seq);
CREATE INDEX ask_by_stop ON asks (fork, to_seq);
CREATE INDEX ask_by_fork ON asks (fork, ask, from_seq, to_seq, queue);
CREATE INDEX ask_waiting ON asks (created, ask) WHERE to_seq = 9223372036854775807;
CREATE INDEX attempt_by_ask ON attempts (ask, from_seq);
CREATE INDEX allocation_by_id ON allocations (allocation, from_seq);
CREATE INDEX allocation_by_application ON allocations (application, from_seq);
CREATE INDEX allocation_by_node ON allocations (node, from_seq);
CREATE INDEX allocation_gone ON allocations (application, to_seq);
CREATE INDEX allocation_gone_from ON allocations (node, to_seq);
CREATE INDEX ask_gone ON asks (application, to_seq);
CREATE INDEX allocation_by_start ON allocations (fork, from_seq);
CREATE INDEX allocation_by_stop ON allocations (fork, to_seq);
CREATE INDEX allocation_by_fork ON allocations (fork, allocation, from_seq, to_seq, queue);
CREATE INDEX reservation_by_ask ON reservations (ask, from_seq);
CREATE INDEX reservation_by_fork ON reservations (fork);
CREATE INDEX timer_by_fork ON timers (fork);
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
