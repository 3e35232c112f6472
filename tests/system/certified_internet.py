"""A fake internet whose servers are vouched for by an authority that this host believes, in this
namespace."""
import os

import atoll
import fake_internet

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
NAMES = ("allowed.example", "api.example", "plain.example")  # of the server's certificate
for NAME in ("api.example", "plain.example", "misnamed.example"):
    fake_internet.NAMES[NAME] = [fake_internet.WEB]


class CertifiedInternet(fake_internet.FakeInternet):
    def make_certificate(self):
        authority = os.path.join(self.directory, "authority")
        run, curve = fake_internet.run, ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        run("openssl", "req", "-x509", *curve, "-nodes", "-days", "2", "-subj", "/CN=fake",
            "-keyout", authority + ".key", "-out", authority + ".crt")
        request, extensions = self.certificate + ".csr", self.certificate + ".ext"
        run("openssl", "req", *curve, "-nodes", "-subj", "/CN=web", "-keyout", self.certificate,
            "-out", request)
        with open(extensions, "w") as file:
            file.write("subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES) + "\n")
        run("openssl", "x509", "-req", "-in", request, "-CA", authority + ".crt", "-CAkey",
            authority + ".key", "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out",
            self.certificate + ".crt")
        with open(self.certificate, "a") as file:
            file.write(atoll.read(self.certificate + ".crt"))
        bundle = os.path.join(self.directory, "bundle.crt")
        with open(bundle, "w") as file:
            file.write(atoll.read(authority + ".crt"))
        os.chmod(bundle, 0o644)
        run("mount", "--bind", bundle, CERTIFICATES)
