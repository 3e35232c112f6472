#include "cli/replacement.h"

#include <algorithm>
#include <iterator>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "cli/readable.h"

namespace atl::cli {
namespace {

namespace json = boost::json;

constexpr std::string_view kOutcomes[] = {"done", "refused", "went_back", "not_ready"};

}  // namespace

std::string_view outcome_name(Replacement::Outcome outcome) {
  return kOutcomes[static_cast<size_t>(outcome)];
}

std::string encode(const Replacement& replacement) {
  json::array programs;
  for (const ReplacedProgram& program : replacement.programs)
    programs.push_back({{"name", program.name},
                        {"before", program.before},
                        {"after", program.after},
                        {"pid", program.pid}});
  return json::serialize(json::object{{"outcome", outcome_name(replacement.outcome)},
                                      {"failure", replacement.failure},
                                      {"programs", std::move(programs)},
                                      {"unavailable_ms", replacement.unavailable.count()}}) +
         "\n";
}

Result<Replacement> decode_replacement(std::string_view text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  if (error || !value.is_object()) return Error(Code::kCorrupt, "not a JSON object");
  const json::object& object = value.as_object();
  const auto* outcome =
      std::find(std::begin(kOutcomes), std::end(kOutcomes), text_field(object, "outcome"));
  const json::value* programs = object.if_contains("programs");
  if (outcome == std::end(kOutcomes) || !programs || !programs->is_array())
    return Error(Code::kCorrupt, "not the account of a restart");
  Replacement replacement;
  replacement.outcome = static_cast<Replacement::Outcome>(outcome - std::begin(kOutcomes));
  replacement.failure = text_field(object, "failure");
  replacement.unavailable = std::chrono::milliseconds(number_field(object, "unavailable_ms"));
  for (const json::value& program : programs->as_array()) {
    if (!program.is_object()) continue;
    const json::object& one = program.as_object();
    replacement.programs.push_back({.name = text_field(one, "name"),
                                    .before = text_field(one, "before"),
                                    .after = text_field(one, "after"),
                                    .pid = static_cast<pid_t>(number_field(one, "pid"))});
  }
  return replacement;
}

}  // namespace atl::cli
