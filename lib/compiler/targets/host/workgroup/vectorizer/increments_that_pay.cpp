#include "increments_that_pay.h"

#include "increments.h"
#include "lane_cost.h"

namespace polder::compiler::workgroup {

LaneShapes shapes_of(const llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan,
                     LaneShapes::Certainty certainty, unsigned lanes, Increments increments) {
    return {loop,           loops,         *plan.index, plan.blocks, plan.masked,
            plan.divergent, plan.privates, certainty,   lanes,       increments};
}

Increments increments_that_pay(llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan, unsigned width,
                               const llvm::TargetTransformInfo& target, const LaneTarget& prices) {
    if (!have_increments(plan.blocks))
        return Increments::any;
    const auto pays = [&](Increments increments) {
        const LaneShapes shapes = shapes_of(loop, loops, plan, LaneShapes::Certainty::certain, width, increments);
        if (increments == Increments::one && shapes.assumed_one().empty())
            return false;
        const LaneShapes guesses = shapes_of(loop, loops, plan, LaneShapes::Certainty::likely, width, increments);
        LaneAccesses accesses(shapes, guesses, width, target, prices.permutes);
        return costs_of(plan, shapes, accesses, width, prices).gain() > 0;
    };
    return pays(Increments::one) && !pays(Increments::any) ? Increments::one : Increments::any;
}

}  // namespace polder::compiler::workgroup
