// What the kernel says about one process under /proc/<pid>: rights, namespaces, ids, limits, open
// descriptors, mounts. The same reader serves the process itself and who looks at it from outside,
// so that the two can be compared word by word.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace atl::linux {

struct Fact {
  std::string name;   // lower case, dots: "capabilities.effective"
  std::string value;  // one line; bytes that are not text as "blob:" and hexadecimal digits
};
using Facts = std::vector<Fact>;

// `process` is "/proc/self" or "/proc/<pid>". Ids are as the reader's user namespace names them.
Result<Facts> read_process_facts(const std::string& process);

// Numbers of the open descriptors, without the one that the reading itself needs: the fact
// "descriptors", which is only steady while the process waits.
Result<std::string> open_descriptors(const std::string& process);

// That fact once more, of a process that waits by now.
Result<void> read_descriptors_again(Facts& facts, const std::string& process);

// Only the "namespaces." facts.
Result<Facts> read_namespace_facts(const std::string& process);

// Turns ids of the host's into those of a user namespace that has `count` from `first` on. ERANGE:
// one is not among them.
Result<void> map_ids(Facts& facts, uid_t first, uint32_t count);

// "<name> <value>" lines, and back; anything else is refused.
std::string encode_facts(const Facts& facts);
Result<Facts> decode_facts(std::string_view text);

std::string as_blob(std::string_view bytes);

// "6.1.0-12-amd64".
std::string kernel_release();

}  // namespace atl::linux
