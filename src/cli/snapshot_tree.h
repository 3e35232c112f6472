// Snapshots as a tree that a person can read: each below what it comes from.
#pragma once

#include <string>

#include <boost/json/array.hpp>

namespace atl::cli {

// One line each, in the order of the list. Safe to print: what others wrote is escaped.
std::string snapshot_tree(const boost::json::array& snapshots);

}  // namespace atl::cli
