// What the vectorizer has to know about the processor, beyond LLVM's descriptions.
#pragma once

#include "permutations.h"

#include <cstdint>

namespace polder::compiler::workgroup {

// Whether a gather of 16 elements takes hardly longer than 16 loads. `quick_for_all`: only loads of all lanes do, because gathers and scatters
// of few or no lanes take as long.
enum class Gathers : uint8_t { slow, quick_for_all, quick };
// What a mask costs: nothing where the processor has registers for masks, else several instructions for each vector.
enum class Masks : uint8_t { cheap, dear };
// What it costs to access a page that was not accessed lately. `dear`: more than a few loads and stores of registers on the stack.
enum class Pages : uint8_t { cheap, dear };
// Whether as many loads as other vector instructions can start in each cycle. `scarce`: hardly, so that vectors gain that share what all lanes load.
enum class Loads : uint8_t { plenty, scarce };
// Up to this many lanes, accesses one by one are faster than a gather or scatter.
inline constexpr unsigned accessed_one_by_one_max = 8;
// A function gets the values of at most this many lanes in memory: the bits of a mask as an integer.
inline constexpr unsigned lanes_in_memory_max = 64;
// As LaneTarget::register_words.
inline constexpr unsigned words_of_512_bits = 16;

struct LaneTarget {
    Gathers gathers = Gathers::slow;
    Masks masks = Masks::dear;
    Permutes permutes = Permutes::none;
    unsigned register_words = 4;  // elements of 32 bits that a vector register has
    Pages pages = Pages::cheap;
    Loads loads = Loads::plenty;
};

// The lanes of a loop over the work-items of one sub-group.
struct SubGroupLanes {
    unsigned size = 0;
    Permutes permutes = Permutes::none;
};

}  // namespace polder::compiler::workgroup
