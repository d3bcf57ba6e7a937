-- The streams of evsched in one SQLite file: a log, an inbox and a heartbeat for each cluster partition.
-- What was written stays: the triggers refuse every change, and every record that does not come right after the last one.

create table if not exists log (
    partition integer not null,
    position integer not null check (position >= 0),
    data blob not null,
    primary key (partition, position)
) strict;

create trigger if not exists log_keeps_updated before update on log
begin select raise(abort, 'log is append-only: a record may not be changed'); end;

create trigger if not exists log_keeps_deleted before delete on log
begin select raise(abort, 'log is append-only: a record may not be removed'); end;

create trigger if not exists log_grows before insert on log
when new.position <> (select coalesce(max(position), -1) + 1 from log where partition = new.partition)
begin select raise(abort, 'log is append-only: a record may only follow the last one'); end;

create table if not exists inbox (
    partition integer not null,
    position integer not null check (position >= 0),
    id text not null,
    source text not null,
    data blob not null,
    primary key (partition, position)
) strict;

create trigger if not exists inbox_keeps_updated before update on inbox
begin select raise(abort, 'inbox is append-only: a record may not be changed'); end;

create trigger if not exists inbox_keeps_deleted before delete on inbox
begin select raise(abort, 'inbox is append-only: a record may not be removed'); end;

create trigger if not exists inbox_grows before insert on inbox
when new.position <> (select coalesce(max(position), -1) + 1 from inbox where partition = new.partition)
begin select raise(abort, 'inbox is append-only: a record may only follow the last one'); end;

-- Which inboxes these are: the log names this id, so that a log in another file does not read them by mistake.
create table if not exists inbox_identity (
    one integer primary key check (one = 1),
    id text not null
) strict;

insert or ignore into inbox_identity (one, id) values (1, lower(hex(randomblob(16))));

create trigger if not exists inbox_identity_keeps_updated before update on inbox_identity
begin select raise(abort, 'the identity of an inbox may not be changed'); end;

create trigger if not exists inbox_identity_keeps_deleted before delete on inbox_identity
begin select raise(abort, 'the identity of an inbox may not be removed'); end;

create table if not exists heartbeat (
    partition integer primary key,
    data blob not null
) strict;
