"""A root small enough to build in a second: dash, a few programs and the libraries they need."""
import gzip
import hashlib
import io
import json
import lzma
import os
import subprocess
import tarfile

PROGRAMS = ("/bin/sh", "/bin/cat", "/bin/ls", "/bin/mkdir", "/bin/stat", "/bin/sleep", "/bin/dd")


def libraries(program):
    printed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return {word for word in printed.split() if word.startswith("/")}


def entry(name, data=b"", mode=0o644, uid=0, kind=tarfile.REGTYPE, link=""):
    made = tarfile.TarInfo(name)
    made.size, made.mode, made.uid, made.gid, made.type = len(data), mode, uid, uid, kind
    made.linkname, made.mtime = link, 1600000000
    return made, data


def tar(entries):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for info, data in entries:
            archive.addfile(info, io.BytesIO(data))
    return made.getvalue()


def system_entries():
    files = {path for program in PROGRAMS for path in (program, *libraries(program))}
    for path in sorted(files):
        with open(path, "rb") as file:
            yield entry(path.lstrip("/"), file.read(), 0o755)


def root_tar(*extra):
    return tar([*system_entries(), *extra])


def compress(data, kind):
    if kind == "gz":
        return gzip.compress(data, 1)
    if kind == "xz":
        return lzma.compress(data, preset=0)
    return subprocess.run(["zstd", "-q", "-1"], input=data, capture_output=True, check=True).stdout


def manifest(name, source, more=""):
    return f'name = "{name}"\ndescription = "for tests"\n[image]\n{source}\n{more}\n'


def pack(name, source, files=None, more="", top=""):
    text = top + manifest(name, source, more)
    entries = [entry("template.toml", text.encode())]
    entries += [entry(path, data) for path, data in (files or {}).items()]
    return tar(entries)


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


class OciImage:
    """Blobs by digest, and the manifest list that leads to them."""

    def __init__(self, *layers):
        self.blobs = {}
        config = self.add(json.dumps({"architecture": "amd64", "os": "linux"}).encode())
        made = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": config, "layers": [self.add(gzip.compress(layer, 1)) for layer in layers]}
        self.manifest = self.add(json.dumps(made).encode())
        other = self.add(b'{"schemaVersion": 2, "layers": []}')
        index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                 "manifests": [{**other, "platform": {"os": "linux", "architecture": "s390x"}},
                               {**self.manifest,
                                "platform": {"os": "linux", "architecture": "amd64"}}]}
        self.index = json.dumps(index).encode()

    def add(self, data):
        self.blobs[digest(data)] = data
        return {"digest": digest(data), "size": len(data), "mediaType": "application/octet-stream"}

    def layout(self):
        """Files of an OCI layout directory."""
        files = {"blobs/sha256/" + name.split(":")[1]: data for name, data in self.blobs.items()}
        top = self.add(self.index)
        files["blobs/sha256/" + top["digest"].split(":")[1]] = self.index
        files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [top]}).encode()
        files["oci-layout"] = b'{"imageLayoutVersion": "1.0.0"}'
        return files
