#include "store/tenant_settings.h"

#include <gtest/gtest.h>

#include "store/catalog.h"
#include "store/test_directory.h"

namespace atl::store {
namespace {

TEST(TenantSettings, AreKeptOfATenantThatExists) {
  TestDirectory directory;
  auto catalog = Catalog::open(directory / "atoll.db").value();
  TenantSettings settings = TenantSettings::open(directory / "atoll.db").value();
  EXPECT_TRUE(settings.all().value().empty());
  TenantSetting setting{E2bInternet::kAllowed, "{\"upstream\":{}}", 1000};
  ASSERT_TRUE(settings.set(kLocalTenant, setting).ok());
  EXPECT_EQ(settings.all().value().at(kLocalTenant), setting);
  ASSERT_TRUE(settings.set(kLocalTenant, TenantSetting()).ok());
  EXPECT_EQ(settings.all().value().at(kLocalTenant), TenantSetting());
  EXPECT_FALSE(settings.set(*TenantId::from_number(99), setting).ok());
}

}  // namespace
}  // namespace atl::store
