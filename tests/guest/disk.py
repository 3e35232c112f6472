"""What a guest boots from: Debian 12's cloud kernel, a first RAM file system that finds the disk,
and a disk with the programs of this host's packages, the release build and commands to run.

Kernel and busybox are fetched as packages but never installed. All of it is in build/guest.
"""
import glob
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILD = os.path.join(ROOT, "build", "guest")
RELEASE = os.path.join(ROOT, "build", "release", "bin")

KERNEL_PACKAGE = "linux-image-cloud-amd64"
# Their files and those of everything they depend on are copied from this host.
PACKAGES = ["bash", "dash", "coreutils", "util-linux", "mount", "findutils", "grep", "sed",
            "hostname", "procps", "passwd", "libc-bin", "binutils", "btrfs-progs", "erofs-utils",
            "python3", "libstdc++6", "libsqlite3-0", "libssl3", "libarchive13", "libcurl4",
            "libc-ares2"]
NOT_COPIED = ("/usr/share/doc", "/usr/share/man", "/usr/share/locale", "/usr/share/info",
              "/usr/share/perl", "/usr/lib/x86_64-linux-gnu/perl")
EARLY_MODULES = ("drivers/virtio", "drivers/block/virtio_blk.ko")
MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")  # links into /usr
DISK_SIZE = "6G"  # sparse


class Missing(Exception):
    """What this host lacks to make a guest."""


def run(*command, failure=RuntimeError, cwd=None):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, text=True, capture_output=True,
                          cwd=cwd, check=False)
    if done.returncode != 0:
        told = done.stderr.strip()[-2000:]
        raise failure(f"{' '.join(command)} ended with {done.returncode}: {told}")
    return done.stdout


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, mode)


def fetch(package):
    """The unpacked files of a package; fetched once for each version."""
    record = run("apt-cache", "show", "--no-all-versions", package, failure=Missing)
    version = next(line.split()[1] for line in record.splitlines() if line.startswith("Version:"))
    target = os.path.join(BUILD, "packages", f"{package}_{version.replace(':', '.')}")
    if os.path.isdir(target):
        return target
    download = target + ".new"
    shutil.rmtree(download, ignore_errors=True)
    os.makedirs(download)
    run("apt-get", "download", f"{package}={version}", cwd=download, failure=Missing)
    archive, = glob.glob(os.path.join(download, "*.deb"))
    run("dpkg", "-x", archive, download)
    os.unlink(archive)
    os.rename(download, target)
    return target


def fetch_kernel():
    """The meta package names the newest kernel."""
    depends = run("apt-cache", "depends", "--important", KERNEL_PACKAGE, failure=Missing).split()
    name = next((word for word in depends if word.startswith("linux-image-6.1.")), None)
    if name is None:
        raise Missing(f"{KERNEL_PACKAGE} of this host's packages is not Debian 12's Linux 6.1")
    return fetch(name)


