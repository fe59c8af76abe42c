#include "kernels/wide/multiply_convert.hpp"
