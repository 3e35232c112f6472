// Who is at the other end of a connection, as text. Private to this folder.
#pragma once

#include <string>

#include <boost/asio/ip/tcp.hpp>

namespace atl::http {

// The address; of a v6 one only the network, of which a host may have it all.
std::string network_of_peer(const boost::asio::ip::tcp::socket& socket);
// Of that text: the network around it, of which one party may have every address (/24, or /48).
std::string wider_network(const std::string& address);

}  // namespace atl::http
