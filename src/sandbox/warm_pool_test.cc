#include "sandbox/warm_pool.h"

#include <gtest/gtest.h>

#include "async/spawn.h"
#include "sandbox/test_bed.h"

namespace atl::sandbox {
namespace {

constexpr size_t kWarm = 3;

class WarmPools : public testing::Test {
 protected:
  WarmPools() {
    std::string manifest =
        "name = \"python\"\n[image]\n"
        "debian = { suite = \"bookworm\", packages = [\"python3\"] }\n[pool]\nwarm = 3\n";
    EXPECT_TRUE(
        replace_file(bed_.directory() + "/templates/python/template.toml", manifest, 0644).ok());
  }
  void fill() {
    for (auto walls : {WarmPool::Walls::kJails, WarmPool::Walls::kMachines}) {
      auto filling = pool().run(walls);
      // detached: owned by the test bed, and ends with its context
      spawn(bed_.context().get_executor(), std::move(filling));
    }
    EXPECT_TRUE(reaches(kWarm));
  }
  bool reaches(size_t size) {
    return step_until(bed_, [&] { return pool().size() == size; });
  }
  WarmPool& pool() { return bed_.sandboxes().pool(); }
  Result<Created> create(CreateSandbox request) {
    return bed_.run(bed_.sandboxes().create(store::kLocalTenant, std::move(request)));
  }
  void install_toolbox(char digit) { install("toolbox", "toolbox", digit); }
  void install(const std::string& name, const std::string& kind, char digit) {
    std::string folder = bed_.directory() + "/templates/" + name;
    std::filesystem::create_directory(folder);
    std::string manifest = "name = \"" + name + "\"\nkind = \"" + kind +
                           "\"\n[image]\n"
                           "debian = { suite = \"bookworm\", packages = [\"a-package\"] }\n";
    EXPECT_TRUE(replace_file(folder + "/template.toml", manifest, 0644).ok());
    EXPECT_TRUE(replace_file(folder + "/image", std::string(64, digit) + "\n", 0644).ok());
  }
  size_t isolates() { return bed_.run(bed_.driver->list())->size(); }

