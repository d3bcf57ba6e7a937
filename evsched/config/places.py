"""Where in a document each part of a configuration was said.

A configuration knows nothing of files. Its rules name a subject (``queue root.a``) and a field
(``resources.max.vcore``); the places noted while reading lead from there to the closest node of the
document.
"""

from __future__ import annotations

from collections.abc import Mapping

from evsched.config.document import ParsedNode
from evsched.config.errors import Fault
from evsched.core.problem import Problem


class Places:
    """The nodes that say something about a subject.

    Attributes:
        scope: Name of the partition, which sets equal subjects of several partitions apart.
    """

    def __init__(
        self, scope: str = "", subjects: dict[tuple[str, str], ParsedNode] | None = None
    ) -> None:
        self.scope = scope
        self._subjects: dict[tuple[str, str], ParsedNode] = {} if subjects is None else subjects

    def within(self, scope: str) -> Places:
        """Return the same places, for the subjects of one partition."""
        return Places(scope, self._subjects)

    def note(
        self,
        subject: str,
        name: ParsedNode,
        whole: ParsedNode,
        fields: Mapping[str, ParsedNode] | None = None,
    ) -> None:
        """Note where a subject is named (or begins, when its name is not there), and where its fields stand.

        Of two subjects of one name the second is kept: it is the one to complain about.
        """
        place = whole if name.kind == "null" else name
        self._subjects[self.scope, subject] = ParsedNode(
            place.source, place.path, place.line, "mapping", fields=dict(fields or {})
        )

    def fault(self, problem: Problem, whole: ParsedNode) -> Fault:
        """Return a problem as a fault at the closest place known, in the last resort the document as a whole."""
        node = self._subjects.get((self.scope, problem.subject), whole)
        return _descend(node, problem.field).fault(problem.message)


def _descend(node: ParsedNode, field: str) -> ParsedNode:
    """Return the node that a field names below a node, as far down as the document goes.

    Keys may hold dots themselves, and the element of a list may be named by its number or by its
    field ``name``.
    """
    rest = field
    while rest:
        steps = [(key, child) for key, child in node.fields.items() if _leads(key, rest)]
        steps += [
            (f"[{index}]", child)
            for index, child in enumerate(node.items)
            if _leads(f"[{index}]", rest)
        ]
        named = [
            (child.fields["name"].text, child) for child in node.items if "name" in child.fields
        ]
        steps += [(name, child) for name, child in named if name and _leads(name, rest)]
        if not steps:
            break
        key, node = max(steps, key=lambda step: len(step[0]))
        rest = rest[len(key) :].removeprefix(".")
    return node


def _leads(key: str, rest: str) -> bool:
    """Return whether a key is the first step of the rest of a field."""
    return rest.startswith(key) and rest[len(key) : len(key) + 1] in {"", ".", "["}
