-- Where the log speaks of whom. Every blob begins with the 16 bytes of a hash over the rest of it.

-- name: create_schema()#
CREATE TABLE covered (only INTEGER PRIMARY KEY CHECK (only = 1), facts BLOB NOT NULL);
CREATE TABLE stretch (number INTEGER PRIMARY KEY, head BLOB NOT NULL);
CREATE TABLE bucket (
    number INTEGER NOT NULL, first INTEGER NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (number, first)
) WITHOUT ROWID;

-- name: get_covered()^
SELECT facts FROM covered WHERE only = 1;

-- name: set_covered(facts)!
INSERT OR REPLACE INTO covered (only, facts) VALUES (1, :facts);

-- name: get_stretch(number)^
SELECT head FROM stretch WHERE number = :number;

-- name: add_stretches(number, head)*!
INSERT INTO stretch (number, head) VALUES (:number, :head);

-- name: get_bucket(number)
SELECT first, entries FROM bucket WHERE number = :number ORDER BY first;

-- name: add_buckets(number, first, entries)*!
INSERT INTO bucket (number, first, entries) VALUES (:number, :first, :entries);
