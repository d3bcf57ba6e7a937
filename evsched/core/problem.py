"""One thing that is wrong with a configuration, apart from any file."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One rule that a configuration breaks.

    Attributes:
        subject: What breaks it: ``queue root.a``, ``partition default``, ``ClusterQueue team-a``,
            ``Cohort org``.
        field: Where in the subject, in the words of the file format: ``resources.max.vcore``; empty
            for the whole of it.
        message: A sentence with the subject first, what was found and what was expected.
        advisory: True when only a file is refused for it. A configuration that is given directly
            (an event, a scenario) is followed, because the real schedulers follow it too once it is
            past their loaders, and recorded decisions depend on that.
    """

    subject: str
    field: str
    message: str
    advisory: bool = False

    @property
    def path(self) -> str:
        """The subject and its field in one word for programs."""
        return f"{self.subject} {self.field}".rstrip()

    def __str__(self) -> str:
        """Return the message."""
        return self.message
