"""The past over HTTP: what the command line asks in a terminal, a browser or a program asks here.

This room parses and renders and decides nothing. A question goes to the library of questions
(`replays.questions`), a proposal to `evsched.service.proposing`. Every answer belongs to a ``seq`` and
never changes, so it carries an ``ETag`` and may be kept for ever; one about the latest does not.
"""
