#include "microvm/machine.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace atl::microvm {
namespace {

std::vector<std::string> devices_of(const std::vector<std::string>& words) {
  std::vector<std::string> devices;
  for (size_t i = 0; i + 1 < words.size(); ++i)
    if (words[i] == "-device") devices.push_back(words[i + 1].substr(0, words[i + 1].find(',')));
  return devices;
}

Machine small_machine(bool has_toolbox) {
  Machine machine = {
      .kernel = "/boot/vmlinux", .limits = {}, .has_toolbox = has_toolbox, .tsc_khz = 2'000'000};
  machine.limits.memory_bytes = 128ull << 20;
  return machine;
}

TEST(Machine, HasDisksTwoPortsRandomnessAndNothingElse) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(devices_of(machine_command(small_machine(false))),
            (Names{"virtio-blk-device", "virtio-blk-device", "virtio-serial-device",
                   "virtserialport", "virtserialport", "virtio-rng-device"}));
  EXPECT_EQ(devices_of(machine_command(small_machine(true))).size(), 7u);
}

TEST(Machine, ImagesAreReadOnlyAndItsProcessIsConfined) {
  std::vector<std::string> words = machine_command(small_machine(true));
  for (const char* image : {kImageFile, kToolboxFile}) {
    auto names_it = [image](const std::string& word) {
      return word.find(std::string("filename=") + image) != word.npos;
    };
    auto found = std::find_if(words.begin(), words.end(), names_it);
    ASSERT_NE(found, words.end());
    EXPECT_NE(found->find("read-only=on"), found->npos) << *found;
  }
  EXPECT_NE(std::find(words.begin(), words.end(), "-sandbox"), words.end());
  EXPECT_NE(std::find(words.begin(), words.end(), "-nodefaults"), words.end());
}

TEST(Machine, HasTheMemoryOfItsProgramsAndOfItsKernel) {
  std::vector<std::string> words = machine_command(small_machine(false));
  auto found = std::find(words.begin(), words.end(), "-m");
  ASSERT_NE(found, words.end());
  EXPECT_EQ(*(found + 1), "240M");
  auto has_object = [](const std::string& word) {
    return word.starts_with("memory-backend-file,") && word.find("size=240M,") != word.npos &&
           word.ends_with(",share=on");
  };
  EXPECT_TRUE(std::any_of(words.begin(), words.end(), has_object));
}

TEST(Machine, ThatIsRestoredCannotChangeTheMemoryOfOthersAndBootsNothing) {
  Machine machine = small_machine(true);
  std::vector<std::string> booted = machine_command(machine);
  machine.begins = Machine::Begins::kRestored;
  std::vector<std::string> words = machine_command(machine);
  auto has = [&words](const std::string& word) {
    return std::find(words.begin(), words.end(), word) != words.end();
  };
  EXPECT_TRUE(has("-incoming") && has("defer"));
  EXPECT_FALSE(has("-kernel") || has("-initrd") || has("-append"));
  auto shares = [](const std::string& word) { return word.ends_with(",share=off"); };
  EXPECT_EQ(std::count_if(words.begin(), words.end(), shares), 1);
  EXPECT_EQ(devices_of(words), devices_of(booted)) << "what was saved has these";
}

}  // namespace
}  // namespace atl::microvm
