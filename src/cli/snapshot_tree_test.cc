#include "cli/snapshot_tree.h"

#include <boost/json/parse.hpp>
#include <gtest/gtest.h>

namespace atl::cli {
namespace {

namespace json = boost::json;

TEST(SnapshotTree, DrawsEachBelowWhatItComesFrom) {
  json::value rows = json::parse(R"([
    {"id": "na", "parent": null, "label": "first", "created_at": "T1", "bytes": 1024},
    {"id": "nb", "parent": "na", "label": "", "created_at": "T2", "bytes": 0},
    {"id": "nc", "parent": "nb", "label": "deep", "created_at": "T3", "bytes": 0},
    {"id": "nd", "parent": "na", "label": "\u001b[31m", "created_at": "T4", "bytes": 0},
    {"id": "ne", "parent": "gone", "label": "", "created_at": "T5", "bytes": 0}])");
  std::string tree = snapshot_tree(rows.as_array());
  EXPECT_EQ(tree.find('\x1b'), std::string::npos) << "what others wrote is escaped";
  size_t at = 0;
  for (const char* line :
       {"na  first  T1", "├─ nb  T2", "│  └─ nc  deep  T3", "└─ nd  ", "ne  T5"}) {
    size_t found = tree.find(line, at);
    ASSERT_NE(found, std::string::npos) << line << " is not in\n" << tree;
    at = found;
  }
}

TEST(SnapshotTree, OfNothingIsNothing) { EXPECT_EQ(snapshot_tree({}), ""); }

}  // namespace
}  // namespace atl::cli
