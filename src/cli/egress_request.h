// What the user asked of egress and of the secrets it keeps, one type for each command.
#pragma once

#include <string>
#include <vector>

namespace atl::cli {

struct EgressCommand {
  enum class What : unsigned char { kLog, kFollow, kExplain, kTest, kLearn };
  What what = What::kLog;
  std::string subject, url;  // a sandbox, or of kTest a file
};
struct SetSecretCommand {
  std::string name;
  std::vector<std::string> hosts, paths;
  std::string header;      // "Authorization: Bearer {}"; empty: any field
  std::string value_file;  // empty: standard input
};
struct ListSecretsCommand {};
struct RemoveSecretCommand {
  std::string name;
};

}  // namespace atl::cli