  TestBed bed_;
};

TEST_F(WarmPools, ACreateTakesWhatIsReadyAndItIsReplaced) {
  fill();
  auto created = create(bed_.create_request());
  ASSERT_TRUE(created.ok());
  EXPECT_TRUE(created->timings.from_pool);
  EXPECT_EQ(bed_.run_exec(*created->sandbox, {"end", "program", "exit", "0"}).verdict, "ok");
  EXPECT_EQ(pool().counts().hits, 1u);
  EXPECT_TRUE(reaches(kWarm + 1)) << "one more for what was taken lately";
  EXPECT_EQ(isolates(), kWarm + 2);
  EXPECT_TRUE(bed_.run(bed_.sandboxes().remove(store::kLocalTenant, created->sandbox->id())).ok());
  bed_.clock.advance(std::chrono::minutes(2));
  EXPECT_TRUE(reaches(kWarm)) << "long ago";
}

TEST_F(WarmPools, WhatIsFixedAtBirthMakesAColdCreate) {
  fill();
  CreateSandbox request = bed_.create_request();
  request.open_files = 512;
  auto created = create(request);
  ASSERT_TRUE(created.ok());
  EXPECT_FALSE(created->timings.from_pool);
  request = bed_.create_request();
  request.on_oom = isolate::OnOom::kEndSandbox;
  EXPECT_FALSE(create(request)->timings.from_pool);
  EXPECT_EQ(pool().counts().misses, 2u);
  EXPECT_EQ(pool().counts().hits, 0u);
}

TEST_F(WarmPools, OtherLimitsAreGivenToTheIsolateThatWasReady) {
  fill();
  CreateSandbox request = bed_.create_request();
  request.memory_bytes = 99ull << 20;
  auto created = create(request);
  ASSERT_TRUE(created.ok());
  EXPECT_TRUE(created->timings.from_pool);
  EXPECT_EQ(limits_of(created->sandbox->row()).wall.memory_bytes, 99ull << 20);
}

TEST_F(WarmPools, WhatOnlyWaitsMakesRoom) {
  fill();
  // The budget of the test bed is ten.
  for (int i = 0; i < 10; ++i) {
    CreateSandbox request = bed_.create_request();
    request.open_files = 512;
    ASSERT_TRUE(create(request).ok()) << i;
  }
  EXPECT_EQ(pool().size(), 0u);
  EXPECT_EQ(isolates(), 10u);
  EXPECT_EQ(create(bed_.create_request()).error().reason(), "no_capacity");
}

TEST_F(WarmPools, NoneIsLeftAfterARestart) {
  fill();
  auto kept = create(bed_.create_request());
  ASSERT_TRUE(kept.ok());
  SandboxId id = kept->sandbox->id();
  kept = Error(Code::kCancelled, "held no longer");
  bed_.restart();
  ASSERT_TRUE(bed_.run(bed_.sandboxes().adopt()).ok());
  EXPECT_EQ(*bed_.run(bed_.driver->list()), std::vector<SandboxId>{id});
}

TEST_F(WarmPools, MachinesAreTakenWithTheLimitsThatTheyHave) {
  install("microvm", "monitor", 'c');
  std::string path = bed_.directory() + "/templates/python/template.toml";
  std::string manifest = *read_file(path) + "[defaults]\nisolation = \"microvm\"\n";
  ASSERT_TRUE(replace_file(path, manifest, 0644).ok());
  fill();
  EXPECT_EQ(bed_.driver->machines.size(), kWarm);
  auto created = create(bed_.create_request());
  ASSERT_TRUE(created.ok()) << created.error().message();
  EXPECT_TRUE(created->timings.from_pool);
  EXPECT_EQ(created->sandbox->row().isolation, "microvm");
  EXPECT_EQ(bed_.driver->freezes_and_thaws, 0u) << "it rests by itself, and wakes when it is asked";
  CreateSandbox other = bed_.create_request();
  other.memory_bytes = 99ull << 20;
  auto cold = create(other);
  ASSERT_TRUE(cold.ok());
  EXPECT_FALSE(cold->timings.from_pool) << "its limits cannot be changed";
  other.template_name = "microvm";
  EXPECT_EQ(create(other).error().reason(), "template_is_monitor");
}

TEST_F(WarmPools, AMachineIsMadeForWhoAsksAndRefusedWithoutItsImage) {
  CreateSandbox request = bed_.create_request();
  request.isolation = store::Isolation::kMicrovm;
  EXPECT_EQ(create(request).error().reason(), "isolation_unavailable");
  install("microvm", "monitor", 'c');
  auto made = create(request);
  ASSERT_TRUE(made.ok());
  EXPECT_TRUE(bed_.driver->machines.contains(made->sandbox->id()));
  request.persistence = "persistent";
  EXPECT_EQ(create(request).error().reason(), "not_behind_this_wall");
}

TEST_F(WarmPools, WhoLeavesTheWallToTheTemplateGetsTheStrongestThatItsClassAllows) {
  install("microvm", "monitor", 'c');
  CreateSandbox request = bed_.create_request();
  request.preference = Preference::kStrongest;
  EXPECT_EQ(create(request)->sandbox->row().isolation, "jail");
  std::string path = bed_.directory() + "/templates/python/template.toml";
  std::string manifest = *read_file(path) + "[defaults]\nlatency = \"any\"\n";
  ASSERT_TRUE(replace_file(path, manifest, 0644).ok());
  EXPECT_EQ(create(request)->sandbox->row().isolation, "microvm");
  request.persistence = "persistent";
  EXPECT_EQ(create(request)->sandbox->row().isolation, "jail") << "what machines do not do";
  request = bed_.create_request();
  EXPECT_EQ(create(request)->sandbox->row().isolation, "jail") << "who says nothing";
}

TEST_F(WarmPools, WhatWaitsIsReplacedWhenTheToolboxIs) {
  fill();
  auto before = create(bed_.create_request());
  ASSERT_TRUE(before.ok());
  EXPECT_FALSE(bed_.driver->toolboxes.contains(before->sandbox->id()));
  install_toolbox('b');
  auto made = create(bed_.create_request());
  ASSERT_TRUE(made.ok());
  EXPECT_FALSE(made->timings.from_pool) << "none of those has it";
  EXPECT_EQ(bed_.driver->toolboxes.at(made->sandbox->id()), Digest::parse(std::string(64, 'b')));
  EXPECT_TRUE(step_until(bed_, [&] { return pool().counts().launches >= 2 * kWarm; }));
  auto warm = create(bed_.create_request());
  ASSERT_TRUE(warm.ok());
  EXPECT_TRUE(warm->timings.from_pool);
  EXPECT_EQ(bed_.driver->toolboxes.at(warm->sandbox->id()), Digest::parse(std::string(64, 'b')));
}

TEST_F(WarmPools, NoSandboxStartsFromAToolbox) {
  install_toolbox('b');
  CreateSandbox request = bed_.create_request();
  request.template_name = "toolbox";
  auto created = create(request);
  ASSERT_FALSE(created.ok());
  EXPECT_EQ(created.error().reason(), "template_is_toolbox");
  EXPECT_EQ(isolates(), 0u);
}

TEST_F(WarmPools, ATemplateThatIsGoneHasNoPool) {
  fill();
  std::filesystem::remove_all(bed_.directory() + "/templates/python");
  EXPECT_TRUE(reaches(0));
  EXPECT_EQ(isolates(), 0u);
}

}  // namespace
}  // namespace atl::sandbox
