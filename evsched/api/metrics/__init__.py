"""Metrics for Prometheus: what happened counted from the log, what is there read from the state.

Counters are kept as events are followed (`fold`), so a scrape costs what it shows and not what waits;
and they are functions of the log, so a restart changes none. They are shown in evsched's own names
(`own`), in YuniKorn's (`yunikorn`), and in Kueue's (`kueue`) where the configuration is Kueue's.
"""
