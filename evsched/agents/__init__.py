"""What carries decisions out: programs that read the log and write to the inbox like any other."""
