// Descriptors: who may have how many of those that this process can have. Some are kept back for
// what atolld says, so that a change of a policy never fails for want of one; sandboxes cannot have
// those that connections need, nor the other way round; and of what connections can have, a tenant
// has at most as much as it leaves free for others.
//
// One thread. The limit is read at each question: it may be lowered while the process runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace atl::egress {

class Descriptors {
 public:
  // Sockets of its network, table of names, audit log, and one to spare.
  static constexpr size_t kOfSandbox = 10;
  // Both ends; what is in a pipe on its way costs two more.
  static constexpr size_t kOfConnection = 2, kOfPipe = 2;

  // Without a limit: what the process has.
  explicit Descriptors(std::optional<size_t> limit = std::nullopt) : fixed_limit_(limit) {}
  Descriptors(const Descriptors&) = delete;

  size_t limit() const;
  // One that was just made: new ones have the lowest number that is free, so a high one says that
  // all below are taken. False: it is kept for somebody else and must be closed.
  bool is_for_sandboxes(int descriptor) const;
  bool is_for_connections(int descriptor) const;

  // Whether there is room for one more beside these.
  bool has_room_beside(size_t sandboxes) const;
  size_t most_sandboxes() const;
  void set_sandboxes(size_t count) { sandboxes_ = count; }

  // What one connection of a tenant has; given back when it goes.
  class Share {
   public:
    Share() = default;
    Share(const Share&) = delete;
    ~Share() { shrink(held_); }
    // False: the tenant has too many already, and this one has what it had before.
    bool grow(Descriptors& of, uint64_t tenant, size_t count);
    bool grow(size_t count) { return of_ != nullptr && grow(*of_, tenant_, count); }
    void shrink(size_t count);

   private:
    Descriptors* of_ = nullptr;
    uint64_t tenant_ = 0;
    size_t held_ = 0;
  };

  // The tenant has half of what it may have, or more: connections that say nothing end sooner.
  bool is_short_of(uint64_t tenant) const;
  size_t held() const { return held_; }
  uint64_t refused() const { return refused_; }
  void note_refused() { ++refused_; }

 private:
  size_t free_for_connections() const;
  size_t held_by(uint64_t tenant) const;

  std::optional<size_t> fixed_limit_;
  size_t sandboxes_ = 0;
  size_t held_ = 0;
  std::map<uint64_t, size_t> tenants_;  // that hold any
  uint64_t refused_ = 0;
};

}  // namespace atl::egress
