"""Read models of the log, kept in SQLite: every row is valid from one place of the log to another."""
