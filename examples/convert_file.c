/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the tensors of a file to bfloat16, with progress:
     convert_file IN OUT */
#include <stdio.h>

#include <tensorcast/c_files.h>

static int show(void* data, uint64_t done, uint64_t total, const char* tensor) {
  *(int*)data += 1;
  if (total > 1000000000u) fprintf(stderr, "\r%3d %% %s", (int)(100 * done / total), tensor);
  return 1; /* 0 would cancel */
}

int main(int argc, char** argv) {
  tc_convert_request* request = tc_convert_request_new();
  tc_convert_outcome* outcome = NULL;
  tc_tensor_outcome tensor;
  tc_status status;
  size_t i;
  int calls = 0;

  if (argc != 3 || request == NULL) return 2;
  tc_convert_request_set_input(request, argv[1]);
  tc_convert_request_set_output(request, argv[2]);
  tc_convert_request_set_to(request, TC_BFLOAT16);
  tc_convert_request_set_flag(request, TC_CONVERT_VERIFY, 1);
  tc_convert_request_set_progress(request, show, &calls);
  status = tc_convert(request, &outcome);
  tc_convert_request_free(request);
  if (status != TC_OK) {
    fprintf(stderr, "%s\n", tc_last_error());
    return status == TC_CANCELLED ? 130 : 1;
  }
  tensor.struct_size = sizeof tensor;
  for (i = 0; i < tc_convert_outcome_tensor_count(outcome); ++i) {
    if (tc_convert_outcome_tensor(outcome, i, &tensor) != TC_OK) return 1;
    printf("%s: %s -> %s\n", tensor.name, tc_dtype_name(tensor.from), tc_dtype_name(tensor.to));
  }
  tc_convert_outcome_free(outcome);
  return calls > 0 ? 0 : 1;
}
