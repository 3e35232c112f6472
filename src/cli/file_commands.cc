#include "cli/file_commands.h"

#include <stdio.h>
#include <unistd.h>

#include <boost/json/parse.hpp>

#include "cli/api.h"
#include "cli/readable.h"
#include "cli/remote_path.h"
#include "cli/transfer.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr const char* kMaxDepth = "64";

// The name, or what its bytes are when it is not UTF-8.
std::string shown_name(const json::object& entry, const char* field) {
  auto name = output_bytes(entry, field);
  return name ? escape_line(*name) : "?";
}

char type_letter(const json::object& entry) {
  std::string type = text_field(entry, "type");
  return type == "directory" ? 'd' : type == "symlink" ? 'l' : type == "file" ? '-' : '?';
}

void print_entry(const json::object& entry, const ListFilesCommand& list) {
  bool is_deep = list.depth == Depth::kRecursive;
  std::string name = shown_name(entry, is_deep ? "path" : "name");
  if (list.columns == ListFilesCommand::Columns::kNames) {
    printf("%s%s\n", name.c_str(), type_letter(entry) == 'd' ? "/" : "");
    return;
  }
  std::string target = text_field(entry, "target");
  printf("%c %s %5s %5s %12s %-24s %s%s%s\n", type_letter(entry),
         readable_field(entry, "mode").c_str(), readable_field(entry, "uid").c_str(),
         readable_field(entry, "gid").c_str(), readable_field(entry, "size").c_str(),
         readable_field(entry, "modified_at").c_str(), name.c_str(), target.empty() ? "" : " -> ",
         escape_line(target).c_str());
}

void print_change(const http::ReceivedEvent& event, const json::object& change, Format format) {
  if (format == Format::kJson) {
    json::object row = change;
    row["event"] = event.name;
    print_json(row);
  } else {
    std::string to = text_field(change, "to");
    printf("%-8s %s%s%s\n", escape_line(event.name).c_str(), shown_name(change, "path").c_str(),
           to.empty() ? "" : " -> ", escape_line(to).c_str());
  }
  // Whoever reads a pipe wants it now.
  fflush(stdout);
}

}  // namespace

Result<int> run_command(const CommandLine& line, const CopyCommand& copy) {
  ATOLL_TRY(Api api, connect(line));
  TransferOptions options{.depth = copy.depth, .user = copy.user};
  std::optional<RemotePath> from = split_remote_path(copy.from);
  if (from)
    ATOLL_TRY_VOID(copy_out(api, *from, copy.to, options));
  else
    ATOLL_TRY_VOID(copy_into(api, copy.from, *split_remote_path(copy.to), options));
  if (line.format == Format::kJson && copy.to != "-")
    print_json(json::object{{"from", copy.from}, {"to", copy.to}});
  return 0;
}

Result<int> run_command(const CommandLine& line, const CatCommand& cat) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::string target, file_target(cat.file, ""));
  if (line.format == Format::kJson) {
    ATOLL_TRY(std::string stat, file_target(cat.file, "stat"));
    ATOLL_TRY(json::object entry, api.call({.target = stat}));
    print_json(entry);
    return 0;
  }
  OutputWriter output(STDOUT_FILENO, cat.mode);
  Result<void> written;
  auto on_bytes = [&](std::string_view bytes) { return (written = output.write(bytes)).ok(); };
  ATOLL_TRY_VOID(api.stream({.target = target}, on_bytes));
  ATOLL_TRY_VOID(std::move(written));
  ATOLL_TRY_VOID(output.finish());
  return 0;
}

Result<int> run_command(const CommandLine& line, const ListFilesCommand& list) {
  ATOLL_TRY(Api api, connect(line));
  std::string query = "list";
  if (list.depth == Depth::kRecursive) query += std::string("&depth=") + kMaxDepth;
  ATOLL_TRY(std::string target, file_target(list.directory, query));
  ATOLL_TRY(json::array entries, api.list(target, "entries"));
  if (line.format == Format::kJson) {
    print_json(json::object{{"entries", std::move(entries)}});
    return 0;
  }
  for (const json::value& entry : entries)
    if (entry.is_object()) print_entry(entry.as_object(), list);
  return 0;
}

Result<int> run_command(const CommandLine& line, const WatchCommand& watch) {
  ATOLL_TRY(Api api, connect(line));
  std::string query = watch.depth == Depth::kRecursive ? "watch&recursive=true" : "watch";
  ATOLL_TRY(std::string target, file_target(watch.path, query));
  auto on_event = [&](const http::ReceivedEvent& event) {
    json::error_code error;
    json::value data = json::parse(event.data, error);
    json::object change;
    if (!error && data.is_object()) change = data.as_object();
    if (event.name == "ready" && line.format == Format::kText)
      fprintf(stderr, "watching %s\n", escape_line(watch.path.path).c_str());
    else
      print_change(event, change, line.format);
    return ferror(stdout) == 0;
  };
  ATOLL_TRY_VOID(api.events({.target = target}, on_event));
  return 0;
}

}  // namespace atl::cli
