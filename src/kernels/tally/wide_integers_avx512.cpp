#include "kernels/tally/wide_integers_body.hpp"
