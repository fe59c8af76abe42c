/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a transposed matrix without a copy of it, and promotes two tensors to their common type. */
#include <stdio.h>

#include <tensorcast/c_api.h>

int main(void) {
  const float matrix[2][3] = {{1, 2, 3}, {4, 5, 6}};
  signed char columns[3][2];
  const int64_t shape[2] = {3, 2};
  const int64_t strides[2] = {sizeof(float), 3 * sizeof(float)};
  tc_promote_options rules;
  tc_dtype common = TC_UNDEFINED;
  void *first = NULL, *second = NULL;

  if (tc_cast_strided(matrix, TC_FLOAT32, strides, columns, TC_INT8, NULL, shape, 2, NULL) != TC_OK) {
    fprintf(stderr, "%s\n", tc_last_error());
    return 1;
  }
  printf("%d %d %d\n", columns[0][1], columns[1][0], columns[2][1]);

  tc_promote_options_init_sized(&rules, sizeof rules);
  rules.rules = TC_RULES_NUMPY;
  if (tc_promote_tensors(columns, TC_INT8, 6, 0, matrix, TC_FLOAT32, 6, 0, &rules, NULL, &common, &first, &second) !=
      TC_OK) {
    fprintf(stderr, "%s\n", tc_last_error());
    return 1;
  }
  printf("%s %g\n", tc_dtype_name(common), (double)((const float*)first)[5]);
  tc_free(first);
  tc_free(second);
  return 0;
}
