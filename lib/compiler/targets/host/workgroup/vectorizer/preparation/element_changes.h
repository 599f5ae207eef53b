// Elements that each work-item changes at a place of its own, as `counts[values[i] * n + id]++` does: it loads, computes and stores.
//
// As three operations on vectors, each lane's byte is put into a register and taken out of it again. The lanes change their elements one after the
// other instead, as atomic operations on local memory do (local_atomics.h): one instruction each, in the registers of numbers.
//
// The other way round, an atomic operation on local memory whose lanes change neighbours, as `atomic_add(&sums[get_local_id(0)], x)`, is a load, the
// operation and a store of vectors: one thread executes all work-items of a group, and no two lanes have the same element.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"

namespace polder::compiler::workgroup {

// Does both in the loop: where lanes would access bytes or shorts apart, and where a local atomic operation's lanes have a row. Returns how many changes
// are in another form; then plans, shapes and accesses are not valid any more. The loop must have no obstacle to lanes: in a load and a store it is not seen
// that a work-item may wait for another one.
unsigned fit_changes_to_lanes(const LanePlan& plan, const LaneShapes& shapes, LaneAccesses& accesses);

}  // namespace polder::compiler::workgroup
