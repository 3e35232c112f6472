#include "cli/template_example.h"

namespace atl::cli {

std::string example_template(const std::string& name) {
  return "# A template: what sandboxes start from. Build it with\n"
         "#   atoll template build .\n"
         "name = \"" +
         name +
         "\"\n"
         R"(description = "Python with requests"
# aliases = ["py"]                 # other names for it

# Where the files come from: exactly one source.
[image]
debian = { suite = "bookworm", packages = ["python3", "python3-requests"] }
# oci = "docker.io/library/python:3.11-slim"   # a registry, over HTTPS
# oci_archive = "image.tar"                    # what `docker save` writes, beside this file
# oci_layout = "image"                         # an OCI layout, a folder beside this file
# rootfs_tar = "root.tar.zst"                  # a whole root, beside this file
# template = "base"                            # another template: what it has is the beginning

# A folder beside this file that is copied over the image: files/etc/motd becomes /etc/motd.
# files = "files"

# Commands that run once, as root, in a sandbox of the image, without a network.
# setup = ["mkdir -p /srv/data"]

# The limits of a sandbox, unless its creator asks for others.
[defaults]
# isolation = "jail"    # the wall, at least: jail, gvisor, microvm
# latency = "instant"   # how strong "auto" may be: instant (jail), fast (gvisor), any (microvm)
ttl = "5m"            # how long it lives
idle_ttl = "2m"       # how long it lives while nothing happens in it
cpu = 1.0             # processors
memory = "512MiB"
disk = "1GiB"
pids = 256
output = "64MiB"      # of one program
# env = { TZ = "UTC" }  # variables of every program
# cwd = "/srv"          # where programs run, and as whom
# user = "root"

# Hosts that programs may reach; empty: none.
[network]
allow = []

# Files that are kept when a run has ended.
[outputs]
collect = ["/tmp/outputs/**"]
)";
}

}  // namespace atl::cli
