"""The whole system from a seed.

A `story` draws machines, faults and traffic from its seed and runs the real asyncio code of the
service in virtual time (`loop`). What it meets is simulated: a `broker` at the end of a line, the
`disk` of its snapshots, its clock, and in some stories the consumer `group` that says who goes
first. Some have a process beside them that keeps a read model (`reading`). What comes of it goes
through `checkers`, which share no code with what they check. `sabotages` prove that they find something.
"""
