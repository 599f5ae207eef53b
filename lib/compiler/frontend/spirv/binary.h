// A SPIR-V module as a list of instructions (SPIR-V specification 2.3, "Physical Layout").
//
// Checks the header, and that every instruction lies within the module; not the instructions themselves. Reads modules of
// either byte order. Instructions point into the words of their Binary, which must outlive them.
// Pure; any thread. Errors: invalid_value with the reason as detail.
#pragma once

#include "spirv_headers.h"

#include <cstddef>
#include <cstdint>
#include <polder/result.h>
#include <span>
#include <string>
#include <vector>

namespace polder::compiler::spirv {

// The words before the first instruction.
inline constexpr size_t header_words = 5;

struct Instruction {
    spv::Op opcode = spv::OpNop;
    uint32_t type = 0;  // id of the result's type, 0: none
    uint32_t result = 0;  // id, 0: none
    uint32_t number = 0;  // its place among the module's instructions, from 1
    std::span<const uint32_t> operands;  // what follows type and result

    // 0, which is no id, when there is no such operand.
    [[nodiscard]] uint32_t operand(size_t index) const { return index < operands.size() ? operands[index] : 0; }
    // The literal string that begins at operand `index`; `next` becomes the index after it.
    [[nodiscard]] std::string text(size_t index, size_t* next = nullptr) const;
};

class Binary {
public:
    static constexpr uint32_t version_min = 0x00010000, version_max = 0x00010600;

    [[nodiscard]] static Result<Binary> read(std::span<const std::byte> bytes);

    // In the byte order of this machine, header included.
    [[nodiscard]] const std::vector<uint32_t>& words() const { return words_; }
    [[nodiscard]] const std::vector<Instruction>& instructions() const { return instructions_; }

private:
    explicit Binary(std::vector<uint32_t> words) : words_(std::move(words)) {}
    [[nodiscard]] Result<void> split();

    std::vector<uint32_t> words_;
    std::vector<Instruction> instructions_;
};

// "OpFAdd", or a number where the opcode is unknown.
[[nodiscard]] std::string name_of(spv::Op opcode);

}  // namespace polder::compiler::spirv
