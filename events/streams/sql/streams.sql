-- name: append_log!
insert into log (partition, position, data) values (?, ?, ?);

-- name: append_inbox!
insert into inbox (partition, position, id, source, data) values (?, ?, ?, ?, ?);

-- name: beat!
insert into heartbeat (partition, data) values (?, ?) on conflict (partition) do update set data = excluded.data;

-- name: log_end
select coalesce(max(position), -1) + 1 from log where partition = ?;

-- name: inbox_end
select coalesce(max(position), -1) + 1 from inbox where partition = ?;

-- name: read_log
select position, data from log where partition = ? and position > ? and position < ? order by position limit ?;

-- name: inbox_sizes
select length(data) from inbox where partition = ? and position >= ? order by position limit ?;

-- name: read_inbox
select position, id, source, data from inbox where partition = ? and position >= ? order by position limit ?;

-- name: last_beat
select data from heartbeat where partition = ?;

-- name: words
select data from heartbeat where partition < 0 order by partition;

-- name: guards
select name from sqlite_master where type = 'trigger' order by name;

-- name: identity_table
select name from sqlite_master where type = 'table' and name = 'inbox_identity';

-- name: identity
select id from inbox_identity;
