#include "api/e2b/template_orders.h"

#include <algorithm>

namespace atl::api::e2b {
namespace {

constexpr size_t kTokenLetters = 40;
constexpr std::chrono::hours kLinkTime{1};

std::string draw_uuid() {
  std::array<unsigned char, 16> bytes;
  fill_random(bytes);
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);  // version 4
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);
  std::string text = to_hex(bytes);
  for (size_t place : {20, 16, 12, 8}) text.insert(place, "-");
  return text;
}

}  // namespace

std::shared_ptr<TemplateOrder> TemplateOrders::add(store::TenantId tenant,
                                                   AnnouncedTemplate announced) {
  if (orders_.size() >= kMaxOrders) orders_.pop_front();
  orders_.push_back(std::make_shared<TemplateOrder>(
      TemplateOrder{tenant, draw_uuid(), std::move(announced), nullptr}));
  return orders_.back();
}

std::shared_ptr<TemplateOrder> TemplateOrders::find(store::TenantId tenant, std::string_view name,
                                                    std::string_view id) const {
  for (const auto& order : orders_)
    if (order->tenant == tenant && order->announced.name == name && order->id == id) return order;
  return nullptr;
}

bool TemplateOrders::knows(store::TenantId tenant, std::string_view name) const {
  return std::any_of(orders_.begin(), orders_.end(), [&](const auto& order) {
    return order->tenant == tenant && order->announced.name == name;
  });
}

std::string TemplateOrders::make_link(store::TenantId tenant, const Digest& name, SteadyTime now) {
  if (links_.size() >= kMaxLinks) links_.pop_front();
  links_.push_back({random_text(kTokenLetters), tenant, name, now + kLinkTime});
  return links_.back().token;
}

std::optional<UploadLink> TemplateOrders::find_link(std::string_view token, SteadyTime now) const {
  for (const UploadLink& link : links_)
    if (link.token == token && now < link.expires) return link;
  return std::nullopt;
}

}  // namespace atl::api::e2b
