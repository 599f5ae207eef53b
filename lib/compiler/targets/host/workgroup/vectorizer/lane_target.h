// What the vectorizer has to know about the processor, beyond LLVM's descriptions.
#pragma once

#include <cstdint>

namespace polder::compiler::workgroup {

// Whether a gather of 16 elements takes hardly longer than 16 loads. `quick_for_all`: only loads of all lanes do, because gathers and scatters
// of few or no lanes take as long.
enum class Gathers : uint8_t { slow, quick_for_all, quick };
// What a mask costs: nothing where the processor has registers for masks, else several instructions for each vector.
enum class Masks : uint8_t { cheap, dear };
// Instructions that choose elements of a register by indices in another one. `words`: of eight elements of 32 bits. `two_registers`: elements of 16,
// 32 or 64 bits of two registers of 512 bits. `bytes`: also elements of eight bits.
enum class Permutes : uint8_t { none, words, two_registers, bytes };
struct LaneTarget {
    Gathers gathers = Gathers::slow;
    Masks masks = Masks::dear;
    Permutes permutes = Permutes::none;
    unsigned register_words = 4;  // elements of 32 bits that a vector register has
};

}  // namespace polder::compiler::workgroup
