"""Which frames of a log count, and what events they bring. Needs nothing but Python.

The rule is that of docs/consuming.md, "Which frames count".
"""

import hashlib
import json


class Steps:
    """Takes frames one after the other.

    `place` is where to go on: offset, hash, number and term of the last complete step. Keep it together with
    what you made of the events, in one transaction or one line.
    """

    def __init__(self, place=(-1, "", 0, 0)):
        self.place = tuple(place)
        _, self._hash, self._number, self._term = self.place
        self._frames = []

    def take(self, offset, data):
        """Return time and events of the step that this frame completes; None when it completes none."""
        frame = json.loads(data)
        if frame["prev"] != self._hash:
            if frame["frame"] > self._number + 1:
                raise SystemExit(f"offset {offset}: frame {frame['frame']} after {self._number}")
            return None  # void
        if frame["term"] != self._term:
            self._frames = []  # the leader before did not end its step
        self._hash = hashlib.blake2b(data, digest_size=16).hexdigest()
        self._number, self._term = frame["frame"], frame["term"]
        self._frames.append(frame)
        if not frame.get("last", True):
            return None
        frames, self._frames = self._frames, []
        self.place = (offset, self._hash, self._number, self._term)
        return frame["time"], list(events_of(frames))


def events_of(frames):
    """Yield the events of a step; one that is too large for a frame lies in several, as fragments."""
    text = ""
    for frame in frames:
        text += frame.get("fragment", "")
        if frame.get("fragment_ends"):
            yield json.loads(text)
            text = ""
        yield from frame.get("events", ())
