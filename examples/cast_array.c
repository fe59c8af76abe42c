/* SPDX-License-Identifier: Apache-2.0 */
/* Converts an array, and prints the losses. */
#include <stdio.h>

#include <tensorcast/c_api.h>

int main(void) {
  const float weights[4] = {0.1f, -2.5f, 1000.0f, 1e-9f};
  unsigned char narrow[4];
  tc_cast_report report;
  int i;

  tc_cast_report_init(&report);
  if (tc_cast_with_report(weights, TC_FLOAT32, narrow, TC_FLOAT8_E4M3FN, 4, NULL, &report) != TC_OK) {
    fprintf(stderr, "%s\n", tc_last_error());
    return 1;
  }
  for (i = 0; i < 4; ++i) printf("0x%02x ", narrow[i]);
  printf("\n%d saturated, %d underflowed to zero\n", (int)report.saturated, (int)report.underflowed_to_zero);
  return 0;
}
