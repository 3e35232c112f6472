#include "linux/bpf_interpreter.h"

#include <cstring>
#include <string>

namespace atl::linux {
namespace {

constexpr uint16_t kLoad = BPF_LD | BPF_W | BPF_ABS;
constexpr uint16_t kAnd = BPF_ALU | BPF_AND | BPF_K;
constexpr uint16_t kReturn = BPF_RET | BPF_K;
constexpr uint16_t kJump = BPF_JMP | BPF_JA;
constexpr uint16_t kJumpIfEqual = BPF_JMP | BPF_JEQ | BPF_K;
constexpr uint16_t kJumpIfAbove = BPF_JMP | BPF_JGT | BPF_K;
constexpr uint16_t kJumpIfNotBelow = BPF_JMP | BPF_JGE | BPF_K;
constexpr uint16_t kJumpIfAnyBit = BPF_JMP | BPF_JSET | BPF_K;

Error refused(const char* why, size_t at) {
  return Error(Code::kInvalid, std::string(why) + " at instruction " + std::to_string(at));
}

Result<void> check_instruction(const sock_filter& instruction, size_t at, size_t size) {
  size_t behind = size - at - 1;  // how many instructions come after this one
  switch (instruction.code) {
    case kLoad:
      if (instruction.k % 4 != 0 || instruction.k >= sizeof(seccomp_data))
        return refused("load outside the call", at);
      return {};
    case kAnd:
    case kReturn:
      return {};
    case kJump:
      if (instruction.k >= behind) return refused("jump out of the program", at);
      return {};
    case kJumpIfEqual:
    case kJumpIfAbove:
    case kJumpIfNotBelow:
    case kJumpIfAnyBit:
      if (instruction.jt >= behind || instruction.jf >= behind)
        return refused("jump out of the program", at);
      return {};
    default:
      return refused("unknown instruction", at);
  }
}

bool holds(uint16_t code, uint32_t accumulator, uint32_t constant) {
  switch (code) {
    case kJumpIfEqual:
      return accumulator == constant;
    case kJumpIfAbove:
      return accumulator > constant;
    case kJumpIfNotBelow:
      return accumulator >= constant;
    default:
      return (accumulator & constant) != 0;
  }
}

}  // namespace

Result<void> check_filter_program(std::span<const sock_filter> program) {
  if (program.empty() || program.size() > BPF_MAXINSNS)
    return Error(Code::kInvalid, "a program of " + std::to_string(program.size()));
  for (size_t at = 0; at < program.size(); ++at)
    ATOLL_TRY_VOID(check_instruction(program[at], at, program.size()));
  if (program.back().code != kReturn) return refused("no return", program.size() - 1);
  return {};
}

Result<uint32_t> run_filter_program(std::span<const sock_filter> program,
                                    const seccomp_data& call) {
  ATOLL_TRY_VOID(check_filter_program(program));
  uint32_t accumulator = 0;
  size_t at = 0;
  while (program[at].code != kReturn) {
    const sock_filter& instruction = program[at++];
    if (instruction.code == kLoad) {
      std::memcpy(&accumulator, reinterpret_cast<const char*>(&call) + instruction.k,
                  sizeof accumulator);
    } else if (instruction.code == kAnd) {
      accumulator &= instruction.k;
    } else if (instruction.code == kJump) {
      at += instruction.k;
    } else {
      at += holds(instruction.code, accumulator, instruction.k) ? instruction.jt : instruction.jf;
    }
  }
  return program[at].k;
}

}  // namespace atl::linux
