// What the vectorizer has to know about the processor, beyond LLVM's descriptions.
#pragma once

#include <cstdint>

namespace polder::compiler::workgroup {

// Whether a gather of 16 elements takes about as long as 16 loads.
enum class Gathers : uint8_t { slow, quick };
// What a mask costs: nothing where the processor has registers for masks, else several instructions for each vector.
enum class Masks : uint8_t { cheap, dear };
struct LaneTarget {
    Gathers gathers = Gathers::slow;
    Masks masks = Masks::dear;
    unsigned register_words = 4;  // elements of 32 bits that a vector register has
};

}  // namespace polder::compiler::workgroup
