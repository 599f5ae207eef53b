// PTX text to a tree. The first error ends the parsing.
#pragma once

#include "syntax.h"

#include <optional>
#include <string>

namespace polder::ptx {

// None: `log` names the line and what is wrong with it.
[[nodiscard]] std::optional<ModuleText> parse(std::string_view text, std::string& log);

}  // namespace polder::ptx
