"""Makes the image of the selftest: the hostile programs and what a hostile image may hold.

usage: build_image.py MKFS_EROFS VICTIMS TEMPLATE_TOML LIST_TSV OUT_DIRECTORY

Needs no rights, but only root can give a file capabilities: without, that victim is not tried. The
same inputs give the same digest.
"""
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile

TIMESTAMP = "1700000000"
UUID = "a7011a70-11a7-4011-a701-1a7011a7015e"
DIRECTORIES = {"dev": 0o755, "proc": 0o555, "sys": 0o555, "run": 0o755, "tmp": 0o1777, "etc": 0o755,
               "mnt": 0o755, "var": 0o755, "var/tmp": 0o1777, "home": 0o755, "home/user": 0o777,
               "root": 0o700, "victims": 0o755, "victims/names": 0o755}
FILES = {
    # Paths inside. tidy: allow(/root)
    "etc/passwd": "root:*:0:0::/root:/bin/sh\nuser:*:1000:1000::/home/user:/bin/sh\n",
    "etc/group": "root:x:0:\nuser:x:1000:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/shadow": "root:!:19000:0:99999:7:::\n",
}
HOSTILE_NAMES = ["-rf", " leading", "new\nline", "escape\x1b]0;title\x07", "quote\"'`$(reboot)",
                 "\u202egnp.exe", "x" * 200]
LINKS = {"victims/up": "../../../../../../../../../..", "victims/shadow": "/etc/shadow",
         "victims/host-proc": "/proc/1/root", "victims/loop": "loop"}
# Every capability permitted and effective, as setcap writes it (VFS_CAP_REVISION_2).
ALL_CAPABILITIES = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)


def make_tree(root, victims):
    for path, mode in DIRECTORIES.items():
        os.mkdir(f"{root}/{path}")
        os.chmod(f"{root}/{path}", mode)
    for path, text in FILES.items():
        with open(f"{root}/{path}", "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(f"{root}/{path}", 0o600 if path == "etc/shadow" else 0o644)
    for name in HOSTILE_NAMES:
        with open(f"{root}/victims/names/{name}", "w", encoding="utf-8") as file:
            file.write("hostile\n")
    for path, target in LINKS.items():
        os.symlink(target, f"{root}/{path}")
    for name, mode in (("atoll-victims", 0o755), ("set-user-id", 0o6755), ("capable", 0o755)):
        shutil.copy(victims, f"{root}/victims/{name}")
        os.chmod(f"{root}/victims/{name}", mode)
    # The interpreter of this script is whoever executes it: CVE-2019-5736.
    with open(f"{root}/victims/self-exe", "w", encoding="utf-8") as file:
        file.write("#!/proc/self/exe\n")
    os.chmod(f"{root}/victims/self-exe", 0o755)
    if os.geteuid() == 0:
        os.setxattr(f"{root}/victims/capable", "security.capability", ALL_CAPABILITIES)


def main():
    mkfs, victims, manifest, table, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    os.umask(0o022)
    with tempfile.TemporaryDirectory() as work:
        root = f"{work}/root"
        os.mkdir(root)
        os.chmod(root, 0o755)
        make_tree(root, victims)
        image = f"{work}/image.erofs"
        # Files begin and end at blocks of their own, or gVisor could not run them.
        subprocess.run([mkfs, "--quiet", "--all-root", "-T", TIMESTAMP, "-U", UUID, "-E",
                        "noinline_data", image, root],
                       check=True, stdout=subprocess.DEVNULL)
        with open(image, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        shutil.copy(image, f"{out}/image.erofs")
        os.chmod(f"{out}/image.erofs", 0o644)
    shutil.copy(manifest, f"{out}/template.toml")
    shutil.copy(table, f"{out}/victims.tsv")
    with open(f"{out}/digest", "w", encoding="ascii") as file:
        file.write(digest + "\n")


main()
