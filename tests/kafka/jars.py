"""Assembles an Apache Kafka broker from Maven Central: nothing but a folder of jars, kept from run to run.

`pom.xml` beside this file names the one artifact that is wanted; Maven finds what it depends on
(about 45 MB). The folder is `.kafka/VERSION` at the repository's root, which git ignores. Several
test processes may ask at once: a file lock lets one of them fetch, and a folder is used only when
it is complete, as it gets its name last.
"""

import fcntl
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.kafka.missing import BrokerUnavailable

DEFAULT_VERSION = "4.1.1"
KEPT = Path(__file__).resolve().parents[2] / ".kafka"
"""What is kept from run to run; git ignores it."""
_POM = Path(__file__).with_name("pom.xml")
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
_FETCH_SECONDS = 900
_OLDEST_JAVA = 17


def java() -> str:
    """Return the path of a `java` that can run Kafka 4; raise BrokerUnavailable when there is none."""
    path = shutil.which("java")
    if path is None:
        raise BrokerUnavailable("no `java` on the PATH (Kafka needs a JDK, 17 or newer)")
    said = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', said.stderr + said.stdout)
    if found is None or int(found[1]) < _OLDEST_JAVA:
        raise BrokerUnavailable(
            f"{path}: found version {found[1] if found else 'unknown'}, Kafka needs 17 or newer"
        )
    return path


def jars(version: str = DEFAULT_VERSION) -> Path:
    """Return the folder with the jars of Kafka `version`, fetching them when they are not there yet.

    Raises:
        BrokerUnavailable: Maven is missing, or it could not get the artifact; its own words are in
            the message.
    """
    folder = KEPT / version
    return made_once(folder, lambda temporary: _fetch(version, temporary))


def made_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Return a folder that is made by one process, all others waiting, and that has its name only when it is complete."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix="making-") as temporary:
                made = Path(temporary, "made")
                made.mkdir()
                make(made)
                made.rename(folder)
    return folder


def _fetch(version: str, folder: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise BrokerUnavailable("no `mvn` on the PATH (Maven collects the broker's jars)")
    command = [
        *(maven, "-B", "-q", "-f", str(_POM), _COPY, f"-Dkafka.version={version}"),
        *("-DincludeScope=runtime", f"-DoutputDirectory={folder}"),
    ]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise BrokerUnavailable(
            f"Maven did not deliver Kafka {version} within {_FETCH_SECONDS} s"
        ) from None
    if done.returncode:
        raise BrokerUnavailable(
            f"Maven could not get Kafka {version}: {(done.stdout + done.stderr).strip()[-600:]}"
        )
