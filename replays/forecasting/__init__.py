"""How long will it wait: the engine runs forward from a moment, with lives and arrivals drawn from the log's own past."""
