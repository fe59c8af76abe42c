#include "kernels/tally/integers_body.hpp"
