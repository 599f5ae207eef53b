// The shapes that the rules of lane_shape.cpp and lane_shape_guesses.cpp return.
#pragma once

#include "lane_shape.h"

namespace polder::compiler::workgroup {

inline constexpr LaneShape uniform{LaneShape::Kind::strided, 0, true, true, nullptr, 0};
inline constexpr LaneShape varying{LaneShape::Kind::varying, 0, false, false, nullptr, 0};

inline LaneShape strided(int64_t stride) {
    return stride == 0 ? uniform : LaneShape{LaneShape::Kind::strided, stride, false, false, nullptr, 0};
}

// Where one of two values is the same for all lanes: the shape of the other one.
inline LaneShape of_one_that_varies(const LaneShape& left, const LaneShape& right) {
    if (left.kind == LaneShape::Kind::unknown || right.kind == LaneShape::Kind::unknown)
        return {};
    if (!left.is_strided() || !right.is_strided() || (!left.is_uniform() && !right.is_uniform()))
        return varying;
    return left.is_uniform() ? right : left;
}

}  // namespace polder::compiler::workgroup
