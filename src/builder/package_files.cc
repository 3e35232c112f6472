#include "builder/package_files.h"

#include "base/file.h"
#include "builder/debian.h"
#include "builder/program.h"

namespace atl::builder {
namespace {

// apt looks at nothing of the host but its keys; the other options say how mirrors are reached.
constexpr const char* kAptPlaces =
    "Dir::State \"/build/apt/state\";\n"
    "Dir::State::status \"/dev/null\";\n"
    "Dir::Cache \"/build/apt/cache\";\n"
    "Dir::Etc::sourcelist \"/build/sources.list\";\n"
    "Dir::Etc::sourceparts \"/dev/null\";\n"
    "APT::Sandbox::User \"root\";\n"
    "Acquire::Languages \"none\";\n";

// The arguments are the packages. One time for all files, before bytecode is made, which names that
// of its source. Sorted, so that the same packages give the same archive.
constexpr const char* kScript =
    "mkdir -p /build/tmp /build/apt/state/lists/partial /build/apt/cache/archives/partial "
    "/build/apt/debs "
    "/build/apt/root && cd /build/apt/debs && "
    "apt-get -q update && apt-get -q download \"$@\" && "
    "for package in *.deb; do dpkg-deb -x \"$package\" /build/apt/root || exit 1; done && "
    "cd /build/apt/root && find . -exec touch -h -d @1700000000 {} + && "
    "if [ -d usr/lib/python3 ]; then echo '#step 2/5 compiling Python' && "
    "/usr/bin/python3 -m compileall -q -f --invalidation-mode timestamp -s /build/apt/root "
    "-p /opt/atoll /build/apt/root/usr/lib/python3; fi && "
    "find . -exec touch -h -d @1700000000 {} + && "
    "tar --sort=name --owner=0 --group=0 --numeric-owner -cf \"$TARGET\" .";

}  // namespace

Result<void> fetch_package_files(const store::DebianSource& source, const std::string& target) {
  ATOLL_TRY(std::vector<std::string> reach, write_apt_sources(source.suite));
  std::string configuration = kAptPlaces;
  for (const std::string& option : reach) configuration += option + "\n";
  ATOLL_TRY_VOID(replace_file("/build/apt.conf", configuration, 0644));
  std::vector<std::string> environment = build_environment();
  environment.push_back("APT_CONFIG=/build/apt.conf");
  environment.push_back("TARGET=" + target);
  std::vector<std::string> words = {"/bin/sh", "-uc", kScript, "sh"};
  words.insert(words.end(), source.packages.begin(), source.packages.end());
  return run_program({words, environment});
}

}  // namespace atl::builder
