// An atolld that looks well until it is started.
#include <stdio.h>
#include <string.h>

int main(int count, char** values) {
  if (strcmp(values[count - 1], "--version") == 0) return puts("atolld 9.9.9") < 0 ? 1 : 0;
  if (strcmp(values[count - 1], "--check") == 0) return 0;
  fprintf(stderr, "this atolld was made to fail\n");
  return 1;
}
