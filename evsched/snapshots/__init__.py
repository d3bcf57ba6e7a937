"""Snapshots: the state at a frame, kept beside the log so that no reader starts from its beginning."""
