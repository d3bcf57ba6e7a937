"""`evsched dashboards`: what watches evsched, as files for Grafana and Prometheus."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from evsched.api import dashboards
from evsched.cli.answers import MISUSE, CommandError, emit, say
from evsched.cli.options import Json

app = App(name="dashboards", help="Write dashboards, rules and alerts for Grafana and Prometheus.")


@app.command
def export(folder: Path, /, *, json: Json = False) -> None:
    """Write two dashboards for Grafana, and recording rules and alerts for Prometheus, into a folder.

    What each alert means, what to type and what to expect is in docs/runbooks.md. Files of these
    names that are there already are replaced.

    **Example**

    `evsched dashboards export monitoring`

    Args:
        folder: Made when it is missing.
        json: A document a file.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in dashboards.FILES:
            path = folder / name
            path.write_text(dashboards.read(name), encoding="utf-8")
            if json:
                emit({"file": str(path)})
            else:
                say(f"wrote {path}")
    except OSError as error:
        raise CommandError(f"{folder}: {error.strerror}", MISUSE) from error
