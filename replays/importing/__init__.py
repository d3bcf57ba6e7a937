"""The past of another scheduler as a log: what it says of itself, as observations that decide nothing."""
