#include "egress/protocol.h"

#include "base/bytes.h"
#include "egress/policy_json.h"
#include "egress/text_call.h"

namespace atl::egress {
namespace {

constexpr size_t kMaxErrorBytes = 4096;

Error malformed_call(const char* what) { return Error(Code::kInvalid, what); }

void write_head(ByteWriter& writer) {
  writer.u32(kMagic);
  writer.u16(kVersion);
}

bool names_sandbox(Operation operation) {
  if (operation == Operation::kRetain || operation == Operation::kDeny) return false;
  if (operation == Operation::kRoom || operation == kShowHealth) return false;
  return !is_about_secrets(operation);
}

Result<void> read_head(ByteReader& reader) {
  uint32_t magic = reader.u32();
  uint16_t version = reader.u16();
  if (!reader.ok() || magic != kMagic) return malformed_call("message has the wrong magic");
  if (version != kVersion)
    return Error(Code::kUnsupported, "the other side speaks version " + std::to_string(version));
  return {};
}

}  // namespace

std::string encode_request(const Request& request) {
  std::string out;
  ByteWriter writer(out);
  write_head(writer);
  writer.u16(static_cast<uint16_t>(request.operation));
  writer.u64(request.request_id);
  writer.text(request.sandbox ? request.sandbox->view() : std::string_view());
  writer.u64(request.tenant);
  writer.text(request.policy);
  writer.u64(request.offset);
  writer.text(request.retained);
  return out;
}

Result<Request> parse_request(std::string_view message) {
  ByteReader reader(message);
  ATOLL_TRY_VOID(read_head(reader));
  Request request;
  uint16_t operation = reader.u16();
  request.request_id = reader.u64();
  std::string_view sandbox = reader.text(SandboxId::kLength);
  request.tenant = reader.u64();
  request.policy = reader.text(kMaxPolicyBytes);
  request.offset = reader.u64();
  request.retained = reader.text(kMaxRetained * SandboxId::kLength);
  if (!reader.done()) return malformed_call("request has the wrong size");
  request.operation = static_cast<Operation>(operation);
  bool is_known = operation >= 1 && operation <= static_cast<uint16_t>(Operation::kRoom);
  if (!is_known && !is_text_call(request.operation)) return malformed_call("unknown operation");
  if (!sandbox.empty()) request.sandbox = SandboxId::parse(sandbox);
  if (request.sandbox.has_value() != names_sandbox(request.operation))
    return malformed_call("bad sandbox id");
  return request;
}

std::string encode_reply(const Reply& reply) {
  std::string out;
  ByteWriter writer(out);
  write_head(writer);
  writer.u64(reply.request_id);
  writer.u16(static_cast<uint16_t>(reply.status));
  writer.text(std::string_view(reply.message).substr(0, kMaxErrorBytes));
  writer.u64(reply.next_offset);
  writer.text(reply.rows);
  return out;
}

Result<Reply> parse_reply(std::string_view message) {
  ByteReader reader(message);
  ATOLL_TRY_VOID(read_head(reader));
  Reply reply;
  reply.request_id = reader.u64();
  uint16_t status = reader.u16();
  reply.message = reader.text(kMaxErrorBytes);
  reply.next_offset = reader.u64();
  reply.rows = reader.text(kMaxMessageBytes);
  if (!reader.done() || status > static_cast<uint16_t>(Status::kFull))
    return malformed_call("bad reply");
  reply.status = static_cast<Status>(status);
  return reply;
}

}  // namespace atl::egress
