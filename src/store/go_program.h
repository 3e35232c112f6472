// GoProgram: one program that an image gets compiled from a Go module. Pinned twice by the hashes
// that Go itself writes into go.sum: the module, whose own go.sum pins all that it is made of, and
// the toolchain that compiles it.
#pragma once

#include <string>
#include <vector>

namespace atl::store {

class TomlSection;

// Text of one of the module's files that is another when it is compiled, after the module's hash
// was found to be right. It must be there exactly once.
struct SourceChange {
  std::string file;  // beneath the module
  std::string from;
  std::string into;
};

struct GoProgram {
  std::string module;
  std::string version;               // v1.2.3, or one that names a day and a commit
  std::string sum;                   // h1:<base 64>
  std::string package = ".";         // that it is in, beneath the module
  std::vector<std::string> without;  // files of the module that are as if they were not there
  std::vector<SourceChange> changes;
  std::string to;             // absolute, in the image
  std::string stamp;          // a variable that gets the version; empty: none
  std::string toolchain;      // 1.2.3
  std::string toolchain_sum;  // h1:<base 64>
  std::string otherwise;      // a template for hosts that reach no such module; empty: none
};

// [image.go].
GoProgram read_go_program(TomlSection& section);

}  // namespace atl::store
