/* SPDX-License-Identifier: Apache-2.0 */
/* Refuses numbers that an integer type cannot hold, and says which one it is, in parts for a program to use. */
#include <stdio.h>

#include <tensorcast/c_api.h>

int main(void) {
  const double prices[3] = {12.75, 254.5, 256.0};
  unsigned char bytes[3];
  tc_cast_options options;

  tc_cast_options_init(&options);
  options.out_of_range = TC_RANGE_ERROR;
  options.rounding = TC_ROUNDING_NEAREST_EVEN;
  if (tc_cast(prices, TC_FLOAT64, bytes, TC_UINT8, 2, &options) != TC_OK) {
    fprintf(stderr, "%s\n", tc_last_error());
    return 1;
  }
  printf("%d %d\n", bytes[0], bytes[1]);
  if (tc_cast(prices, TC_FLOAT64, bytes, TC_UINT8, 3, &options) == TC_OUT_OF_RANGE) {
    printf("element %d: %s\n", (int)tc_last_error_element(), tc_last_error_message());
  }
  return 0;
}
