/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an implementation on the number vectors of docs/vectors.md: cc run_vectors.c -o run && ./run FILE...
   Replace convert() by a call of your own implementation; here it is the compiler's conversions, and bfloat16 by hand.
   Exit status 1: something failed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  const char *source, *target;
  const char* options; /* "rounding=to_odd,saturate=false"; "-": the defaults of docs/vectors.md */
  uint64_t code;
} cast_case;

static int is(const char* a, const char* b) { return strcmp(a, b) == 0; }

/* float32, rounded to nearest even; NaN becomes quiet and keeps its sign and leading payload bits. */
static uint32_t bfloat16_of(uint32_t x) {
  if ((x & 0x7FFFFFFF) > 0x7F800000) return x >> 16 | 0x40;
  return (x + 0x7FFF + (x >> 16 & 1)) >> 16;
}

static int64_t signed_code(uint64_t code, int bits) {
  const uint64_t sign = (uint64_t)1 << (bits - 1);
  return (int64_t)((code ^ sign) - sign);
}

/* Returns the width of a whole type of C, and whether it has a sign; 0 for other types. */
static int integer_bits(const char* type, int* has_sign) {
  int bits = 0;
  *has_sign = type[0] == 'i';
  if (sscanf(type, *has_sign ? "int%d" : "uint%d", &bits) != 1) return 0;
  return bits;
}

/* Writes the target's code to `result` and returns 1, or returns 0 if there is no such conversion here. */
static int convert(const cast_case* c, uint64_t* result) {
  int from_sign, to_sign;
  const int from = integer_bits(c->source, &from_sign), to = integer_bits(c->target, &to_sign);
  const uint32_t low = (uint32_t)c->code;
  float single;
  double number;
  memcpy(&single, &low, sizeof single);
  memcpy(&number, &c->code, sizeof number);
  if (!is(c->options, "-") && !is(c->options, "rounding=nearest_even")) return 0;
  if (from != 0 && to != 0) { /* wraps */
    const uint64_t wide = from_sign ? (uint64_t)signed_code(c->code, from) : c->code;
    *result = to == 64 ? wide : wide & (((uint64_t)1 << to) - 1);
    return 1;
  }
  if (is(c->source, "float32") && is(c->target, "bfloat16")) {
    *result = bfloat16_of(low);
    return 1;
  }
  if (is(c->source, "float32") && is(c->target, "float64")) {
    number = single;
  } else if (from != 0 && is(c->target, "float64")) {
    number = from_sign ? (double)signed_code(c->code, from) : (double)c->code;
  } else if (is(c->source, "float64") && is(c->target, "float32")) {
    single = (float)number;
  } else if (from != 0 && is(c->target, "float32")) {
    single = from_sign ? (float)signed_code(c->code, from) : (float)c->code;
  } else {
    return 0;
  }
  *result = 0;
  if (is(c->target, "float32")) memcpy(result, &single, sizeof single); /* of a little-endian machine */
  if (is(c->target, "float64")) memcpy(result, &number, sizeof number);
  return 1;
}

typedef struct {
  unsigned long passed, failed, absent;
} totals;

static void run_line(char* line, totals* sums) {
  char* fields[6] = {0};
  int count = 0;
  for (char* field = strtok(line, "\t\n"); field && count < 6; field = strtok(NULL, "\t\n")) fields[count++] = field;
  if (count < 5 || is(fields[0], "string") || is(fields[2], "string") || is(fields[4], "error")) return;
  const cast_case one = {fields[0], fields[2], fields[3], strtoull(fields[1], NULL, 16)};
  const uint64_t expected = strtoull(fields[4], NULL, 16);
  uint64_t result = 0;
  if (!convert(&one, &result)) {
    ++sums->absent;
  } else if (result == expected) {
    ++sums->passed;
  } else if (++sums->failed <= 20) {
    printf("%s %s to %s (%s): 0x%llx, not %s [%s]\n", fields[0], fields[1], fields[2], fields[3],
           (unsigned long long)result, fields[4], count > 5 ? fields[5] : "");
  }
}

int main(int argc, char** argv) {
  static char line[1 << 16];
  totals sums = {0, 0, 0};
  for (int i = 1; i < argc; ++i) {
    FILE* file = fopen(argv[i], "r");
    if (!file) {
      perror(argv[i]);
      return 2;
    }
    while (fgets(line, sizeof line, file))
      if (line[0] != '#') run_line(line, &sums);
    fclose(file);
  }
  printf("%lu passed, %lu failed, %lu without such a conversion\n", sums.passed, sums.failed, sums.absent);
  return sums.failed != 0 || sums.passed == 0;
}
