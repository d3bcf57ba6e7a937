"""A real Kubernetes control plane on the loopback address: etcd, API server, controller manager and KWOK as kubelets.

Everything lies in a folder of its own and goes with it. The API server can be stopped and started on
its data and its port; the history of etcd can be compacted, so that a watch cannot go on where it was.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import httpx2

from tests.kafka.wire import free_ports
from tests.kubernetes.api import Api
from tests.kubernetes.binaries import STAGES, ControlPlaneUnavailable, binaries
from tests.kubernetes.credentials import Credentials
from tests.kubernetes.manifests import PATHS, manifests

AGENT = "system:serviceaccount:evsched:evsched-agent"
"""The name by which an API server knows the service account of the manifests."""

ACCOUNTS = "system:serviceaccounts"
_GUARD = Path(__file__).parents[1] / "kafka" / "guard.py"
_START_SECONDS = 120
_STOP_SECONDS = 20

_AUDITED = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - {level: Request, verbs: [create], resources: [{group: "", resources: [pods/binding, pods/eviction]}]}
  - {level: Metadata, verbs: [delete], resources: [{group: "", resources: [pods]}]}
  - {level: None}
"""
"""What an audited API server writes down: bindings, evictions and deletions of pods."""


class Program:
    """One program of the control plane; what it has to say is in a file."""

    def __init__(self, folder: Path, path: Path, arguments: list[str]) -> None:
        self._command = [str(path), *arguments]
        self.log = folder / f"{path.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, under a guard that ends it when this process is gone."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(_GUARD), *self._command],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    def stop(self) -> None:
        """Kill it, as a machine that fails would; the guard does that once its pipe ends."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(_STOP_SECONDS)
        self._process = None

    def check(self) -> None:
        """Raise where it has ended by itself, with its last words."""
        if self._process is None or self._process.poll() is not None:
            words = "\n".join(self.log.read_text(errors="replace").splitlines()[-5:])
            raise ControlPlaneUnavailable(f"{self.log.stem} ended by itself: {words}")


class ControlPlane:
    """The control plane.

    Attributes:
        url: Of the API server.
        credentials: Makes kubeconfigs of users.
        kubeconfig: That of an administrator.
        agent: The kubeconfig of the agent, whose rights are those of the manifests alone.
        api: Asks the API server as an administrator.
        audit: Where an audited API server writes down what it was asked, one JSON object a line.
    """

    def __init__(self, *, audited: bool = False) -> None:
        """Write keys and choose ports; nothing runs before `start`.

        Args:
            audited: The API server writes down who changed what, in the file ``audit``.
        """
        programs = binaries()
        self._folder = Path(tempfile.mkdtemp(prefix="evsched-kubernetes-"))
        client, peer, secure = free_ports(3)
        self.audit = self._folder / "audit.jsonl"
        self._audited = audited
        self._etcd_url = f"http://127.0.0.1:{client}"
        self.url = f"https://127.0.0.1:{secure}"
        self.credentials = Credentials(self._folder)
        self.kubeconfig = self.credentials.kubeconfig(self.url)
        self.agent = self.credentials.kubeconfig(self.url, AGENT, ACCOUNTS)
        self.api = Api(self.kubeconfig)
        self._etcd = Program(self._folder, programs / "etcd", _etcd(self._folder, client, peer))
        self._server = Program(
            self._folder, programs / "kube-apiserver", self._server_flags(secure)
        )
        config = f"--kubeconfig={self.kubeconfig}"
        accounts = f"--service-account-private-key-file={self.credentials.accounts}"
        self._others = [
            Program(
                self._folder,
                programs / "kube-controller-manager",
                [
                    config,
                    accounts,
                    f"--root-ca-file={self.credentials.authority}",
                    "--leader-elect=false",
                    "--secure-port=0",
                    "--kube-api-qps=300",
                    "--kube-api-burst=600",
                    "--v=1",
                ],
            ),
            Program(
                self._folder,
                programs / "kwok",
                [
                    config,
                    f"--config={programs / STAGES}",
                    "--manage-all-nodes=true",
                    "--node-lease-duration-seconds=40",
                ],
            ),
        ]

    def start(self) -> None:
        """Start everything and return when the API server is ready and has its default namespace."""
        self._etcd.start()
        self.start_server()
        for program in self._others:
            program.start()
        self.wait_for("/api/v1/namespaces/default/serviceaccounts/default")
        for role in manifests("ClusterRole", "ClusterRoleBinding"):
            self.api.create(PATHS[role["kind"]], role)

    def start_server(self) -> None:
        """Start the API server and return when it is ready."""
        self._server.start()
        self.wait_for("/readyz")

    def way(self, port: int) -> Path:
        """Return the agent's kubeconfig that leads to another port of this machine."""
        return self.credentials.kubeconfig(f"https://127.0.0.1:{port}", AGENT, ACCOUNTS)

    def stop_server(self) -> None:
        """Kill the API server; its data stay."""
        self._server.stop()

    def wait_for(self, path: str) -> None:
        """Return when the API server answers this path with success."""
        end = time.monotonic() + _START_SECONDS
        while True:
            self._server.check()
            self._etcd.check()
            try:
                if self.api.ask("GET", path).is_success:
                    return
            except httpx2.TransportError:
                pass
            if time.monotonic() > end:
                raise ControlPlaneUnavailable(
                    f"the API server did not answer {path} within {_START_SECONDS} seconds, see {self._server.log}"
                )
            time.sleep(0.05)

    def compact(self) -> None:
        """Forget the history of etcd up to now: the API server can no longer say what happened before."""
        at = httpx.post(f"{self._etcd_url}/v3/kv/range", json={"key": "AA=="}).raise_for_status()
        revision = at.json()["header"]["revision"]
        compaction = {"revision": revision, "physical": True}
        httpx.post(f"{self._etcd_url}/v3/kv/compaction", json=compaction).raise_for_status()

    def stop(self) -> None:
        """End everything and remove the folder."""
        self.api.close()
        for program in (*self._others, self._server, self._etcd):
            program.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _server_flags(self, port: int) -> list[str]:
        keys = self.credentials
        audit = []
        if self._audited:
            policy = self._folder / "audit.yaml"
            policy.write_text(_AUDITED)
            audit = [f"--audit-policy-file={policy}", f"--audit-log-path={self.audit}"]
        return [
            *audit,
            f"--etcd-servers={self._etcd_url}",
            "--etcd-compaction-interval=0",
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={keys.server}",
            f"--tls-private-key-file={keys.server_key}",
            f"--client-ca-file={keys.authority}",
            f"--service-account-key-file={keys.accounts}",
            f"--service-account-signing-key-file={keys.accounts}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            # A kill is a kill here: requests under way need no time to end.
            "--shutdown-delay-duration=0s",
            "--v=1",
        ]


def _etcd(folder: Path, client: int, peer: int) -> list[str]:
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=http://127.0.0.1:{client}",
        f"--advertise-client-urls=http://127.0.0.1:{client}",
        f"--listen-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
        f"--initial-cluster=default=http://127.0.0.1:{peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]
