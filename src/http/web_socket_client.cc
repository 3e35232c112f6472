#include "http/web_socket_client.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>

#include <openssl/evp.h>

#include "base/utf8.h"
#include "http/dial.h"
#include "http/head.h"
#include "http/parser.h"

namespace atl::http {
namespace {

using std::chrono::steady_clock;

constexpr size_t kMaxHeaderBytes = 64 * 1024;
constexpr size_t kMaxRefusalBytes = 64 * 1024;
// RFC 6455, 1.3.
constexpr std::string_view kAcceptSuffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

enum Opcode : unsigned {
  kContinuation = 0,
  kText = 1,
  kBinary = 2,
  kClose = 8,
  kPing = 9,
  kPong = 10
};

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  ATOLL_CHECK(getrandom(bytes.data(), count, 0) == static_cast<ssize_t>(count));
  return bytes;
}

std::string base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  int length = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                               reinterpret_cast<const unsigned char*>(bytes.data()),
                               static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(length));
  return text;
}

std::string accept_of(const std::string& key) {
  std::string text = key + std::string(kAcceptSuffix);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  ATOLL_CHECK(EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha1(), nullptr) == 1);
  return base64({reinterpret_cast<const char*>(digest.data()), size});
}

Result<std::string> upgrade_request(const WebSocketClient::Address& address, const Headers& headers,
                                    const std::string& key) {
  std::string host = host_field(address.host, address.port);
  Headers all = headers;
  all.add("Upgrade", "websocket");
  all.add("Sec-WebSocket-Version", "13");
  all.add("Sec-WebSocket-Key", key);
  ATOLL_TRY(
      std::string head,
      format_request_head({.method = Method::kGet, .target = address.target, .host = host}, all));
  // format_request_head() keeps the fields of framing for itself.
  head.insert(head.size() - 2, "Connection: Upgrade\r\n");
  return head;
}

// One end of the handshake: a socket with a deadline, and what was read beyond the header.
struct Dialogue {
  Fd socket;
  SteadyTime deadline;
  std::string input;

  Result<void> send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t count = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count > 0) bytes.remove_prefix(static_cast<size_t>(count));
      if (count > 0 || errno == EINTR) continue;
      if (errno != EAGAIN) return Error::system("send");
      ATOLL_TRY_VOID(wait_for_socket(socket.get(), POLLOUT, deadline));
    }
    return {};
  }

  Result<size_t> receive() {
    for (;;) {
      std::array<char, 16 * 1024> piece;
      ssize_t count = recv(socket.get(), piece.data(), piece.size(), 0);
      if (count >= 0) {
        input.append(piece.data(), static_cast<size_t>(count));
        return static_cast<size_t>(count);
      }
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return Error::system("receive");
      ATOLL_TRY_VOID(wait_for_socket(socket.get(), POLLIN, deadline));
    }
  }

  Result<void> receive_header(ResponseParser& parser) {
    HeaderScanner scanner;
    for (;;) {
      ATOLL_TRY(size_t length, scanner.scan(input));
      if (length > 0) {
        ATOLL_TRY_VOID(
            parser.parse_header(std::string_view(input).substr(0, length), Method::kGet));
        input.erase(0, length);
        return {};
      }
      if (input.size() > kMaxHeaderBytes) return Error(Code::kExhausted, "header is too long");
      ATOLL_TRY(size_t count, receive());
      if (count == 0) return Error(Code::kUnavailable, "connection closed by the server");
    }
  }

  Result<std::string> receive_body(ResponseParser& parser) {
    std::string body;
    std::string piece(4096, '\0');
    while (!parser.body_done() && body.size() < kMaxRefusalBytes) {
      ATOLL_TRY(auto decoded, parser.decode(input, piece));
      input.erase(0, decoded.consumed);
      body.append(piece, 0, decoded.produced);
      if (decoded.produced > 0 || parser.body_done()) continue;
      ATOLL_TRY(size_t count, receive());
      if (count == 0) break;
    }
    return body;
  }
};

}  // namespace

Result<WebSocketClient::Opened> WebSocketClient::open(const Address& address,
                                                      const Headers& headers,
                                                      std::chrono::milliseconds timeout) {
  std::string key = base64(random_bytes(16));
  ATOLL_TRY(std::string request, upgrade_request(address, headers, key));
  Dialogue dialogue;
  dialogue.deadline = steady_clock::now() + timeout;
  ATOLL_TRY(dialogue.socket, dial(address.host, address.port, dialogue.deadline));
  ATOLL_TRY_VOID(dialogue.send(request));
  ResponseParser parser;
  ATOLL_TRY_VOID(dialogue.receive_header(parser));
  Opened opened;
  opened.refusal.status = parser.status();
  opened.refusal.headers = parser.take_headers();
  if (opened.refusal.status != 101) {
    ATOLL_TRY(opened.refusal.body, dialogue.receive_body(parser));
    return opened;
  }
  if (opened.refusal.headers.find("sec-websocket-accept") != accept_of(key))
    return Error(Code::kCorrupt, "the server's upgrade answers another request");
  opened.socket.reset(new WebSocketClient(std::move(dialogue.socket), std::move(dialogue.input)));
  return opened;
}

