"""Scenario files: read, staged, run on a virtual clock, compared with what they expect."""
