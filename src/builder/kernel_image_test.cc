#include "builder/kernel_image.h"

#include <cstring>

#include <gtest/gtest.h>

namespace atl::builder {
namespace {

std::string number(uint32_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// A bzImage with one sector of set-up and this payload.
std::string kernel_with(const std::string& payload) {
  std::string kernel(1024, '\0');
  kernel[0x1f1] = 1;
  std::memcpy(kernel.data() + 0x248, number(0).data(), 4);
  std::memcpy(kernel.data() + 0x24c, number(static_cast<uint32_t>(payload.size())).data(), 4);
  return kernel + payload;
}

std::string lz4(const std::string& block) {
  return number(0x184c2102) + number(static_cast<uint32_t>(block.size())) + block + number(99);
}

TEST(KernelImage, IsUnpacked) {
  // Five literals, then eight bytes from four before, then one literal.
  std::string block = std::string("\x54", 1) + "\177ELFx" + std::string("\x04\x00", 2) +
                      std::string("\x10", 1) + "!";
  auto kernel = unpack_kernel(kernel_with(lz4(block)));
  ASSERT_TRUE(kernel.ok()) << kernel.error().message();
  EXPECT_EQ(*kernel, "\177ELFxELFxELFx!");
}

TEST(KernelImage, WhatIsPackedInAnotherWayIsLeftAlone) {
  std::string outside = std::string("\x10", 1) + "x" + std::string("\x09\x00", 2) + "z";
  for (const std::string& bad :
       {std::string(), std::string(100, 'x'), kernel_with("\x1f\x8b gzip"),
        kernel_with(lz4("\xf0\xff")), kernel_with(lz4(outside)),
        kernel_with(lz4("\x50"
                        "short")),
        kernel_with(number(0x184c2102) + number(1000) + "x"), kernel_with("").substr(0, 0x24d)})
    EXPECT_FALSE(unpack_kernel(bad).ok());
}

}  // namespace
}  // namespace atl::builder
