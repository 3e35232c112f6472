// Boost.JSON compiled once for the command line, instead of linking its library.
#include <boost/json/src.hpp>
