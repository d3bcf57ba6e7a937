"""The vocabulary of evsched and the streams that keep it.

Everything that happened to a cluster partition and everything that was decided about it is one of
the frozen event types of `events.vocabulary`. The events of one step travel as one
`events.frame.Frame`. Nothing here imports any other package of ours.
"""
