"""Any moment of a log: rebuild it, look at it, find it."""
