// The parts of Beast that are not templates, compiled once.
#include <boost/beast/src.hpp>
