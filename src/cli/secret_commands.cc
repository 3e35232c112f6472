#include "cli/secret_commands.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/api.h"
#include "cli/raw_terminal.h"
#include "cli/readable.h"
#include "egress/secret.h"

namespace atl::cli {

namespace json = boost::json;

namespace {

constexpr size_t kMaxValueBytes = egress::kMaxSecretValueBytes + 2;  // and a line end
// Keys of a terminal.
constexpr char kInterrupt = 3, kEndOfInput = 4, kErase = 127;

// Typed without being shown. The terminal is raw, so that no signal leaves it silent and no line is
// too long for it.
Result<std::string> ask_for_value() {
  ATOLL_TRY(RawTerminal terminal, RawTerminal::enter(STDIN_FILENO));
  fprintf(stderr, "Value: ");  // not before: what is typed at once would be shown
  std::string value;
  char key = 0;
  bool is_typing = true;
  while (is_typing) {
    ssize_t count = read(STDIN_FILENO, &key, 1);
    if (count < 0 && errno == EINTR) continue;
    bool gives_up = count <= 0 || key == kInterrupt || key == kEndOfInput;
    is_typing = !gives_up && key != '\r' && key != '\n';
    if (!is_typing) fprintf(stderr, "\r\n");
    if (gives_up) return Error(Code::kInvalid, "no value was given");
    bool erases = key == kErase || key == '\b';
    if (erases && !value.empty()) value.pop_back();
    if (is_typing && !erases) value += key;
    if (value.size() > kMaxValueBytes) return Error(Code::kInvalid, "the value is too long");
  }
  return value;
}

// Never as an argument: those are shown to everybody on the host.
Result<std::string> read_value(const std::string& file) {
  if (file.empty() && isatty(STDIN_FILENO) == 1) return ask_for_value();
  ATOLL_TRY(std::string value, file.empty() ? read_all(STDIN_FILENO, kMaxValueBytes)
                                            : read_file(file, kMaxValueBytes));
  if (value.ends_with('\n')) value.pop_back();
  if (value.ends_with('\r')) value.pop_back();
  return value;
}

json::array words_json(const std::vector<std::string>& words) {
  return json::array(words.begin(), words.end());
}

// "Authorization: Bearer {}"
Result<json::object> header_json(const std::string& text) {
  size_t colon = text.find(':');
  if (colon == text.npos)
    return Error(Code::kInvalid, "--header must be of the form 'Authorization: Bearer {}'");
  json::object header;
  header["name"] = text.substr(0, colon);
  size_t start = text.find_first_not_of(' ', colon + 1);
  header["format"] = start == text.npos ? "{}" : text.substr(start);
  return header;
}

std::string joined(const json::object& object, const char* name) {
  const json::value* list = object.if_contains(name);
  std::string text;
  if (list == nullptr || !list->is_array()) return "-";
  for (const json::value& one : list->get_array())
    text += (text.empty() ? "" : ",") + readable(one);
  return text;
}

}  // namespace

Result<int> run_command(const CommandLine& line, const SetSecretCommand& set) {
  json::object body;
  body["hosts"] = words_json(set.hosts);
  if (!set.paths.empty()) body["paths"] = words_json(set.paths);
  if (!set.header.empty()) {
    ATOLL_TRY(body["header"], header_json(set.header));
  }
  ATOLL_TRY(body["value"], read_value(set.value_file));
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object shown, api.call({.method = http::Method::kPut,
                                          .target = "/v1/secrets/" + percent_encode(set.name, "_"),
                                          .body = std::move(body)}));
  if (line.format == Format::kJson) print_json(shown);
  return 0;
}

Result<int> run_command(const CommandLine& line, const ListSecretsCommand&) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY(json::object answer, api.call({.target = "/v1/secrets"}));
  if (line.format == Format::kJson) {
    print_json(answer);
    return 0;
  }
  const json::value* secrets = answer.if_contains("secrets");
  if (secrets == nullptr || !secrets->is_array())
    return Error(Code::kCorrupt, "the server's answer has no secrets");
  printf("%-32s %s\n", "NAME", "HOSTS");
  for (const json::value& value : secrets->get_array()) {
    if (!value.is_object()) continue;
    const json::object& secret = value.get_object();
    printf("%-32s %s\n", readable_field(secret, "name").c_str(), joined(secret, "hosts").c_str());
  }
  return 0;
}

Result<int> run_command(const CommandLine& line, const RemoveSecretCommand& remove) {
  ATOLL_TRY(Api api, connect(line));
  ATOLL_TRY_VOID(api.call({.method = http::Method::kDelete,
                           .target = "/v1/secrets/" + percent_encode(remove.name, "_")}));
  if (line.format == Format::kJson) print_json(json::object{{"removed", remove.name}});
  return 0;
}

}  // namespace atl::cli
