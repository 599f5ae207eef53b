// Iterations of a masked loop that all lanes in it execute.
//
// In a triangle, as in `for (i = 0; i < get_local_id(0); i++)`, lanes leave the loop one after the other, in its last iterations. The iterations before
// are the same for all lanes that have entered it. They come first, in a loop of their own, which computes no masks and keeps no values of lanes that
// have left:
//
//     whole = the fewest iterations after which a lane leaves;  for (whole times) the iteration
//     the masked loop, from there
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"

#include <llvm/IR/IRBuilder.h>
#include <optional>

namespace polder::compiler::workgroup {

// How lanes leave a loop of one block one after the other: a counter is compared with a bound, both of which differ by the same from lane to lane.
struct OrderedExit {
    llvm::PHINode* counter = nullptr;
    llvm::Value* bound = nullptr;  // the same in all iterations
    int64_t step = 0;  // of the counter; positive where it grows to the bound, else negative
    llvm::CmpInst::Predicate stays = llvm::CmpInst::BAD_ICMP_PREDICATE;  // counter to bound
    bool is_next = false;  // whether the next iteration's counter is compared
};

// Nothing for other loops, and for long ones, whose masks are a small part.
[[nodiscard]] std::optional<OrderedExit> ordered_exit(const llvm::Loop& loop, const LaneShapes& shapes);

// A number of iterations, at most that of those after which no lane in `entering` leaves. At least one lane is in it. `counters` and `bounds`: of the lanes,
// before the first iteration.
[[nodiscard]] llvm::Value* whole_iterations(llvm::IRBuilder<>& at, const OrderedExit& exit, llvm::Value* counters,
                                            llvm::Value* bounds, llvm::Value* entering);

}  // namespace polder::compiler::workgroup
