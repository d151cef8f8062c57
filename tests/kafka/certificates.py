"""Certificates for tests, made with openssl: an authority of the test's own, and what it signs."""

import subprocess
from pathlib import Path
from typing import NamedTuple

LOOPBACK = "IP:127.0.0.1"


class Signed(NamedTuple):
    """Files of PEM: a certificate and its key."""

    certificate: Path
    key: Path


class Authority:
    """One that signs certificates, in a folder."""

    def __init__(self, folder, name="authority"):
        self.folder = folder
        self.certificate, self.key = self_signed(folder, name)

    def sign(self, name, *alternatives):
        """Return a certificate of a name, which may be that of a server at addresses such as IP:127.0.0.1."""
        made = Signed(self.folder / f"{name}.pem", self.folder / f"{name}.key")
        options = ["-CA", str(self.certificate), "-CAkey", str(self.key)]
        _request(made, name, [*options, *_alternatives(alternatives)])
        return made

    def server(self, name="broker", address=LOOPBACK):
        """Return what a broker of deploy/kafka takes as `tls`; it trusts those whom this authority signed."""
        return (*self.sign(name, address), self.certificate)


def self_signed(folder, name, *alternatives):
    """Return a certificate that signs itself."""
    made = Signed(folder / f"{name}.pem", folder / f"{name}.key")
    _request(made, name, _alternatives(alternatives))
    return made


def encrypted(key, password):
    """Return a copy of a key that only a password opens."""
    made = key.with_suffix(".encrypted")
    command = ["openssl", "pkey", "-in", key, "-aes256", "-passout", f"pass:{password}", "-out", made]
    subprocess.run(command, check=True, capture_output=True)
    return made


def _request(made, name, options):
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={name}", *options]
    command += ["-keyout", str(made.key), "-out", str(made.certificate)]
    subprocess.run(command, check=True, capture_output=True)
    made.key.chmod(0o600)


def _alternatives(names):
    return ["-addext", f"subjectAltName={','.join(names)}"] if names else []
