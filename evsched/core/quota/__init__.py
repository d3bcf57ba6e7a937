"""Quota enforcement: usage above a lowered maximum or nominal quota is preempted after a delay; both families use it."""
