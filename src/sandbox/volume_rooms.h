// Where the files of a volume are worked on without a sandbox of one's own: in the one that has it
// mounted, else in a room: a sandbox that is made for it, used by all who come meanwhile, and
// removed when the last of them leaves. Paths of callers are paths inside either way.
//
// Crash: the next start removes rooms. One thread.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "sandbox/sandboxes.h"

namespace atl::sandbox {

class VolumeRooms {
 public:
  // Rooms are sandboxes of that template.
  VolumeRooms(Sandboxes& sandboxes, std::string template_name);

  // Where a caller is, until it leaves.
  struct Visit {
    std::shared_ptr<Sandbox> sandbox;
    std::string path;  // where the volume is mounted
    VolumeId volume;
    bool in_room = false;
  };
  enum class Purpose : unsigned char { kRead, kWrite };

  // kConflict with reason volume_in_use: others read it, or a paused sandbox has it.
  Task<Result<Visit>> enter(ShownVolume volume, Purpose purpose);
  Task<void> leave(Visit visit);
  // Until the rooms of these volumes are gone: for who is about to mount them.
  Task<void> wait_empty(store::TenantId tenant, std::vector<WantedVolume> volumes);

 private:
  struct Room {
    std::shared_ptr<Sandbox> sandbox;  // null: being made
    unsigned visitors = 0;             // 0: being made or removed
  };
  Result<Visit> join_user(const ShownVolume& volume, Purpose purpose) const;
  Task<Result<Visit>> make_room(ShownVolume volume);

  Sandboxes& sandboxes_;
  std::string template_name_;
  std::map<VolumeId, Room> rooms_;
  Event changed_;
};

}  // namespace atl::sandbox
