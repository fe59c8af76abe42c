/* The same from C. */
#include <stdio.h>

#include "tensorcast/c_api.h"

int main(void) {
  const float weights[4] = {0.1f, -2.5f, 1000.0f, 1e-9f};
  unsigned char narrow[4];
  int i;

  if (tc_cast(weights, 1 /* float32 */, narrow, tc_dtype_parse("float8_e4m3fn"), 4, NULL) != TC_OK) {
    fprintf(stderr, "%s\n", tc_last_error());
    return 1;
  }
  for (i = 0; i < 4; ++i) printf("0x%02x ", narrow[i]);
  printf("\n");
  return 0;
}
