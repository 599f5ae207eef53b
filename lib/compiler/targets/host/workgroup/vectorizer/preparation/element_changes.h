// Elements that each work-item changes at a place of its own, as `counts[values[i] * n + id]++` does: it loads, computes and stores.
//
// As three operations on vectors, each lane's byte is put into a register and taken out of it again. The lanes change their elements one after the
// other instead, as atomic operations on local memory do (local_atomics.h): one instruction each, in the registers of numbers.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"

namespace polder::compiler::workgroup {

// Replaces such loads and stores of the loop, where lanes would access bytes or shorts apart. Returns how many; then plans, shapes and accesses are
// not valid any more.
unsigned change_elements_in_one_piece(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses);

}  // namespace polder::compiler::workgroup
