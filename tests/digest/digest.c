/* SPDX-License-Identifier: Apache-2.0 */
/* digest: converts all 65,536 codes of float16 and a million codes of float32 to each of the 25 numeric types of ONNX,
   with saturate 1 and 0, and by each word of rounding, and prints a digest of each result, and one of all of both
   kinds. They are the same on every machine.

     digest             prints 452 lines
     digest --check     prints the last line of both, and fails unless they are the known ones

   The C interface alone, so that it compiles for whatever has a C compiler. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../../tools/tcast/process/digests.h"

static void print_digest(tc_dtype from, tc_dtype to, const char* what, int number, uint64_t digest) {
  printf("%s %s %s=%d %016" PRIx64 "\n", tc_dtype_name(from), tc_dtype_name(to), what, number, digest);
}

int main(int argc, char** argv) {
  const int is_check = argc == 2 && strcmp(argv[1], "--check") == 0;
  if (argc > 1 && !is_check) {
    fprintf(stderr, "digest: the only argument is --check\n");
    return 2;
  }
  Digests digests;
  if (digest_casts(&digests, is_check ? NULL : print_digest) != TC_OK) {
    fprintf(stderr, "digest: %s\n", tc_last_error());
    return 1;
  }
  printf("all %016" PRIx64 "\nwords %016" PRIx64 "\n", digests.casts, digests.words);
  return is_check && (digests.casts != expected_digest_of_casts || digests.words != expected_digest_of_words);
}
