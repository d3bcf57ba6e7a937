"""An emulated cluster: it evicts, ends and creates again what the log says, and there is nothing behind it."""
