#include "linux/process_facts.h"

#include <dirent.h>
#include <linux/landlock.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/file.h"

namespace atl::linux {
namespace {

constexpr size_t kMaxMountTableBytes = 256 * 1024;
constexpr size_t kMaxFacts = 128;

struct Field {
  std::string_view key;  // as the kernel's file names it
  const char* fact;
};

constexpr Field kStatusFields[] = {
    {"Uid:", "uid"},
    {"Gid:", "gid"},
    {"Groups:", "groups"},
    {"CapInh:", "capabilities.inheritable"},
    {"CapPrm:", "capabilities.permitted"},
    {"CapEff:", "capabilities.effective"},
    {"CapBnd:", "capabilities.bounding"},
    {"CapAmb:", "capabilities.ambient"},
    {"NoNewPrivs:", "no_new_privs"},
    {"Seccomp:", "seccomp.mode"},
    {"Seccomp_filters:", "seccomp.filters"},
};

constexpr Field kLimitFields[] = {
    {"Max core file size", "rlimits.core_bytes"},
    {"Max open files", "rlimits.open_files"},
    {"Max locked memory", "rlimits.locked_bytes"},
    {"Max realtime priority", "rlimits.realtime_priority"},
};

constexpr const char* kNamespaces[] = {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"};

// Words with one space between them.
std::string squeeze(std::string_view text) {
  std::string words;
  bool gap = false;
  for (char letter : text) {
    bool blank = letter == ' ' || letter == '\t' || letter == '\n';
    if (!blank && gap && !words.empty()) words += ' ';
    if (!blank) words += letter;
    gap = blank;
  }
  return words;
}

// What follows the key on its line.
Result<std::string> value_of(std::string_view text, std::string_view key) {
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.substr(0, key.size()) == key) return squeeze(line.substr(key.size()));
    begin = end + 1;
  }
  return Error(Code::kUnsupported, "the kernel does not tell " + std::string(key), ENODATA);
}

Result<void> add_fields(const std::string& path, std::span<const Field> fields, Facts& facts) {
  ATOLL_TRY(std::string text, read_file(path));
  for (const Field& field : fields) {
    ATOLL_TRY(std::string value, value_of(text, field.key));
    facts.push_back({field.fact, std::move(value)});
  }
  return {};
}

// Absent on a kernel without that kind, which is a fact too.
Result<void> add_namespaces(const std::string& process, Facts& facts) {
  for (const char* name : kNamespaces) {
    char target[64];
    std::string path = process + "/ns/" + name;
    ssize_t length = readlink(path.c_str(), target, sizeof target);
    if (length < 0 && errno != ENOENT) return Error::system("read link " + path);
    std::string value = length < 0 ? "none" : std::string(target, static_cast<size_t>(length));
    facts.push_back({std::string("namespaces.") + name, std::move(value)});
  }
  return {};
}

// "1073742824 1073742824 ..." as the isolate names it, "1000 1000 ...".
Result<std::string> as_inside(const std::string& ids, uid_t first, uint32_t count) {
  std::string mapped;
  for (const char* at = ids.c_str(); *at != '\0';) {
    char* end = nullptr;
    unsigned long id = strtoul(at, &end, 10);
    if (end == at || id < first || id - first >= count)
      return Error::from_errno("an id outside of the isolate's range", ERANGE);
    mapped += (mapped.empty() ? "" : " ") + std::to_string(id - first);
    at = *end == ' ' ? end + 1 : end;
  }
  return mapped;
}

}  // namespace

Result<std::string> open_descriptors(const std::string& process) {
  std::string path = process + "/fd";
  std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir(path.c_str()), closedir);
  if (!directory) return Error::system("read directory " + path);
  int own = process == "/proc/self" ? dirfd(directory.get()) : -1;
  std::vector<int> numbers;
  while (dirent* entry = readdir(directory.get()))
    if (entry->d_name[0] != '.' && std::atoi(entry->d_name) != own)
      numbers.push_back(std::atoi(entry->d_name));
  std::sort(numbers.begin(), numbers.end());
  std::string text;
  for (int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

Result<void> read_descriptors_again(Facts& facts, const std::string& process) {
  for (Fact& fact : facts) {
    if (fact.name != "descriptors") continue;
    ATOLL_TRY(fact.value, open_descriptors(process));
  }
  return {};
}

Result<Facts> read_namespace_facts(const std::string& process) {
  Facts facts;
  ATOLL_TRY_VOID(add_namespaces(process, facts));
  return facts;
}

Result<Facts> read_process_facts(const std::string& process) {
  Facts facts;
  ATOLL_TRY_VOID(add_fields(process + "/status", kStatusFields, facts));
  ATOLL_TRY_VOID(add_namespaces(process, facts));
  for (const char* name : {"uid_map", "gid_map", "oom_score_adj"}) {
    ATOLL_TRY(std::string text, read_file(process + "/" + name));
    facts.push_back({name, squeeze(text)});
  }
  ATOLL_TRY_VOID(add_fields(process + "/limits", kLimitFields, facts));
  ATOLL_TRY(std::string descriptors, open_descriptors(process));
  facts.push_back({"descriptors", std::move(descriptors)});
  ATOLL_TRY(std::string mounts, read_file(process + "/mountinfo", kMaxMountTableBytes));
  facts.push_back({"mounts", as_blob(mounts)});
  return facts;
}

std::string encode_facts(const Facts& facts) {
  std::string text;
  for (const Fact& fact : facts) text += fact.name + " " + fact.value + "\n";
  return text;
}

Result<Facts> decode_facts(std::string_view text) {
  Facts facts;
  while (!text.empty()) {
    size_t end = text.find('\n');
    size_t space = text.find(' ');
    bool whole = end != text.npos && space != text.npos && space > 0 && space < end;
    if (!whole || facts.size() == kMaxFacts)
      return Error(Code::kCorrupt, "malformed facts", EPROTO);
    std::string_view line = text.substr(0, end);
    bool printable =
        std::all_of(line.begin(), line.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (!printable) return Error(Code::kCorrupt, "malformed facts", EPROTO);
    facts.push_back({std::string(line.substr(0, space)), std::string(line.substr(space + 1))});
    text.remove_prefix(end + 1);
  }
  return facts;
}

std::string as_blob(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "blob:";
  text.reserve(text.size() + 2 * bytes.size());
  for (char byte : bytes) {
    auto value = static_cast<unsigned char>(byte);
    text += kDigits[value >> 4];
    text += kDigits[value & 15];
  }
  return text;
}

std::string kernel_release() {
  utsname name;
  return uname(&name) == 0 ? name.release : "unknown";
}

Result<void> map_ids(Facts& facts, uid_t first, uint32_t count) {
  for (Fact& fact : facts) {
    bool ids = fact.name == "uid" || fact.name == "gid" || fact.name == "groups";
    if (!ids) continue;
    ATOLL_TRY(fact.value, as_inside(fact.value, first, count));
  }
  return {};
}

}  // namespace atl::linux
