"""An event-sourced scheduler for shared clusters: the log of what happened and was decided is the scheduler."""
