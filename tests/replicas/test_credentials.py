"""The flags that lead to an etcd behind TLS with client certificates and users of its own."""

from __future__ import annotations

from pathlib import Path

import trustme

from tests.replicas.processes import Replica, etcdctl, prepare_pki
from tests.replicas.test_consistency import create, create_crd
from tests.storage.etcd_server import EtcdCluster


def test_tls_client_certificate_user_and_password(tmp_path: Path) -> None:
    prepare_pki(tmp_path)
    ca, cert, key = (str(tmp_path / name) for name in ("ca.pem", "cert.pem", "key.pem"))
    authority = trustme.CA()
    authority.cert_pem.write_to_path(ca)
    issued = authority.issue_cert("127.0.0.1")
    issued.private_key_and_cert_chain_pem.write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    password = tmp_path / "password"
    password.write_text("secret\n")
    tls = ("--cert-file", cert, "--key-file", key, "--trusted-ca-file", ca, "--client-cert-auth")
    flags = ("--etcd-cafile", ca, "--etcd-certfile", cert, "--etcd-keyfile", key)
    user = ("--etcd-username", "root", "--etcd-password-file", str(password))
    with EtcdCluster(tmp_path, members=1, extra=tls) as cluster:
        address = f"https://{cluster.addresses[0]}"
        client = ("--cacert", ca, "--cert", cert, "--key", key)
        for action in (("user", "add", "root:secret"), ("auth", "enable")):
            etcdctl(address, *client, *action)
        stranger = Replica(tmp_path, "stranger", f"etcd://{cluster.addresses[0]}", flags)
        friend = Replica(tmp_path, "friend", f"etcd://{cluster.addresses[0]}", (*flags, *user))
        try:
            stranger.start()
            friend.start()
            friend.until_ready()
            create_crd(friend, "secret.io")
            create(friend, "secret.io", "a")
            assert stranger.process is not None
            assert stranger.process.wait(20) != 0
            assert "permission denied" in stranger.log.read_text()
        finally:
            stranger.kill()
            friend.kill()
