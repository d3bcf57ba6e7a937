"""The shell around the pure core: it owns the clock, the network and the disk, and steps the engine."""
