#include "kernels/tally/tally_body.hpp"
