#include "microvm/lent_memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "agent/imprint_protocol.h"
#include "agent/still_files.h"
#include "linux/sealed_memory.h"
#include "linux/unix_socket.h"

namespace atl::microvm {
namespace {

// Who brings memory to a keeper, over a socket in a directory without a name.
class LentMemory : public ::testing::Test {
 protected:
  LentMemory() {
    char name[] = "/tmp/lent-memory-XXXXXX";
    EXPECT_NE(mkdtemp(name), nullptr);
    directory_ = Fd(::open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto listener = linux::listen_at(directory_.get(), "agent", SOCK_STREAM, 1);
    auto bringer = linux::connect_at(directory_.get(), "agent", SOCK_STREAM);
    EXPECT_TRUE(listener.ok() && bringer.ok());
    listener_ = std::move(*listener);
    bringer_ = std::move(*bringer);
    unlinkat(directory_.get(), "agent", 0);
    rmdir(name);
  }
  Result<Lent> bring(int memory) {
    int lent[] = {memory};
    auto sent =
        linux::send_message(bringer_.get(), agent::encode_imprint(agent::kLaidDown), lent, 0);
    EXPECT_TRUE(sent.ok());
    return await_memory(listener_.get());
  }

  Fd directory_, listener_, bringer_;
};

TEST_F(LentMemory, IsWhatWasBroughtAndBeginsAtAWord) {
  auto memory = linux::make_sealed_memory("lent", "12345");
  ASSERT_TRUE(memory.ok());
  auto lent = bring(memory->get());
  ASSERT_TRUE(lent.ok()) << lent.error().message();
  EXPECT_EQ(lent->bytes, 5u);
  ASSERT_EQ(send(bringer_.get(), &agent::kBeginNote, 1, 0), 1);
  EXPECT_TRUE(await_begin(*lent).ok());
}

TEST_F(LentMemory, ThatCouldBeChangedIsRefused) {
  Fd memory(memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(bring(memory.get()).error().code(), Code::kCorrupt);
}

TEST_F(LentMemory, AnotherWordIsNoBeginning) {
  auto memory = linux::make_sealed_memory("lent", "1");
  auto lent = bring(memory->get());
  ASSERT_TRUE(lent.ok());
  ASSERT_EQ(send(bringer_.get(), "x", 1, 0), 1);
  EXPECT_EQ(await_begin(*lent).error().code(), Code::kCorrupt);
}

TEST_F(LentMemory, NothingBeginsWhenWhoBroughtItIsGone) {
  auto memory = linux::make_sealed_memory("lent", "1");
  auto lent = bring(memory->get());
  ASSERT_TRUE(lent.ok());
  bringer_.reset();
  EXPECT_EQ(await_begin(*lent).error().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace atl::microvm
