// The shapes that the rules of lane_shape.cpp and lane_shape_guesses.cpp return most often.
#pragma once

#include "lane_shape.h"

namespace polder::compiler::workgroup {

inline constexpr LaneShape uniform = LaneShape::strided(0), varying = LaneShape::varying();

// Whether no operand is known to differ between lanes.
[[nodiscard]] bool all_uniform(const LaneShapes& shapes, const llvm::Instruction& instruction);

// As a guess, the shape of `value & mask`. `constant`: the mask's value; null when it is none.
[[nodiscard]] LaneShape step_under_mask(const LaneShape& value, const LaneShape& mask,
                                        const llvm::ConstantInt* constant);

}  // namespace polder::compiler::workgroup
