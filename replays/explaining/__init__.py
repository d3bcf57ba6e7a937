"""Why something was decided, and what would be decided."""
