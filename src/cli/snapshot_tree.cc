#include "cli/snapshot_tree.h"

#include <map>
#include <set>
#include <vector>

#include "cli/api.h"
#include "cli/readable.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

using Children = std::map<std::string, std::vector<const json::object*>>;

std::string line_of(const json::object& snapshot) {
  std::string line = readable_field(snapshot, "id");
  std::string label = readable_field(snapshot, "label");
  if (!label.empty() && label != "-") line += "  " + label;
  line += "  " + readable_field(snapshot, "created_at");
  return line + "  " + readable_field(snapshot, "bytes") + " bytes\n";
}

void draw(const json::object& snapshot, const std::string& indent, const Children& children,
          std::string& out) {
  auto found = children.find(text_field(snapshot, "id"));
  if (found == children.end()) return;
  for (const json::object* child : found->second) {
    bool last = child == found->second.back();
    out += indent + (last ? "└─ " : "├─ ") + line_of(*child);
    draw(*child, indent + (last ? "   " : "│  "), children, out);
  }
}

}  // namespace

std::string snapshot_tree(const json::array& snapshots) {
  std::set<std::string> known;
  for (const json::value& row : snapshots)
    if (row.is_object()) known.insert(text_field(row.as_object(), "id"));
  Children children;
  std::vector<const json::object*> roots;
  for (const json::value& row : snapshots) {
    if (!row.is_object()) continue;
    const json::object& snapshot = row.as_object();
    std::string parent = text_field(snapshot, "parent");
    bool is_root = !known.contains(parent) || parent == text_field(snapshot, "id");
    is_root ? roots.push_back(&snapshot) : children[parent].push_back(&snapshot);
  }
  std::string out;
  for (const json::object* root : roots) {
    out += line_of(*root);
    draw(*root, "", children, out);
  }
  return out;
}

}  // namespace atl::cli
