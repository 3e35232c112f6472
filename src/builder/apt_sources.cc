#include "builder/apt_sources.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "base/file.h"

namespace atl::builder {
namespace {

constexpr const char* kApt = "/etc/apt";
constexpr size_t kMaxSourceBytes = 1 << 20;
constexpr const char* kKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg";

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool contains(const std::vector<std::string>& words, std::string_view wanted) {
  return std::find(words.begin(), words.end(), wanted) != words.end();
}

bool is_wanted(std::string_view found, const std::string& suite) {
  return found == suite || found == suite + "-updates" || found == suite + "-security";
}

// An address and its like end up in a file for apt; a line break would be another entry.
bool is_plain(const std::string& word) {
  return std::all_of(word.begin(), word.end(), [](char c) { return c > ' ' && c < 127; });
}

using Fields = std::map<std::string, std::string>;

std::vector<std::string> stanza_entries(const Fields& fields, const std::string& suite) {
  auto words = [&](const char* key) {
    auto found = fields.find(key);
    return found == fields.end() ? std::vector<std::string>() : words_of(found->second);
  };
  if (!contains(words("types"), "deb") || contains(words("enabled"), "no")) return {};
  if (!contains(words("components"), "main")) return {};
  std::vector<std::string> signers = words("signed-by");
  std::string options;
  if (signers.size() == 1 && signers[0].starts_with('/'))
    options = "[signed-by=" + signers[0] + "] ";
  std::vector<std::string> entries;
  for (const std::string& uri : words("uris"))
    for (const std::string& found : words("suites"))
      if (is_wanted(found, suite) && is_plain(uri))
        entries.push_back("deb " + options + uri + " " + found + " main");
  return entries;
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

std::vector<std::string> deb822_entries(std::string_view text, const std::string& suite) {
  std::vector<std::string> entries;
  Fields fields;
  std::string last;
  auto finish = [&] {
    for (std::string& entry : stanza_entries(fields, suite)) entries.push_back(std::move(entry));
    fields.clear();
    last.clear();
  };
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (words_of(line).empty()) {
      finish();
    } else if (line[0] == '#') {
      continue;
    } else if (line[0] == ' ' || line[0] == '\t') {
      if (!last.empty()) fields[last] += " " + line;
    } else if (size_t colon = line.find(':'); colon != line.npos) {
      last = lower(line.substr(0, colon));
      fields[last] = line.substr(colon + 1);
    }
  }
  finish();
  return entries;
}

std::vector<std::string> one_line_entries(std::string_view text, const std::string& suite) {
  std::vector<std::string> entries;
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    size_t open = line.find('['), close = line.find(']');
    std::string options;
    if (open != line.npos && close != line.npos && open < close) {
      options = line.substr(open, close - open + 1) + " ";
      line.erase(open, close - open + 1);
    }
    std::vector<std::string> words = words_of(line);
    if (words.size() < 4 || words[0] != "deb" || !is_wanted(words[2], suite)) continue;
    if (contains(words, "main"))
      entries.push_back("deb " + options + words[1] + " " + words[2] + " main");
  }
  return entries;
}

Result<std::vector<std::string>> host_apt_sources(const std::string& suite) {
  std::vector<std::string> paths = {std::string(kApt) + "/sources.list"};
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(kApt) + "/sources.list.d", error))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> entries;
  for (const std::string& path : paths) {
    bool modern = path.ends_with(".sources");
    if (!modern && !path.ends_with(".list")) continue;
    auto text = read_file(path, kMaxSourceBytes);
    if (!text && text.error().code() == Code::kNotFound) continue;
    if (!text) return std::move(text).error();
    auto found = modern ? deb822_entries(*text, suite) : one_line_entries(*text, suite);
    entries.insert(entries.end(), found.begin(), found.end());
  }
  if (entries.empty())
    entries.push_back("deb [signed-by=" + std::string(kKeyring) +
                      "] http://deb.debian.org/debian " + suite + " main");
  return entries;
}

std::vector<std::string> reach_options(std::string_view dump) {
  constexpr std::string_view kPrefixes[] = {
      "acquire::http::", "acquire::https::", "acquire::check-valid-until ", "acquire::retries "};
  std::vector<std::string> options;
  std::istringstream stream{std::string(dump)};
  for (std::string line; std::getline(stream, line);) {
    std::string lowered = lower(line);
    bool wanted = std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                              [&](std::string_view prefix) { return lowered.starts_with(prefix); });
    if (wanted && line.ends_with("\";") && !line.ends_with(" \"\";")) options.push_back(line);
  }
  return options;
}

}  // namespace atl::builder
