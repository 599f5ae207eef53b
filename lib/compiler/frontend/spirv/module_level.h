// Translates types, constants and variables outside of functions, in the order of the module.
#pragma once

#include "translation.h"

#include <map>

namespace polder::compiler::spirv {

// The values that the application set for specialization constants, by SpecId.
using Specialization = std::map<uint32_t, std::vector<std::byte>>;

// Translates all instructions before the first function. The caller checks `failed` afterwards.
void define_globals(Translation& translation, const Specialization& specialization);

// The value of an OpSpecConstantOp.
void define_constant_operation(Translation& translation, const Instruction& instruction);

} // namespace polder::compiler::spirv
