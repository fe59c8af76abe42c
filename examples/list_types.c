/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what a type can hold:
     list_types [SPELLING]... */
#include <stdio.h>

#include <tensorcast/c_api.h>

static int print(tc_dtype dtype) {
  tc_dtype_facts facts;
  facts.struct_size = sizeof facts;
  if (tc_dtype_get_facts(dtype, &facts) != TC_OK) return 1;
  printf("%-16s %2d bits, %g to %g\n", facts.name, facts.bits, facts.lowest, facts.largest);
  return 0;
}

int main(int argc, char** argv) {
  size_t i;
  int argument, status = 0;

  for (i = 0; argc < 2 && tc_dtype_at(i) != TC_UNDEFINED; ++i) status |= print(tc_dtype_at(i));
  for (argument = 1; argument < argc; ++argument) {
    const tc_dtype dtype = tc_dtype_parse(argv[argument]);
    if (dtype == TC_UNDEFINED) {
      fprintf(stderr, "%s\n  %s\n", tc_last_error_message(), tc_last_error_hint());
      return 2;
    }
    status |= print(dtype);
  }
  return status;
}
