#include "kernels/wide/multiply_body.hpp"
