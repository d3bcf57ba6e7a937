"""Write the schemas: ``python -m events.schemas``."""

from pathlib import Path

from events.schemas import schemas

for name, content in schemas().items():
    Path(__file__).with_name(name).write_bytes(content)
