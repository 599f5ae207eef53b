// Decoded PTX: functions whose instructions are functions of the host with dense numbers of registers.
//
// A frame of a function is an array of 64-bit slots: slot 0 holds where the frame's local memory begins, then come the registers, then the
// constants that the instructions use. An operand is the number of a slot, whatever it was in the text. A slot holds
// a value in its low bits; the others are undefined, because each instruction reads as many bits as its type has.
#pragma once

#include "types.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

namespace polder::ptx {

struct Instruction;
class Thread;

// False: the thread stops, because it has ended, waits or failed.
using Handler = bool (*)(Thread&, const Instruction&);

struct Instruction {
    Handler run = nullptr;
    uint32_t d = 0, a = 0, b = 0, c = 0;  // slots
    int64_t immediate = 0;  // an offset, the index of an instruction, a choice among variants
    const void* more = nullptr;  // a list of slots, a call
    uint32_t count = 0;  // of that list
    uint32_t line = 0;
};

struct Slots {
    std::vector<uint32_t> slots;
};

// What threads do that have met, in the order of their numbers. All are at instructions with this operation.
struct Meeting {
    void (*execute)(std::span<Thread* const> threads);
};

// Bytes that a call copies between the local memory of the caller's frame and that of the function's.
struct Passed {
    uint32_t of_caller;
    uint32_t of_callee;
    uint32_t bytes;
};
struct Function;
struct Call {
    const Function* callee = nullptr;  // null: in slot `a`
    std::vector<Passed> arguments;
    std::vector<Passed> results;
};
// An indirect call. The function that is found decides which bytes are passed.
struct IndirectCall {
    struct Part {
        uint32_t offset;
        uint32_t bytes;
    };
    std::vector<Part> arguments;
    std::vector<Part> results;
};

struct Function {
    std::string name;
    bool is_entry = false;
    bool has_body = false;
    uint32_t threads_max = 0;
    uint32_t parameter_bytes = 0;  // of an entry
    uint32_t local_bytes = 0;  // of a frame
    uint32_t slots = 0;
    std::vector<uint64_t> constants;  // of the last slots
    std::vector<IndirectCall::Part> parameters;  // in the frame's local memory
    std::vector<IndirectCall::Part> results;
    std::vector<Instruction> code;
    // What instructions point to.
    std::deque<Slots> lists;
    std::deque<Call> calls;
    std::deque<IndirectCall> indirect_calls;
};

// Where generic addresses of the spaces that are not the host's memory begin. Processors of x86 and ARM have no such pointers.
constexpr uint64_t window_bytes = uint64_t{1} << 32;
constexpr uint64_t shared_window = uint64_t{0x0a00} << 48;
constexpr uint64_t local_window = uint64_t{0x0b00} << 48;
constexpr uint64_t parameter_window = uint64_t{0x0c00} << 48;
constexpr uint64_t function_window = uint64_t{0x0d00} << 48;
constexpr uint64_t function_stride = 16;

}  // namespace polder::ptx
