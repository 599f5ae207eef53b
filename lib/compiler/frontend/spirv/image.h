// Images: their names in OpenCL C, and the instructions on them (SPIR-V specification 3.49.10).
//
// One thread; lives as long as the translation.
#pragma once

#include "body.h"

namespace polder::compiler::spirv {

// "image2d_array_t", "sampler_t"; empty for a type that is neither.
[[nodiscard]] std::string image_type_name(const Type& type);
// "read_only"; "none" for a type that is no image.
[[nodiscard]] std::string image_access_name(const Type& type);

// The bits of an OpConstantSampler in the form of OpenCL C's sampler initializers; nothing for modes that OpenCL does not have.
[[nodiscard]] std::optional<uint32_t> sampler_bits(const Instruction& instruction);
// A sampler with these bits.
[[nodiscard]] llvm::Value* make_sampler(Body& body, llvm::Type* type, llvm::Value* bits);

// The image type of the operand at `index`; another type is an error, and the result is null.
[[nodiscard]] const Type* image_at(Body& body, const Instruction& instruction, size_t index);
// The name of a function whose first parameter is the image.
[[nodiscard]] MangledName image_function(Body& body, std::string_view name, const Type& image);

bool emit_image(Body& body, const Instruction& instruction);

}  // namespace polder::compiler::spirv
