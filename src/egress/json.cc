// Boost.JSON compiled once for the builder, instead of linking its library.
#include <boost/json/src.hpp>
