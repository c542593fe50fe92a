"""Authorities and certificates for tests of TLS, in files that can be changed while a listener uses them."""

from __future__ import annotations

from pathlib import Path

import trustme


class Certificates:
    """An authority of servers and one of clients, in a folder; `server` and `clients` say where what is."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cert, self.key = str(folder / "server.pem"), str(folder / "server.key")
        self.ca, self.client_ca = str(folder / "ca.pem"), str(folder / "client-ca.pem")
        self._servers = trustme.CA()
        self._servers.cert_pem.write_to_path(self.ca)
        self.renew()
        self.client = self.trust_new_clients()

    def renew(self) -> int:
        """A new certificate of the server; its serial number."""
        leaf = self._servers.issue_cert("localhost", "127.0.0.1")
        leaf.private_key_pem.write_to_path(self.key)
        Path(self.cert).write_bytes(b"".join(blob.bytes() for blob in leaf.cert_chain_pems))
        return _serial(leaf)

    def damage(self) -> None:
        """The server's certificate is none any more."""
        Path(self.cert).write_text("no certificate")

    def trust_new_clients(self, name: str = "client") -> tuple[str, str]:
        """From now on only clients of a new authority get in; certificate and key of one, as files."""
        authority = trustme.CA()
        leaf = authority.issue_cert(f"{name}.example", common_name=name)
        cert, key = str(self.folder / f"{name}.pem"), str(self.folder / f"{name}.key")
        leaf.cert_chain_pems[0].write_to_path(cert)
        leaf.private_key_pem.write_to_path(key)
        authority.cert_pem.write_to_path(self.client_ca)
        return cert, key

    def settings(self, *, clients: bool = False) -> dict[str, str]:
        """The `tls` section."""
        more = {"client_ca": self.client_ca} if clients else {}
        return {"cert": self.cert, "key": self.key} | more


def _serial(leaf: trustme.LeafCert) -> int:
    from cryptography import x509

    return x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes()).serial_number
