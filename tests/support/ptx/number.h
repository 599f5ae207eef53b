// Numbers of PTX text.
#pragma once

#include "syntax.h"

#include <optional>

namespace polder::ptx {

// 12, 0x0C, 0f3F800000, 0d3FF0000000000000 or 1.5: an operand of the kind integer, real32 or real64. None: `word` is no number.
[[nodiscard]] std::optional<Operand> number_of(std::string_view word);

}  // namespace polder::ptx
