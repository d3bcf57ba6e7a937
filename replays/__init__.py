"""Readers of the log that look back: rebuild, verify, explain and what-if, all of them loops over one engine."""
