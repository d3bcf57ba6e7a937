"""`evsched agent`: what connects the log to a real cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import yaml
from cyclopts import App, Parameter

from events.configuration import Configuration
from events.errors import StreamError
from evsched.agents.kubernetes.masking import Masking, MaskingRules
from evsched.cli.acting import ACT, ActingOptions, act
from evsched.cli.answers import CommandError, say
from evsched.cli.logs import HERE, Where, as_command_error, streams_of
from evsched.config import load_texts
from evsched.service.logs import configure

if TYPE_CHECKING:
    from evsched.agents.kubernetes.connection import ApiServer
    from evsched.agents.kubernetes.objects import ObjectKind
    from evsched.agents.kubernetes.queues import Queues

app = App(name="agent", help="Connect the log to a real cluster.")


@app.command
async def kubernetes(  # noqa: PLR0913 - the options of a command
    *,
    where: Where = HERE,
    mode: Annotated[Literal["record", "shadow", "act"], Parameter(negative=())],
    kubeconfig: Path | None = None,
    context: str | None = None,
    yunikorn: str | None = None,
    kueue: str | None = None,
    mask: Path | None = None,
    log_format: Literal["console", "json"] = "console",
    acting: ActingOptions = ACT,
) -> None:
    """Write what happens in a Kubernetes cluster into the inbox, until Ctrl-C; with --mode act, also bind and evict there.

    Nodes and pods are listed and watched; what differs from the log is proposed, so it can be
    stopped and started at any time. Where a watch lost its place, an ObservationGap says so. It
    needs the extra evsched[kubernetes], and the rights of deploy/kubernetes.

    With record and shadow nothing in the cluster is changed: whoever schedules there goes on doing
    so, and the log is led by `evsched run --observe`, which decides nothing. With act the log is
    led by `evsched run`, and what it decides is carried out for the pods that name the scheduler.

    **Examples**

    `evsched agent kubernetes --mode record`

    `evsched agent kubernetes --mode record --yunikorn yunikorn --mask names.yaml`

    `evsched agent kubernetes --mode record --kueue kueue-system`

    `evsched agent kubernetes --mode act --honour-pdb best-effort`

    Args:
        where: Which log.
        mode: record: the cluster is watched. shadow: the same, for `evsched shadow report`, which
            says where evsched would have decided otherwise. act: what the log decides is carried
            out.
        kubeconfig: How to reach the cluster; by default the service account of the pod that this
            runs in, else the file that KUBECONFIG names, else ~/.kube/config.
        context: Of that file; its current one by default.
        yunikorn: The namespace of YuniKorn, whose ConfigMap has the queues. Without it a log that
            has no configuration gets one queue for each namespace.
        kueue: The namespace of Kueue, whose Workloads are then recorded in place of nodes and pods,
            under the ClusterQueues, Cohorts, LocalQueues, flavors and priorities of the cluster.
        mask: YAML file that says which namespaces, users and labels are not to be in the log
            (docs/kubernetes.md).
        log_format: How this process tells what it does, on the standard error: for people or for
            machines.
        acting: How decisions are carried out.
    """
    try:
        from evsched.agents.kubernetes.connection import ConfigError, connected  # noqa: PLC0415
    except ImportError as error:
        raise CommandError(
            f"agent kubernetes: {error.name} is not installed, expected the extra evsched[kubernetes]"
        ) from error
    from evsched.agents.kubernetes.reading import Reading  # noqa: PLC0415 - quick commands start quickly
    from evsched.agents.kubernetes.recording import ClusterRecording  # noqa: PLC0415

    if yunikorn is not None and kueue is not None:
        raise CommandError("agent kubernetes: found --yunikorn and --kueue, expected one of them")
    if mode == "act" and kueue is not None:
        raise CommandError(
            "agent kubernetes: found --mode act and --kueue, expected record or shadow with Workloads"
        )
    masking = _masking(mask)
    configure(log_format)
    try:
        async with (
            connected(kubeconfig, context) as cluster,
            streams_of(where, create=True) as streams,
        ):
            queues, workloads = await _queues(cluster, masking, yunikorn, kueue)
            reading = Reading(masking=masking)
            if mode == "act":
                await act(streams, cluster, reading, queues, acting)
                return
            say(f"recording into {streams.inbox.name}")
            await ClusterRecording(streams, cluster, reading, queues, workloads).run()
    except ConfigError as error:
        raise CommandError(f"--kubeconfig: {error}") from error
    except StreamError as error:
        raise as_command_error(error) from error


async def _queues(
    cluster: ApiServer, masking: Masking, yunikorn: str | None, kueue: str | None
) -> tuple[Queues | None, ObjectKind | None]:
    """Return where the cluster keeps its queues, and the kind of its Workloads where Kueue runs there."""
    from evsched.agents.kubernetes import kueue as of_kueue  # noqa: PLC0415
    from evsched.agents.kubernetes.reflecting import Unavailable  # noqa: PLC0415
    from evsched.agents.kubernetes.yunikorn import YunikornQueues  # noqa: PLC0415

    if kueue is None:
        return None if yunikorn is None else YunikornQueues(yunikorn, _configuration), None
    try:
        served = await cluster.versions(of_kueue.GROUP)
    except Unavailable as error:
        raise CommandError(f"--kueue {kueue}: the API server said {error.reason}") from error
    version = next((one for one in served if one in of_kueue.VERSIONS), None)
    if version is None:
        raise CommandError(
            f"--kueue {kueue}: the cluster serves {of_kueue.GROUP} in {', '.join(served) or 'no version'},"
            f" expected one of {', '.join(of_kueue.VERSIONS)}"
        )
    queues = of_kueue.KueueQueues(kueue, version, masking, _configuration)
    return queues, of_kueue.workloads_in(version)


def _configuration(text: str) -> Configuration:
    """Return the first configuration of a text, as the agent cannot read one itself."""
    return load_texts([("the cluster", text)]).configurations[0]


def _masking(path: Path | None) -> Masking:
    if path is None:
        return Masking()
    try:
        return Masking(msgspec.convert(yaml.safe_load(path.read_text()), MaskingRules))
    except (OSError, yaml.YAMLError, ValueError) as error:
        message = getattr(error, "strerror", None) or error
        raise CommandError(f"--mask {path}: {message}") from error
