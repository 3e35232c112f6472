#include "notary/document.h"

#include <gtest/gtest.h>

namespace atl::notary {
namespace {

TEST(Document, HasTwoColumnsAndDigests) {
  auto document = make_document(
      "sandbox\tsabc\nfact\tuid\t0\t0\nfact\tseen\t-\ta \"b\\\nfact\tmounts\tblob:616263\t-\n");
  ASSERT_TRUE(document.ok());
  EXPECT_EQ(*document,
            R"({"version":1,"sandbox":"sabc","facts":[{"name":"uid","outside":"0","inside":"0"},)"
            R"({"name":"seen","outside":null,"inside":"a \"b\\"},{"name":"mounts","outside":)"
            R"("sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",)"
            R"("inside":null}]})");
}

TEST(Document, MalformedFactsAreRefused) {
  for (const char* facts :
       {"sandbox\n", "sandbox\ts", "fact\tuid\t0\n", "fact\ta\tb\tc\td\n", "fact\tuid\tblob:6\t0\n",
        "fact\tuid\tblob:zz\t0\n", "a\tb\x01\n", "a\tb\xc3\n", "\n"})
    EXPECT_FALSE(make_document(facts).ok()) << facts;
}

}  // namespace
}  // namespace atl::notary
