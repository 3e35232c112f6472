// NameTable: which synthetic address stands for which name in one sandbox. An address is given out
// once, in order, and means the same name for as long as the sandbox lives: the table is a file of
// names, one a line, so that it outlives this process.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/result.h"
#include "egress/address.h"
#include "egress/host_name.h"

namespace atl::egress {

inline constexpr size_t kMaxNames = 4096;  // of one sandbox

class NameTable {
 public:
  static Result<NameTable> open(int directory, SandboxId id);
  static Result<void> remove(int directory, SandboxId id);

  // The number that stands for the name, made if need be. kExhausted with reason too_many_names.
  Result<uint32_t> number_of(const HostName& name);
  std::optional<HostName> find(const Address& address) const;

  static Address v4(uint32_t number);
  static Address v6(uint32_t number);

 private:
  NameTable(int directory, SandboxId id) : directory_(directory), id_(id) {}

  int directory_;
  SandboxId id_;
  Fd file_;
  std::vector<HostName> names_;
  std::map<HostName, uint32_t> numbers_;
};

}  // namespace atl::egress
