// Loads a program into the kernel and makes a map.
// victim: id=ESC-22
#include <linux/bpf.h>

#include "victim.h"

int main(void) {
  union bpf_attr map = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8};
  map.max_entries = 1;
  attempt("bpf map", syscall(SYS_bpf, BPF_MAP_CREATE, &map, sizeof map));
  struct bpf_insn instructions[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0},
                                    {.code = BPF_JMP | BPF_EXIT}};
  union bpf_attr program = {.prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2};
  program.insns = (uintptr_t)instructions;
  program.license = (uintptr_t) "GPL";
  attempt("bpf program", syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof program));
  return conclude();
}
