// From the tables of policy.h and checks.h to the instructions, while our own compiler runs: what
// does not fit is an error of the build, and the agent holds the finished program only.
//
// The program looks the number up by halving the list of runs of numbers with the same answer, so a
// call passes about seven comparisons; the kernel itself remembers which numbers are always
// allowed, and asks the filter about the others only.
#pragma once

#include <linux/audit.h>
#include <linux/filter.h>

#include <array>
#include <bit>
#include <cstddef>

#include "agent/filter/checks.h"

namespace atl::agent::filter {

#ifndef __x86_64__
#error "the policy is written for the system calls of x86_64"
#endif
static_assert(std::endian::native == std::endian::little, "an argument's low half comes first");

inline constexpr size_t kMaxInstructions = 1024;
inline constexpr uint32_t kX32Bit = 0x40000000;

// What one number leads to: an action, or the check of that index.
struct Answer {
  uint32_t action = kRefuse;
  int check = -1;
  bool operator==(const Answer&) const = default;
};

// A side of a branch that leads to a return.
struct Return {
  size_t branch = 0;
  uint8_t sock_filter::*side = nullptr;
  uint32_t action = 0;
  bool done = false;
};

struct Program {
  std::array<sock_filter, kMaxInstructions> instructions = {};
  size_t size = 0;
  bool fits = true;  // no jump too far, no number decided twice
};

// Whose calls they are.
enum class Caller : uint8_t { kProgram, kMachine, kSentry };

class Compiler {
 public:
  explicit constexpr Compiler(Caller caller) : caller_(caller) {}

  constexpr Program compile() {
    decide();
    find_runs();
    add_prelude();
    add_tree(0, run_count_);
    add_returns();
    for (size_t check = 0; check < check_count(); ++check) add_check(check);
    return program_;
  }

 private:
  constexpr std::span<const CheckedCall> checked_of_caller() const {
    if (caller_ == Caller::kProgram) return kCheckedOfPrograms;
    return kCheckedOfMonitors;
  }
  constexpr size_t check_count() const { return std::size(kChecked) + checked_of_caller().size(); }
  constexpr const CheckedCall& checked(size_t check) const {
    size_t common = std::size(kChecked);
    return check < common ? kChecked[check] : checked_of_caller()[check - common];
  }

  constexpr void decide() {
    for (std::span<const int> numbers : kAllowed)
      for (int number : numbers) set(number, {kAllow, -1});
    if (caller_ == Caller::kSentry)
      for (int number : kSentryCalls) set(number, {kAllow, -1});
    if (caller_ != Caller::kProgram)
      for (int number : kMonitorCalls) set(number, {kAllow, -1});
    for (int number : kNotThere) set(number, {fail_with(ENOSYS), -1});
    for (size_t check = 0; check < check_count(); ++check)
      set(checked(check).number, {0, static_cast<int>(check)});
  }

  constexpr void set(int number, Answer answer) {
    if (!(answers_[static_cast<size_t>(number)] == Answer())) program_.fits = false;
    answers_[static_cast<size_t>(number)] = answer;
  }

  constexpr void find_runs() {
    for (size_t number = 0; number < answers_.size(); ++number)
      if (number == 0 || !(answers_[number] == answers_[number - 1]))
        run_starts_[run_count_++] = static_cast<uint32_t>(number);
  }

  constexpr size_t add(uint16_t code, uint32_t k, uint8_t yes = 0, uint8_t no = 0) {
    program_.instructions[program_.size] = {code, yes, no, k};
    return program_.size++;
  }
  constexpr void add_load(size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
  }
  constexpr void add_return(uint32_t action) { add(BPF_RET | BPF_K, action); }

  constexpr uint32_t foreign_call() const {
    return caller_ == Caller::kSentry ? fail_with(ENOSYS) : kKill;
  }

  constexpr void add_prelude() {
    add_load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0);
    add_return(foreign_call());
    add_load(offsetof(seccomp_data, nr));
    // Also -1, which no program has a reason to call.
    add(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1);
    add_return(foreign_call());
    add(BPF_JMP | BPF_JGT | BPF_K, kNewestCall, 0, 1);
    add_return(fail_with(ENOSYS));
  }

  constexpr void add_tree(size_t first, size_t end) {
    size_t middle = first + (end - first) / 2;
    size_t branch = add(BPF_JMP | BPF_JGE | BPF_K, run_starts_[middle]);
    add_side(branch, first, middle, &sock_filter::jf);
    add_side(branch, middle, end, &sock_filter::jt);
  }

  constexpr void add_side(size_t branch, size_t first, size_t end, uint8_t sock_filter::*side) {
    Answer answer = answers_[run_starts_[first]];
    bool is_leaf = end - first == 1;
    if (is_leaf && answer.check < 0) {
      returns_[return_count_++] = {branch, side, answer.action};
      return;
    }
    aim(branch, side);
    if (!is_leaf) return add_tree(first, end);
    check_jumps_[static_cast<size_t>(answer.check)] = add(BPF_JMP | BPF_JA, 0);
  }

  // One of each: the kernel compiles the program for every exec, by its length.
  constexpr void add_returns() {
    for (size_t i = 0; i < return_count_; ++i) {
      if (returns_[i].done) continue;
      for (size_t other = i; other < return_count_; ++other) {
        if (returns_[other].action != returns_[i].action) continue;
        aim(returns_[other].branch, returns_[other].side);
        returns_[other].done = true;
      }
      add_return(returns_[i].action);
    }
  }

  // Lets a branch jump to the instruction that is added next.
  constexpr void aim(size_t branch, uint8_t sock_filter::*side) {
    size_t distance = program_.size - branch - 1;
    if (distance > UINT8_MAX) program_.fits = false;
    program_.instructions[branch].*side = static_cast<uint8_t>(distance);
  }

  constexpr void add_check(size_t check) {
    size_t jump = check_jumps_[check];
    program_.instructions[jump].k = static_cast<uint32_t>(program_.size - jump - 1);
    for (const Clause& clause : checked(check).clauses) add_clause(clause);
    add_return(checked(check).otherwise);
  }

  constexpr void add_clause(const Clause& clause) {
    size_t begin = program_.size;
    for (const Condition& condition : clause.all) {
      if (condition.mask == 0) continue;
      add_load(offsetof(seccomp_data, args) + 8 * static_cast<size_t>(condition.argument));
      if (condition.mask != ~0u) add(BPF_ALU | BPF_AND | BPF_K, condition.mask);
      add(BPF_JMP | BPF_JEQ | BPF_K, condition.value);
    }
    add_return(clause.action);
    for (size_t at = begin; at < program_.size; ++at) {
      sock_filter& instruction = program_.instructions[at];
      if (BPF_CLASS(instruction.code) == BPF_JMP)
        instruction.jf = static_cast<uint8_t>(program_.size - at - 1);
    }
  }

  Caller caller_;
  Program program_;
  std::array<Answer, kNewestCall + 1> answers_ = {};
  std::array<uint32_t, kNewestCall + 1> run_starts_ = {};
  size_t run_count_ = 0;
  std::array<Return, kNewestCall + 1> returns_ = {};
  size_t return_count_ = 0;
  std::array<size_t, std::size(kChecked) + std::size(kCheckedOfPrograms)> check_jumps_ = {};
};

constexpr Program compile_policy(Caller caller) { return Compiler(caller).compile(); }

}  // namespace atl::agent::filter