class Disk:
    def __init__(self):
        self.kernel_files = fetch_kernel()
        self.busybox = os.path.join(fetch("busybox-static"), "bin", "busybox")
        self.release, = os.listdir(os.path.join(self.kernel_files, "lib", "modules"))
        self.kernel = os.path.join(self.kernel_files, "boot", f"vmlinuz-{self.release}")
        self.modules = os.path.join(self.kernel_files, "lib", "modules", self.release)
        self.early = os.path.join(BUILD, "early.cpio")
        self.image = os.path.join(BUILD, "disk.ext4")

    def make(self, files, environment, commands):
        """`files` keep their path, because the tests know each other's programs by it."""
        if not os.path.exists(os.path.join(self.modules, "modules.dep")):
            run(self.busybox, "depmod", "-b", self.kernel_files, self.release)
        self.make_early()
        tree = os.path.join(BUILD, "root")
        shutil.rmtree(tree, ignore_errors=True)
        self.copy_packages(tree)
        self.copy_programs(tree)
        for path in files:
            target = tree + os.path.dirname(path)
            os.makedirs(target, exist_ok=True)
            run("cp", "-a", path, target)
        write(os.path.join(tree, "environment"),
              "".join(f"{name}={value}\n" for name, value in environment.items()))
        write(os.path.join(tree, "tests"), "".join(f"{command}\n" for command in commands))
        if os.path.exists(self.image):
            os.unlink(self.image)
        run("/sbin/mke2fs", "-q", "-t", "ext4", "-m", "0", "-d", tree, self.image, DISK_SIZE)
        shutil.rmtree(tree)

    def make_early(self):
        tree = os.path.join(BUILD, "early")
        shutil.rmtree(tree, ignore_errors=True)
        os.makedirs(os.path.join(tree, "bin"))
        shutil.copy(self.busybox, os.path.join(tree, "bin", "busybox"))
        shutil.copy(os.path.join(HERE, "early_init"), os.path.join(tree, "init"))
        modules = os.path.join(tree, "lib", "modules", self.release)
        for name in EARLY_MODULES:
            target = os.path.join(modules, "kernel", name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            run("cp", "-a", os.path.join(self.modules, "kernel", name), target)
        run(self.busybox, "depmod", "-b", tree, self.release)
        names = run("find", ".", cwd=tree)
        with open(self.early, "wb") as archive:
            subprocess.run([self.busybox, "cpio", "-o", "-H", "newc"], cwd=tree, check=True,
                           input=names.encode(), stdout=archive, stderr=subprocess.DEVNULL)
        shutil.rmtree(tree)

    def copy_packages(self, tree):
        for name in MERGED:
            os.makedirs(os.path.join(tree, "usr", name))
            os.symlink(f"usr/{name}", os.path.join(tree, name))
        options = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks",
                                               "replaces", "enhances")]
        listed = run("apt-cache", "depends", "--recurse", "--installed", *options, *PACKAGES)
        # An alternative that another package provides is listed too, though it is not here.
        here = set(run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n").splitlines())
        names = [name for name in listed.splitlines() if f"installed {name}" in here]
        files = run("dpkg", "-L", *names).splitlines()
        paths = sorted({path[1:] for path in files
                        if path.startswith("/") and path != "/." and os.path.lexists(path)
                        and not path.startswith(NOT_COPIED)})
        paths = [path for path in paths if path not in MERGED]
        archive = subprocess.Popen(["tar", "-C", "/", "-c", "--no-recursion", "-T", "-"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        unpack = subprocess.Popen(["tar", "-C", tree, "-x", "--keep-directory-symlink"],
                                  stdin=archive.stdout)
        archive.stdin.write("".join(f"{path}\n" for path in paths).encode())
        archive.stdin.close()
        if unpack.wait() != 0 or archive.wait() != 0:
            raise RuntimeError("could not copy the files of this host's packages")

    def copy_programs(self, tree):
        shutil.copy(os.path.join(HERE, "init"), os.path.join(tree, "init"))
        shutil.copy(self.busybox, os.path.join(tree, "usr", "bin", "busybox"))
        os.symlink("../bin/busybox", os.path.join(tree, "usr", "sbin", "modprobe"))
        run("cp", "-a", os.path.join(self.kernel_files, "lib", "modules"),
            os.path.join(tree, "usr", "lib"))
        for name in ("dev", "proc", "sys", "run", "root", "tmp", "mnt", "var/lib", "var/tmp"):
            os.makedirs(os.path.join(tree, name), exist_ok=True)
        for name in ("tmp", "var/tmp"):
            os.chmod(os.path.join(tree, name), 0o1777)
        write(os.path.join(tree, "etc", "passwd"),
              # Paths inside. tidy: allow(/root)
              "root:x:0:0:root:/root:/bin/bash\n"
              "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
              "atoll:x:990:990::/nonexistent:/usr/sbin/nologin\n"
              "atoll-egress:x:991:991::/nonexistent:/usr/sbin/nologin\n"
              "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n")
        write(os.path.join(tree, "etc", "group"),
              "root:x:0:\ndaemon:x:1:\ntty:x:5:\natoll:x:990:\natoll-egress:x:991:\n"
              "nogroup:x:65534:\n")
        write(os.path.join(tree, "etc", "hosts"), "127.0.0.1 localhost guest\n")
        run("/sbin/ldconfig", "-r", tree)
