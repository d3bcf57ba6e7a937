"""What a broker's start need not do again: format its folder by a program of its own, and load its classes one by one.

Both make more than half of a start. So the first broker of a clone teaches all later ones: from
its formatting the file with Kafka's feature levels is kept (all that a formatted folder holds
beside its ids), and at its end the JVM writes an archive of the classes that it has loaded, which
others map into memory (JEP 350). A JVM to which the archive does not fit loads the classes itself.
"""

import base64
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

from tests.kafka import jars

CHECKPOINT = "bootstrap.checkpoint"
CLASSES = "classes.jsa"


def learned(version: str, learn: Callable[[str, Path], None]) -> Path:
    """Return the folder with what the first broker of a release has taught; ``learn`` runs that broker if none has yet."""
    return jars.made_once(
        jars.KEPT / f"{version}-learned", lambda folder: learn(version, folder)
    ).resolve()


def known_classes(folder: Path) -> list[str]:
    """Return the options of Java with which a broker starts from the archive of classes."""
    return ["-Xshare:auto", f"-XX:SharedArchiveFile={folder / CLASSES}", "-Xlog:cds*=off"]


def format_as_learned(data: Path, folder: Path, node: str, cluster: str) -> None:
    """Make a broker's data folder as Kafka's own tool makes it, for this node of this cluster."""
    data.mkdir()
    shutil.copyfile(folder / CHECKPOINT, data / CHECKPOINT)
    ids = {"version": "1", "cluster.id": cluster, "node.id": node, "directory.id": new_id()}
    (data / "meta.properties").write_text(
        "".join(f"{name}={value}\n" for name, value in ids.items())
    )


def new_id() -> str:
    """Return a new id as Kafka writes them, which does not begin with a hyphen."""
    return "e" + base64.urlsafe_b64encode(uuid.uuid4().bytes).decode()[1:22]
