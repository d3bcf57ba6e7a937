"""What each event does to the state, a file a subject. Only `evsched.core.reducer` calls these functions."""
