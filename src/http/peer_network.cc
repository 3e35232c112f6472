#include "http/peer_network.h"

#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace atl::http {

namespace asio = boost::asio;

std::string network_of_peer(const asio::ip::tcp::socket& socket) {
  boost::system::error_code error;
  asio::ip::address address = socket.remote_endpoint(error).address();
  if (error) return "unknown";
  if (address.is_v4()) return address.to_string();
  asio::ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return asio::ip::make_address_v4(asio::ip::v4_mapped, v6).to_string();
  return asio::ip::make_network_v6(v6, 64).canonical().to_string();
}

std::string wider_network(const std::string& address) {
  boost::system::error_code error;
  asio::ip::address_v4 v4 = asio::ip::make_address_v4(address, error);
  if (!error) return asio::ip::make_network_v4(v4, 24).canonical().to_string();
  asio::ip::network_v6 v6 = asio::ip::make_network_v6(address, error);
  if (error) return address;
  return asio::ip::make_network_v6(v6.address(), 48).canonical().to_string();
}

}  // namespace atl::http
