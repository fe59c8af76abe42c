#include "kernels/tally/long_integers_body.hpp"
