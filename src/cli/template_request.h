// What the user asked of templates that are built, one type for each command.
#pragma once

#include <string>

namespace atl::cli {

enum class Verbosity : unsigned char { kQuiet, kVerbose };

struct BuildTemplateCommand {
  enum class What : unsigned char { kNamed, kAll };
  What what = What::kNamed;
  std::string source;  // a folder with template.toml, or the name of one that comes with Atoll
  enum class Freshness : unsigned char { kAsBuilt, kAnew };
  Freshness freshness = Freshness::kAsBuilt;
  Verbosity verbosity = Verbosity::kQuiet;
};
struct ShowTemplateCommand {
  std::string name;
};
struct RemoveTemplateCommand {
  std::string name;
};
struct ExportTemplateCommand {
  std::string name;
  std::string file;  // empty: NAME.tar; "-" is standard output
};
struct ImportTemplateCommand {
  std::string file;
  Verbosity verbosity = Verbosity::kQuiet;
};
struct InitTemplateCommand {
  std::string directory;
};

}  // namespace atl::cli
