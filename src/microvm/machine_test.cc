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

std::string word_after(const std::vector<std::string>& words, const char* option) {
  auto found = std::find(words.begin(), words.end(), option);
  return found == words.end() ? "" : *(found + 1);
}

Machine hardware_machine() {
  Machine machine = small_machine(false);
  machine.limits.kind = agent::GuestKind::kHardwareMachine;
  return machine;
}

TEST(Machine, HasTheProcessorThatItIsToldAndNoOther) {
  std::vector<std::string> emulated = machine_command(small_machine(false));
  EXPECT_EQ(word_after(emulated, "-accel"), "tcg,thread=multi,tb-size=64");
  EXPECT_EQ(word_after(emulated, "-cpu"), "max,-erms,-fsrm,-la57");
  std::vector<std::string> hardware = machine_command(hardware_machine());
  EXPECT_EQ(word_after(hardware, "-accel"), "kvm");
  EXPECT_EQ(word_after(hardware, "-cpu"), "host");
  for (const auto& words : {emulated, hardware})
    EXPECT_EQ(std::count(words.begin(), words.end(), "-accel"), 1)
        << "a second is a way to degrade";
  EXPECT_EQ(devices_of(hardware), devices_of(emulated));
  Machine restored = hardware_machine();
  restored.begins = Machine::Begins::kRestored;
  EXPECT_EQ(word_after(machine_command(restored), "-accel"), "kvm");
}

TEST(Machine, MitigatesWhatItsProcessorSpeculates) {
  std::string emulated = word_after(machine_command(small_machine(false)), "-append");
  for (const char* word :
       {" mitigations=off", " nokaslr", " tsc=reliable", " tsc_early_khz=2000000", " lpj=4000000"})
    EXPECT_NE(emulated.find(word), emulated.npos) << word;
  std::string hardware = word_after(machine_command(hardware_machine()), "-append");
  for (const char* word : {"mitigations", "kaslr", "tsc", "lpj", "clocksource"})
    EXPECT_EQ(hardware.find(word), hardware.npos) << word;
}

TEST(Machine, FindsNoStateThatAnotherAcceleratorLeft) {
  EXPECT_EQ(accelerator_of(small_machine(false).limits), Accelerator::kTcg);
  EXPECT_EQ(accelerator_of(hardware_machine().limits), Accelerator::kKvm);
  EXPECT_STRNE(state_file(Accelerator::kTcg), state_file(Accelerator::kKvm));
}

}  // namespace
}  // namespace atl::microvm
