"""Loading configurations: files, folders and mappings to the model, refused as a whole where anything is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from events.bounds import MAX_DOCUMENT
from events.configuration import Configuration, CustomSpec, KueueSpec
from evsched.config.document import MAX_FAULTS, ParsedNode, from_object, parse_yaml
from evsched.config.errors import ConfigurationError, Fault
from evsched.config.manifests import GROUPS, read_manifests
from evsched.config.objects import is_config_map, opened, pass_over, unfolded
from evsched.config.places import Places
from evsched.config.queues_yaml import read_queues
from evsched.config.reading import Reader
from evsched.core import configuration_checks

SUFFIXES = (".yaml", ".yml", ".json")
"""What is read of a folder."""

_SOURCE = "config"
_EXPECTED = "partitions (queues.yaml) or kind and apiVersion (Kueue manifests)"


class Loaded(Struct, frozen=True, kw_only=True):
    """Configurations that passed every check.

    Attributes:
        configurations: One for each partition.
        warnings: What was accepted but is worth knowing.
        text: What was read, for audits; several files are joined as documents of one, each after a
            line that names its file.
    """

    configurations: tuple[Configuration, ...]
    warnings: tuple[Fault, ...] = ()
    text: str = ""


def load(paths: Iterable[str | Path]) -> Loaded:
    """Load configuration files; the format is told by their content.

    Args:
        paths: One queues.yaml, or any number of files and folders with Kueue manifests. A folder
            stands for its ``.yaml``, ``.yml`` and ``.json`` files, those of its folders included,
            in the order of their names.

    Raises:
        ConfigurationError: Something is wrong, with everything that is.
    """
    named = tuple(paths)
    texts = [(str(path), _read(path)) for path in _files(named)]
    if not texts:
        source = ", ".join(map(str, named)) or _SOURCE
        raise ConfigurationError(
            (Fault(source, 0, "", f"found no file, expected one of {', '.join(SUFFIXES)}"),)
        )
    return load_texts(texts)


def load_texts(texts: Iterable[tuple[str, str]]) -> Loaded:
    """Load configuration texts, each with the name that its faults carry.

    Raises:
        ConfigurationError: As `load`.
    """
    named = tuple(texts)
    documents: list[ParsedNode] = []
    faults: list[Fault] = []
    for source, text in named:
        try:
            documents.extend(parse_yaml(text, source))
        except ConfigurationError as error:
            faults.extend(error.faults)
    text = (
        named[0][1]
        if len(named) == 1
        else "".join(f"---\n# {source}\n{text.rstrip()}\n" for source, text in named)
    )
    if not documents and not faults:
        source = ", ".join(source for source, _ in named) or _SOURCE
        faults.append(Fault(source, 0, "", f"is empty, expected {_EXPECTED}"))
    try:
        loaded = _loaded(tuple(documents), text) if documents else None
    except ConfigurationError as error:
        faults.extend(error.faults)
    if faults or loaded is None:
        raise ConfigurationError(tuple(faults))
    return loaded


def load_mapping(form: str, document: Any, source: str = _SOURCE) -> Loaded:
    """Load a configuration that was parsed elsewhere, as the ``config`` of a scenario file.

    Two rules that only a file must keep give a warning here
    (`evsched.core.problem.Problem.advisory`).

    Args:
        form: ``yunikorn``: ``document`` is that of a queues.yaml; ``kueue``: it is a list of
            manifests.
        document: What a JSON or YAML parser made of it.
        source: The name that faults carry.

    Raises:
        ConfigurationError: As `load`.
    """
    match form:
        case "yunikorn":
            return _loaded_queues(from_object(document, source, "queues"), direct=True)
        case "kueue":
            node = from_object(document, source, "objects")
            if node.kind != "list":
                raise ConfigurationError(
                    (node.fault(f"found {node.found()}, expected a list of manifests"),)
                )
            return _loaded_manifests(tuple(node.items), direct=True)
        case "custom":
            return _loaded_custom(document, source)
        case _:
            raise ConfigurationError(
                (Fault(source, 0, "format", f"found {form!r}, expected yunikorn or kueue"),)
            )


def _loaded_custom(document: Any, source: str) -> Loaded:
    """Return the configuration of an added family; its own rules are judged where it is applied."""
    try:
        spec = msgspec.convert(document, CustomSpec)
    except msgspec.ValidationError as error:
        raise ConfigurationError((Fault(source, 0, "custom", str(error)),)) from error
    return Loaded(configurations=(spec,), warnings=())


def from_mapping(form: str, document: Any, source: str = _SOURCE) -> tuple[Configuration, ...]:
    """Return the configurations of `load_mapping`, one for each partition.

    Raises:
        ConfigurationError: As `load`.
    """
    return load_mapping(form, document, source).configurations


def _loaded(documents: tuple[ParsedNode, ...], text: str) -> Loaded:
    """Return the configurations of documents whose format is told by their content."""
    reader = Reader()
    documents = unfolded(documents)
    maps = tuple(filter(is_config_map, documents))
    queues = [document for document in documents if "partitions" in document.fields]
    if queues and len(documents) > 1:
        message = "found a queues.yaml beside other documents, expected it alone"
        raise ConfigurationError((queues[0].fault(message),))
    if maps:
        inner = opened(maps, reader)
        reader.finish()
        assert inner is not None  # else there was a fault
        loaded = _loaded_queues(inner)
    elif queues:
        loaded = _loaded_queues(queues[0])
    elif any(
        "kind" in document.fields or "apiVersion" in document.fields for document in documents
    ):
        loaded = _loaded_manifests(documents)
    else:
        raise ConfigurationError(
            (_first(documents).fault(f"found neither {_EXPECTED.replace(' or ', ' nor ')}"),)
        )
    loaded = replace(loaded, warnings=(*reader.warnings, *loaded.warnings))
    return Loaded(configurations=loaded.configurations, warnings=loaded.warnings, text=text)


def _loaded_queues(document: ParsedNode, *, direct: bool = False) -> Loaded:
    """Return the partitions of a queues.yaml document."""
    reader, places = Reader(), Places()
    specs = read_queues(document, reader, places)
    seen: set[str] = set()
    for index, spec in enumerate(specs):
        if spec.partition.lower() in seen:
            node = document.fields["partitions"].items[index]
            reader.refuse(node, f"found partition {spec.partition} a second time, expected once")
        seen.add(spec.partition.lower())
    return _judged(specs, (document,), (reader, places), direct=direct)


def _loaded_manifests(documents: tuple[ParsedNode, ...], *, direct: bool = False) -> Loaded:
    """Return the configuration of Kueue manifests."""
    reader, places = Reader(), Places()
    documents = pass_over(unfolded(documents), reader, GROUPS)
    spec = read_manifests(documents, reader, places)
    return _judged((spec,), documents, (reader, places), direct=direct)


def _first(documents: tuple[ParsedNode, ...]) -> ParsedNode:
    """Return the document to which everything belongs that has no better place."""
    return documents[0] if documents else ParsedNode(_SOURCE, "", 0, "null")


def _judged(
    specs: tuple[Configuration, ...],
    documents: tuple[ParsedNode, ...],
    read: tuple[Reader, Places],
    *,
    direct: bool,
) -> Loaded:
    """Return configurations that break no rule; what only a file is refused for is a warning where they are given directly."""
    reader, places = read
    unread = tuple(reader.faults)
    whole = _first(documents)
    for spec in specs:
        found = places if isinstance(spec, KueueSpec) else places.within(spec.partition)
        # What could not be read may be just what a remark misses.
        if not unread:
            for problem in configuration_checks.remarks(spec):
                reader.warnings.append(found.fault(problem, whole))
        for problem in configuration_checks.file_problems(spec):
            fault = found.fault(problem, whole)
            if any(_follows(fault, one, documents) for one in unread):
                continue
            (reader.warnings if direct and problem.advisory else reader.faults).append(fault)
    if unread:
        # Told in the order of each file, whichever pass found them.
        reader.faults.sort(key=lambda fault: (fault.source, fault.line))
    del reader.faults[MAX_FAULTS:]
    reader.finish()
    return Loaded(configurations=specs, warnings=tuple(reader.warnings))


def _follows(fault: Fault, unread: Fault, documents: tuple[ParsedNode, ...]) -> bool:
    """Tell whether a rule may only seem broken, because something that it looks at could not be read.

    It looks at its own place, what is below and what is above. Placement rules look at the names of
    all queues.
    """
    if _document_of(fault, documents) != _document_of(unread, documents):
        return False
    if ".placementrules[" in fault.path and ".queues" in unread.path:
        return True
    short, long = sorted((fault.path, unread.path), key=len)
    return not short or (long.startswith((f"{short}.", f"{short}["))) or long == short


def _document_of(fault: Fault, documents: tuple[ParsedNode, ...]) -> tuple[str, int]:
    """Return the file of a fault and the line in which its document begins; paths are those of a document."""
    begins = [one.line for one in documents if one.source == fault.source]
    return fault.source, max((line for line in begins if line <= fault.line), default=0)


def _files(paths: Iterable[str | Path]) -> list[Path]:
    """Return the files that paths stand for, folders resolved."""
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            files.extend(
                sorted(
                    file for file in path.rglob("*") if file.suffix in SUFFIXES and file.is_file()
                )
            )
        else:
            files.append(path)
    return files


def _read(path: Path) -> str:
    """Return the text of a file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT + 1)
    except OSError as error:
        raise ConfigurationError(
            (Fault(str(path), 0, "", f"cannot be read: {error.strerror}"),)
        ) from error
    if len(data) > MAX_DOCUMENT:
        raise ConfigurationError(
            (
                Fault(
                    str(path), 0, "", f"found more than {MAX_DOCUMENT} bytes, expected at most that"
                ),
            )
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            (Fault(str(path), 0, "", f"is no UTF-8 text: {error.reason} at byte {error.start}"),)
        ) from error
