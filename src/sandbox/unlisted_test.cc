#include "sandbox/unlisted.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "sandbox/test_bed.h"
#include "store/pairing.h"
#include "store/test_directory.h"

namespace atl::sandbox {
namespace {

TEST(Unlisted, ANewDatabaseRefusesWhatItFindsAndAJoinedOneSetsItAside) {
  store::TestDirectory directory;
  for (const char* name : {"daemon", "epoch"}) std::filesystem::create_directory(directory / name);
  store::PairedPlaces places{directory / "daemon", directory / "epoch/current"};
  {
    Ledger ledger(store::Catalog::open(places).value());
    auto fate = fate_of_unlisted(ledger, "snapshot", "n");
    ASSERT_FALSE(fate.ok());
    EXPECT_EQ(fate.error().reason(), "database_mismatch");
    EXPECT_NE(fate.error().message().find("atoll restore"), std::string::npos);
  }
  ASSERT_TRUE(store::join_pair(places, 1).ok());
  Ledger ledger(store::Catalog::open(places).value());
  EXPECT_EQ(fate_of_unlisted(ledger, "snapshot", "n").value(), store::Unlisted::kSetAside);
}

TEST(Unlisted, OutputWithoutARowIsRemovedAtAStart) {
  TestBed bed;
  auto sandbox = bed.create();
  bed.run_exec(*sandbox, {"echo", "text"});
  std::string own = bed.directory() + "/outputs/" + sandbox->id().string();
  sandbox.reset();  // it belongs to the world that ends now
  std::string stray = bed.directory() + "/outputs/" + SandboxId::draw().string();
  std::filesystem::create_directory(stray);
  ASSERT_TRUE(replace_file(stray + "/e1.stdout", "text", 0600).ok());
  bed.restart();
  ASSERT_TRUE(bed.run(bed.sandboxes().adopt()).ok());
  EXPECT_FALSE(std::filesystem::exists(stray));
  EXPECT_TRUE(std::filesystem::exists(own));
}

}  // namespace
}  // namespace atl::sandbox
