"""How a request shows whose it is: tokens, an issuer's tokens, certificates, and what a listed proxy says."""

from __future__ import annotations

import asyncio
import hashlib
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import jwt
import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm

from evsched.api.calls import Principal
from evsched.api.identity import (
    AccessSettings,
    Identities,
    ProxySettings,
    SettingsInvalid,
    TlsSettings,
    read_settings,
)
from evsched.api.oidc import OidcSettings
from evsched.api.problems import ApiProblem
from evsched.api.serving import HttpServer, Listen
from tests.api.served import kept, served_over
from tests.replays.logs import sealed, story

HERE = {"client": ("127.0.0.1", 4711)}


async def asked(identities, headers=None, scope=None):
    """Return who asks; None: it is refused."""
    try:
        return await identities.principal(scope or HERE, headers or {})
    except ApiProblem:
        return None


async def test_a_static_token_is_known_by_its_hash(tmp_path):
    """The file holds no token, and what is no token of it is refused."""
    digest = hashlib.sha256(b"s3cret").hexdigest()
    (tmp_path / "tokens").write_text(f"# who\n{digest} alice dev,ops\n")
    (tmp_path / "access.yaml").write_text("tokens: tokens\n")
    identities = read_settings(tmp_path / "access.yaml")
    assert not identities.open
    who = await asked(identities, {"authorization": "Bearer s3cret"})
    assert who == Principal(subject="alice", groups=("dev", "ops"))
    for header in (
        "Bearer other",
        f"Bearer {digest}",
        "Basic s3cret",
        "s3cret",
        "Bearer ",
        "Bearer é",
    ):
        assert await asked(identities, {"authorization": header}) is None, header
    assert await asked(identities) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "nobody could ask"),
        ("tokens: none", "No such file"),
        ("tokens: short", "short:1: expected SHA-256"),
        ("tokens: twice", "twice:2: the token stands in an earlier line"),
        ("colour: red", "colour"),
        ("proxy: {peers: []}", "proxy.peers"),
        ("proxy: {peers: [here]}", "here"),
        ("oidc: {issuer: 'http://example.com', audience: a}", "https"),
        ("a: [", "access.yaml"),
    ],
)
def test_settings_that_make_no_sense_are_refused(tmp_path, text, says):
    """With the file and the place; a server without anybody who could ask is one, too."""
    digest = hashlib.sha256(b"a").hexdigest()
    (tmp_path / "short").write_text("abc alice\n")
    (tmp_path / "twice").write_text(f"{digest} alice\n{digest} bob\n")
    (tmp_path / "access.yaml").write_text(text)
    with pytest.raises(SettingsInvalid, match=says):
        read_settings(tmp_path / "access.yaml")


async def test_a_proxy_is_believed_where_it_is_listed():
    """What anybody else says in its headers is nothing."""
    proxy = ProxySettings(peers=("10.1.0.0/16", "::1"), user="X-User", groups="X-Groups")
    identities = Identities(AccessSettings(proxy=proxy))
    headers = {"x-user": "alice", "x-groups": "dev, ops"}
    for peer, believed in (("10.1.2.3", True), ("::1", True), ("10.2.0.1", False), ("x", False)):
        who = await asked(identities, headers, {"client": (peer, 1)})
        assert (who is not None) is believed, peer
        if who is not None:
            assert who == Principal(subject="alice", groups=("dev", "ops"))
    assert await asked(identities, {}, {"client": ("10.1.2.3", 1)}) is None
    assert await asked(identities, headers, {"client": None}) is None


class Issuer:
    """An issuer of tokens, with its discovery document and keys."""

    def __init__(self):
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.fetched = []
        issuer = self

        class Pages(BaseHTTPRequestHandler):
            def do_GET(self):
                issuer.fetched.append(self.path)
                body = issuer.pages()[self.path]
                self.send_response(200)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

            def log_message(self, *_):
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Pages)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def pages(self):
        """Return what is served, by path."""
        key = {**ECAlgorithm.to_jwk(self.key.public_key(), as_dict=True), "kid": "k1", "use": "sig"}
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.address,
                "jwks_uri": f"{self.address}/keys",
            },
            "/keys": {"keys": [key]},
        }

    def token(self, key=None, algorithm="ES256", kid="k1", **changed):
        """Return a token with these claims changed; None leaves one out."""
        claims = {
            "iss": self.address, "aud": "evsched", "sub": "alice", "groups": ["dev"],
            "exp": time.time() + 60, **changed,
        }  # fmt: skip
        claims = {name: value for name, value in claims.items() if value is not None}
        return jwt.encode(claims, key or self.key, algorithm, headers={"kid": kid})


async def test_an_issuers_token_is_checked_in_everything():
    """Signature, issuer, audience and expiry; keys are fetched once and kept."""
    issuer = Issuer()
    oidc = OidcSettings(issuer=issuer.address, audience="evsched")
    identities = Identities(AccessSettings(oidc=oidc))
    try:
        for _ in range(2):
            who = await asked(identities, {"authorization": f"Bearer {issuer.token()}"})
            assert who == Principal(subject="alice", groups=("dev",))
        assert issuer.fetched == ["/.well-known/openid-configuration", "/keys"]
        other = ec.generate_private_key(ec.SECP256R1())
        body = issuer.token().split(".")
        bad = (
            issuer.token(key=other),
            issuer.token(iss="https://evil.example"),
            issuer.token(aud="another"),
            issuer.token(aud=None),
            issuer.token(exp=time.time() - 60),
            issuer.token(exp=None),
            issuer.token(sub=None),
            issuer.token(sub=""),
            issuer.token(key="0123456789abcdef0123456789abcdef", algorithm="HS256"),
            jwt.encode({"sub": "alice"}, None, "none", headers={"kid": "k1"}),
            ".".join((*body[:2], body[2][::-1])),
            "no.token.atall",
        )
        for token in bad:
            assert await asked(identities, {"authorization": f"Bearer {token}"}) is None, token
    finally:
        issuer.server.shutdown()
        issuer.server.server_close()


async def test_a_certificate_shows_who_asks(tmp_path):
    """One of an authority that is trusted; whoever has none may show a token, and a foreign one ends the connection."""
    authority, stranger = trustme.CA(), trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1")
    for name, blob in (
        ("server.pem", server.cert_chain_pems[0]),
        ("server.key", server.private_key_pem),
    ):
        blob.write_to_path(tmp_path / name)
    authority.cert_pem.write_to_path(tmp_path / "clients.pem")
    tls = TlsSettings(
        certificate=str(tmp_path / "server.pem"),
        key=str(tmp_path / "server.key"),
        clients=str(tmp_path / "clients.pem"),
    )
    url = f"sqlite://{tmp_path / 'log.db'}"
    await kept(sealed(story()), url)
    served = served_over(url, tmp_path, Identities(AccessSettings(tls=tls)))
    running_server = HttpServer(served, Listen("127.0.0.1", 0))
    running = asyncio.create_task(running_server.run(lambda: None))
    address = f"https://{running_server.listen.shown}"

    async def status(issuer):
        context = ssl.create_default_context()
        authority.configure_trust(context)
        if issuer is not None:
            issuer.issue_cert("alice@example.com", common_name="alice").configure_cert(context)
        async with httpx.AsyncClient(verify=context) as client:
            return (await client.get(f"{address}/v1/log")).status_code

    try:
        assert await status(authority) == 200
        assert await status(None) == 401
        with pytest.raises(httpx.TransportError):
            await status(stranger)
    finally:
        running_server.stop()
        await running
