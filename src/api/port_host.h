// The host form of a port's address: "<port>-<sandbox id>.<domain>", where the domain is a name of
// this server. All paths of such a host are those of the port; a token comes in the query, as
// "atoll_token".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/message.h"

namespace atl::api {

struct PortHost {
  std::string port;     // "8000", any digits
  std::string sandbox;  // an id
  std::string domain;   // not checked
};

// Of a host name in lower case, without the server's own port.
std::optional<PortHost> parse_port_host(std::string_view name);
// Whether the Host field of a request, as it came, is one.
bool is_port_host(std::string_view host);
// Of a Host field: in lower case, without the server's own port.
std::string name_of_host(std::string_view host);

// The path of the same request in the form "/v1/sandboxes/{id}/ports/{port}[~token]/…".
std::string port_path(const PortHost& host, const http::Request& request);

// What is left for the port itself.
std::string without_token(std::string_view query);

}  // namespace atl::api
