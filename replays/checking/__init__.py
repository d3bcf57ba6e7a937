"""Whether a log is what its rules decide, and what other rules or configurations would have decided."""
