// What stands outside of functions: types, constants, variables (in order, as the module has them).
#pragma once

#include "translation.h"

#include <map>

namespace polder::compiler::spirv {

// The application's values of specialization constants, by SpecId.
using Specialization = std::map<uint32_t, std::vector<std::byte>>;

// Defines everything before the first function. Check `failed` afterwards.
void define_globals(Translation& translation, const Specialization& specialization);

// The value of an OpSpecConstantOp.
void define_constant_operation(Translation& translation, const Instruction& instruction);

} // namespace polder::compiler::spirv
