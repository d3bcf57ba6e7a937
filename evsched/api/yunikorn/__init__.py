"""YuniKorn's scheduler API, answered from a state of this scheduler: ``/ws/v1``, field for field.

Everything but `routes` is a function from a state, and what the log says of its past, to an answer.
So an answer belongs to a ``seq`` and never changes. What evsched knows nothing of has YuniKorn's own
neutral value; docs/yunikorn-rest.md lists these fields.
"""
