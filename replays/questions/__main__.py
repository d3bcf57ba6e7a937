"""Write the schemas: ``python -m replays.questions``."""

from pathlib import Path

from replays.questions import schemas

for name, content in schemas().items():
    Path(__file__).with_name(name).write_bytes(content)
