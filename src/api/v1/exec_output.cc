#include "api/v1/exec_output.h"

#include <limits>

#include "api/json_reply.h"
#include "api/query.h"
#include "api/v1/exec_json.h"
#include "api/v1/execs.h"

namespace atl::api::v1 {

using agent::Stream;
using sandbox::Exec;
using sandbox::Sandboxes;

namespace {

constexpr size_t kRawPieceBytes = 64 * 1024;
constexpr size_t kEventPieceBytes = 32 * 1024;  // up to six times as long when escaped

struct RawRange {
  Stream stream = Stream::kStdout;
  uint64_t offset = 0;
  uint64_t limit = std::numeric_limits<uint64_t>::max();
  bool follow = false;
};

Error beyond_end(std::string_view field, uint64_t end) {
  return Error(Code::kInvalid,
               std::string(field) + " is beyond the " + std::to_string(end) + " bytes there are")
      .with_reason("offset_beyond_end")
      .with_field(field);
}

Result<RawRange> parse_range(const http::Request& request, const Exec& exec) {
  RawRange range;
  ATOLL_TRY(auto given, text_parameter("stream", request));
  std::string name = given.value_or("stdout");
  if (name != "stdout" && name != "stderr")
    return invalid_parameter("stream", "must be stdout or stderr");
  range.stream = name == "stdout" ? Stream::kStdout : Stream::kStderr;
  ATOLL_TRY(auto offset, number_parameter("offset", request));
  ATOLL_TRY(auto limit, number_parameter("limit", request));
  ATOLL_TRY(range.follow, flag_parameter("follow", request));
  range.offset = offset.value_or(range.offset);
  range.limit = limit.value_or(range.limit);
  uint64_t end = exec.output().end(range.stream);
  if (range.offset > end) return beyond_end("offset", end);
  return range;
}

Result<OutputPosition> parse_start(const http::Request& request, const Exec& exec) {
  ATOLL_TRY(auto given, text_parameter("from", request));
  std::string text = given.value_or("0-0");
  // A browser that connects again sends the same URL with this header.
  if (auto last = request.headers.find("Last-Event-ID")) text = *last;
  auto position = parse_position(text);
  if (!position)
    return invalid_parameter("from", "must be <stdout offset>-<stderr offset>, the id of an event");
  for (Stream stream : {Stream::kStdout, Stream::kStderr})
    if (position->of(stream) > exec.output().end(stream))
      return beyond_end("from", exec.output().end(stream));
  return *position;
}

http::Headers raw_headers(const Call& call, const Exec& exec, const RawRange& range) {
  http::Headers headers{{"Content-Type", "application/octet-stream"},
                        {"Cache-Control", "no-store"},
                        {"X-Request-Id", call.request_id},
                        {"Atoll-Offset", std::to_string(range.offset)},
                        {"Atoll-Ended", exec.ended() ? "true" : "false"}};
  if (range.follow && !exec.ended()) return headers;
  uint64_t there = exec.output().end(range.stream) - range.offset;
  headers.add("Content-Length", std::to_string(std::min(range.limit, there)));
  return headers;
}

// Writes what is there, up to the limit, and moves the range behind it.
http::Task<Result<void>> write_raw(Call& call, const Exec& exec, RawRange& range, uint64_t end) {
  end = std::min(end, range.offset + std::min(range.limit, end - range.offset));
  while (range.offset < end) {
    size_t most = std::min<uint64_t>(kRawPieceBytes, end - range.offset);
    ATOLL_CO_TRY(std::string piece, exec.output().read(range.stream, range.offset, most));
    if (piece.empty()) co_return Error(Code::kCorrupt, "output log is shorter than it was");
    range.offset += piece.size();
    range.limit -= piece.size();
    ATOLL_CO_TRY_VOID(co_await call.exchange.write(piece));
  }
  co_return Result<void>();
}

http::Task<bool> wait_changed(Call& call, Exec& exec) {
  auto watch = call.exchange.watch_peer();
  bool changed = !watch.gone();
  if (changed) changed = co_await exec.wait_changed();
  co_return changed;
}

// An error leaves the answer without its end, which is how the client learns that it is not whole.
http::Task<Result<void>> send_raw(Call& call, Exec& exec, RawRange range) {
  http::Headers headers = raw_headers(call, exec, range);
  bool follows = !headers.find("Content-Length");
  uint64_t end = exec.output().end(range.stream);
  ATOLL_CO_TRY_VOID(co_await call.exchange.start_stream(200, std::move(headers)));
  bool is_head = call.exchange.request().method == http::Method::kHead;
  while (!is_head) {
    bool ended = exec.ended();
    if (follows) end = exec.output().end(range.stream);
    ATOLL_CO_TRY_VOID(co_await write_raw(call, exec, range, end));
    if (!follows || ended || range.limit == 0) break;
    if (exec.output().end(range.stream) > range.offset || exec.ended()) continue;
    bool changed = co_await wait_changed(call, exec);
    if (!changed) co_return Error(Code::kCancelled, "the client has gone");
  }
  co_return co_await call.exchange.finish();
}

http::Task<Result<void>> send_event(Call& call, std::string id, std::string name,
                                    std::string data) {
  http::ServerSentEvent event{std::move(id), std::move(name), std::move(data)};
  std::string text = http::format_event(event);
  co_return co_await call.exchange.write(text);
}

// One piece of one stream, if there is one to send now; false if not.
http::Task<Result<bool>> send_piece(Call& call, const Exec& exec, Stream stream,
                                    OutputPosition& position) {
  uint64_t& offset = position.of(stream);
  bool ended = exec.ended();
  ATOLL_CO_TRY(std::string piece, exec.output().read(stream, offset, kEventPieceBytes));
  bool is_last = ended && offset + piece.size() == exec.output().end(stream);
  if (!is_last) piece.resize(whole_characters(piece));
  if (piece.empty()) co_return false;
  offset += piece.size();
  std::string name = stream == Stream::kStdout ? "stdout" : "stderr";
  ATOLL_CO_TRY_VOID(co_await send_event(call, position.id(), name, output_data(piece)));
  co_return true;
}

http::Task<Result<void>> send_exit(Call& call, Exec& exec, OutputPosition position) {
  std::string data = json_text(exec_summary_json(exec.row()));
  ATOLL_CO_TRY_VOID(co_await send_event(call, position.id(), "exit", std::move(data)));
  co_return co_await call.exchange.finish();
}

// Small, because thousands may wait in it.
http::Task<Result<void>> send_events(Call& call, Exec& exec, OutputPosition position) {
  while (true) {
    bool ended = exec.ended();
    ATOLL_CO_TRY(bool from_output, co_await send_piece(call, exec, Stream::kStdout, position));
    ATOLL_CO_TRY(bool from_error, co_await send_piece(call, exec, Stream::kStderr, position));
    if (from_output || from_error) continue;
    if (ended) break;
    if (exec.ended()) continue;
    bool changed = co_await wait_changed(call, exec);
    if (!changed) co_return Error(Code::kCancelled, "the client has gone");
  }
  co_return co_await send_exit(call, exec, position);
}

// True if events are to follow.
http::Task<Result<bool>> start_events(Call& call, Exec& exec, OutputPosition position,
                                      FirstEvent first) {
  http::Headers headers{{"X-Request-Id", call.request_id}, {"Atoll-Exec", exec.id().string()}};
  ATOLL_CO_TRY_VOID(co_await http::start_events(call.exchange, std::move(headers)));
  if (first == FirstEvent::kStart) {
    std::string data = json_text(exec_summary_json(exec.row()));
    ATOLL_CO_TRY_VOID(co_await send_event(call, position.id(), "start", std::move(data)));
  }
  if (call.exchange.request().method != http::Method::kHead) co_return true;
  ATOLL_CO_TRY_VOID(co_await call.exchange.finish());
  co_return false;
}

http::Task<Reply> answer_events(Call& call, std::shared_ptr<Exec> exec) {
  ATOLL_CO_TRY(OutputPosition position, parse_start(call.exchange.request(), *exec));
  co_return co_await follow_exec(call, std::move(exec), position, FirstEvent::kOutput);
}

http::Task<Reply> answer_raw(Call& call, std::shared_ptr<Exec> exec) {
  ATOLL_CO_TRY(RawRange range, parse_range(call.exchange.request(), *exec));
  auto sent = co_await send_raw(call, *exec, range);
  co_return std::optional<http::Response>();
}

http::Task<Reply> output(Call& call, Sandboxes& sandboxes) {
  ATOLL_CO_TRY(std::shared_ptr<Exec> exec, co_await named_exec(call, sandboxes));
  bool events = wants_events(call.exchange.request());
  http::Task<Reply> task =
      events ? answer_events(call, std::move(exec)) : answer_raw(call, std::move(exec));
  co_return co_await std::move(task);
}

}  // namespace

bool wants_events(const http::Request& request) {
  return request.headers.lists("Accept", "text/event-stream");
}

// Small, because thousands may wait in it.
http::Task<Reply> follow_exec(Call& call, std::shared_ptr<Exec> exec, OutputPosition position,
                              FirstEvent first) {
  Result<bool> started = co_await start_events(call, *exec, position, first);
  if (started && *started) auto sent = co_await send_events(call, *exec, position);
  co_return std::optional<http::Response>();
}

void add_exec_output_route(Router& router, Sandboxes& sandboxes) {
  auto action = [&sandboxes](Call& call) { return output(call, sandboxes); };
  router.add({.method = http::Method::kGet,
              .pattern = "/v1/sandboxes/{id}/execs/{exec}/output",
              .action = action,
              .time = Route::Time::kLong});
}

}  // namespace atl::api::v1
