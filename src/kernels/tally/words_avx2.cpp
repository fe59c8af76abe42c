#include "kernels/tally/words_body.hpp"