short WebSocketClient::wanted_events() const {
  return static_cast<short>(POLLIN | (output_.empty() ? 0 : POLLOUT));
}

Result<void> WebSocketClient::pump() {
  ATOLL_TRY_VOID(receive_some());
  return send_some();
}

Result<void> WebSocketClient::send_some() {
  while (!output_.empty()) {
    ssize_t count = ::send(socket_.get(), output_.data(), output_.size(), MSG_NOSIGNAL);
    if (count > 0) output_.erase(0, static_cast<size_t>(count));
    if (count > 0 || errno == EINTR) continue;
    if (errno == EAGAIN || close_code_) return {};
    return Error(Code::kUnavailable, "send: connection closed by the server", errno);
  }
  return {};
}

Result<void> WebSocketClient::receive_some() {
  std::array<char, 64 * 1024> piece;
  ssize_t count = recv(socket_.get(), piece.data(), piece.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    count = 0;
  else if (count <= 0 && !close_code_)
    return Error(Code::kUnavailable, "receive: connection closed by the server");
  if (count > 0) input_.append(piece.data(), static_cast<size_t>(count));
  for (;;) {
    ATOLL_TRY(bool more, take_frame());
    if (!more) return {};
  }
}

// RFC 6455, 5.2. False: the frame is not complete yet.
Result<bool> WebSocketClient::take_frame() {
  auto byte = [this](size_t at) { return static_cast<unsigned char>(input_[at]); };
  if (input_.size() < 2 || close_code_) return false;
  unsigned opcode = byte(0) & 15;
  bool is_final = (byte(0) & 0x80) != 0;
  if ((byte(0) & 0x70) != 0 || (byte(1) & 0x80) != 0)
    return Error(Code::kCorrupt, "the server's frame is malformed");
  uint64_t size = byte(1);
  size_t header = size < 126 ? 2 : size == 126 ? 4 : 10;
  if (input_.size() < header) return false;
  if (header > 2) size = 0;
  for (size_t i = 2; i < header; ++i) size = size << 8 | byte(i);
  size_t held = partial_ ? partial_->data.size() : 0;
  if (size > kMaxWebSocketMessageBytes - held)
    return Error(Code::kExhausted, "a message of the server is too long");
  if (input_.size() - header < size) return false;
  std::string data = input_.substr(header, size);
  input_.erase(0, header + size);
  if (opcode >= kClose) {
    if (!is_final || size > 125) return Error(Code::kCorrupt, "the server's frame is malformed");
    ATOLL_TRY_VOID(take_control(opcode, std::move(data)));
    return true;
  }
  if (opcode > kBinary || (opcode == kContinuation) != partial_.has_value())
    return Error(Code::kCorrupt, "the server's frame is malformed");
  if (!partial_) {
    auto kind = opcode == kText ? WebSocket::Kind::kText : WebSocket::Kind::kBinary;
    partial_ = WebSocket::Message{kind, ""};
  }
  partial_->data += data;
  if (!is_final) return true;
  messages_.push_back(std::move(*partial_));
  partial_.reset();
  return true;
}

Result<void> WebSocketClient::take_control(unsigned opcode, std::string data) {
  if (opcode == kPing) queue_frame(kPong, data);
  if (opcode == kClose) {
    constexpr unsigned kNoStatus = 1005;
    close_code_ = kNoStatus;
    if (data.size() >= 2)
      close_code_ = static_cast<unsigned>(static_cast<unsigned char>(data[0]) << 8 |
                                          static_cast<unsigned char>(data[1]));
    queue_frame(kClose, data.substr(0, 2));
  }
  if (opcode > kPong) return Error(Code::kCorrupt, "the server's frame is malformed");
  return {};
}

void WebSocketClient::queue(WebSocket::Kind kind, std::string_view data) {
  ATOLL_CHECK(kind == WebSocket::Kind::kBinary || is_utf8(data));
  queue_frame(kind == WebSocket::Kind::kText ? kText : kBinary, data);
}

void WebSocketClient::close(unsigned code) {
  std::string data = {static_cast<char>(code >> 8), static_cast<char>(code & 255)};
  queue_frame(kClose, data);
}

// A client masks what it sends, so that no proxy takes it for a request.
void WebSocketClient::queue_frame(unsigned opcode, std::string_view data) {
  output_ += static_cast<char>(0x80 | opcode);
  size_t size = data.size();
  size_t length_bytes = size < 126 ? 0 : size < 65536 ? 2 : 8;
  size_t first = length_bytes == 0 ? size : length_bytes == 2 ? 126 : 127;
  output_ += static_cast<char>(0x80 | first);
  for (size_t i = length_bytes; i > 0; --i) output_ += static_cast<char>(size >> (8 * (i - 1)));
  std::string mask = random_bytes(4);
  output_ += mask;
  for (size_t i = 0; i < size; ++i) output_ += static_cast<char>(data[i] ^ mask[i % 4]);
}

std::optional<WebSocket::Message> WebSocketClient::next() {
  if (messages_.empty()) return std::nullopt;
  WebSocket::Message message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

}  // namespace atl::http
