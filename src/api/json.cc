// Boost.JSON, compiled here for all of atolld.
#include <boost/json/src.hpp>
