#include "store/media_type.h"

#include <algorithm>

#include "base/utf8.h"

namespace atl::store {

namespace {

struct Known {
  std::string_view mark;
  std::string_view type;
};

constexpr Known kEndings[] = {
    {".png", "image/png"},
    {".jpg", "image/jpeg"},
    {".jpeg", "image/jpeg"},
    {".gif", "image/gif"},
    {".webp", "image/webp"},
    {".svg", "image/svg+xml"},
    {".pdf", "application/pdf"},
    {".csv", "text/csv"},
    {".tsv", "text/tab-separated-values"},
    {".json", "application/json"},
    {".jsonl", "application/jsonl"},
    {".txt", "text/plain"},
    {".log", "text/plain"},
    {".md", "text/markdown"},
    {".html", "text/html"},
    {".htm", "text/html"},
    {".xml", "application/xml"},
    {".py", "text/x-python"},
    {".js", "text/javascript"},
    {".zip", "application/zip"},
    {".gz", "application/gzip"},
    {".tar", "application/x-tar"},
    {".zst", "application/zstd"},
    {".mp4", "video/mp4"},
    {".webm", "video/webm"},
    {".mp3", "audio/mpeg"},
    {".wav", "audio/wav"},
    {".parquet", "application/vnd.apache.parquet"},
    {".xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
    {".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
    {".pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation"},
};

constexpr Known kBeginnings[] = {
    {"\x89PNG\r\n\x1a\n", "image/png"},
    {"\xff\xd8\xff", "image/jpeg"},
    {"GIF8", "image/gif"},
    {"%PDF-", "application/pdf"},
    {"PK\x03\x04", "application/zip"},
    {"\x1f\x8b", "application/gzip"},
    {"\x28\xb5\x2f\xfd", "application/zstd"},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool ends_with(std::string_view name, std::string_view ending) {
  if (name.size() < ending.size()) return false;
  name.remove_prefix(name.size() - ending.size());
  return std::equal(name.begin(), name.end(), ending.begin(),
                    [](char a, char b) { return lower(a) == b; });
}

// The last character may be cut.
bool is_text(std::string_view bytes) {
  if (bytes.find('\0') != bytes.npos) return false;
  for (size_t cut = 0; cut < 4 && cut <= bytes.size(); ++cut)
    if (is_utf8(bytes.substr(0, bytes.size() - cut))) return true;
  return false;
}

}  // namespace

std::string_view media_type(std::string_view name, std::string_view first_bytes) {
  for (const Known& known : kEndings)
    if (ends_with(name, known.mark)) return known.type;
  for (const Known& known : kBeginnings)
    if (first_bytes.starts_with(known.mark)) return known.type;
  if (!first_bytes.empty() && is_text(first_bytes)) return "text/plain";
  return "application/octet-stream";
}

}  // namespace atl::store
