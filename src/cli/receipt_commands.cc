#include "cli/receipt_commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "base/file.h"
#include "cli/api.h"
#include "cli/exit_code.h"
#include "cli/readable.h"
#include "cli/receipt.h"
#include "cli/terminal.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr size_t kMaxReceiptBytes = 1 << 20;
constexpr int kOldDays = 365;

std::string field(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr || value->is_null()) return "-";
  return readable(*value);
}

// What runs a sandbox is software with a release, and old ones have holes that are known.
void warn_if_old(const std::string& name, const std::string& value) {
  if (name != "runsc.age_days" || atoi(value.c_str()) <= kOldDays) return;
  fprintf(stderr, "warning: runsc, which runs this sandbox, is %s days old\n", value.c_str());
}

void print_receipt(const json::object& receipt) {
  for (const char* name : {"sandbox", "driver", "atoll", "made_at"})
    printf("%-28s %s\n", name, field(receipt, name).c_str());
  printf("\n%-28s %-34s %s\n", "FACT", "OUTSIDE", "INSIDE");
  const json::value* facts = receipt.if_contains("facts");
  if (facts == nullptr || !facts->is_array()) return;
  for (const json::value& row : facts->as_array()) {
    if (!row.is_object()) continue;
    const json::object& fact = row.as_object();
    std::string outside = field(fact, "outside");
    std::string inside = field(fact, "inside");
    // Both columns are the same or the sandbox would not exist; long ones are told once.
    if (outside == inside && outside.size() > 34) inside = "the same";
    printf("%-28s %-34s %s\n", field(fact, "name").c_str(), outside.c_str(), inside.c_str());
    warn_if_old(field(fact, "name"), inside);
  }
}

Result<std::string> read_input(const std::string& file) {
  if (file == "-") return read_all(STDIN_FILENO, kMaxReceiptBytes);
  return read_file(file, kMaxReceiptBytes);
}

// A file, or the key itself; this host's if none is given.
Result<std::string> find_public_key(const CommandLine& line, const std::string& given) {
  std::string path = given.empty() ? line.places.receipt_public_key() : given;
  auto key = read_file(path, 1024);
  if (key) return key;
  if (!given.empty() && key.error().system_errno() == ENOENT) return given;
  return std::move(key).error().with_context("read the public key");
}

}  // namespace

Result<int> run_command(const CommandLine& line, const ShowReceiptCommand& show) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(std::string target, sandbox_target(show.id));
  ATOLL_TRY(json::object answer, api.call({.target = target + "/receipt"}));
  const json::value* receipt = answer.if_contains("receipt");
  if (line.format == Format::kJson || receipt == nullptr || !receipt->is_object())
    printf("%s\n", json::serialize(answer).c_str());
  else
    print_receipt(receipt->as_object());
  return 0;
}

Result<int> run_command(const CommandLine& line, const VerifyReceiptCommand& verify) {
  ATOLL_TRY(std::string text, read_input(verify.file));
  ATOLL_TRY(std::string key, find_public_key(line, verify.public_key));
  ATOLL_TRY(json::object receipt, verify_receipt(text, key));
  if (line.format == Format::kJson) {
    printf("%s\n", json::serialize(receipt).c_str());
    return 0;
  }
  printf("good: sandbox %s, made %s\n", field(receipt, "sandbox").c_str(),
         field(receipt, "made_at").c_str());
  return 0;
}

}  // namespace atl::cli
