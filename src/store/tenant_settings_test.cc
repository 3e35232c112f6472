#include "store/tenant_settings.h"

#include <gtest/gtest.h>

#include "store/catalog.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

TEST(TenantSettings, TheInternetIsSetForATenantThatExists) {
  TestDirectory directory;
  auto catalog = Catalog::open(directory / "atoll.db").value();
  TenantSettings settings = TenantSettings::open(directory / "atoll.db").value();
  EXPECT_TRUE(settings.e2b_internet().value().empty());
  ASSERT_TRUE(settings.set_e2b_internet(kLocalTenant, E2bInternet::kAllowed).ok());
  EXPECT_EQ(settings.e2b_internet().value().at(kLocalTenant), E2bInternet::kAllowed);
  ASSERT_TRUE(settings.set_e2b_internet(kLocalTenant, E2bInternet::kDenied).ok());
  EXPECT_EQ(settings.e2b_internet().value().at(kLocalTenant), E2bInternet::kDenied);
  EXPECT_FALSE(settings.set_e2b_internet(*TenantId::from_number(99), E2bInternet::kAllowed).ok());
}

}  // namespace
}  // namespace atl::store
