#include "shapes_that_pay.h"

#include "lane_cost.h"
#include "targets/host/workgroup/vectorizer/analysis/increments.h"
#include "targets/host/workgroup/vectorizer/analysis/item_blocks.h"

namespace polder::compiler::workgroup {

LaneShapes shapes_of(const llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan,
                     LaneShapes::Certainty certainty, unsigned lanes, Increments increments) {
    return {loop,           loops,         *plan.index, plan.blocks, plan.masked,
            plan.divergent, plan.privates, certainty,   lanes,       increments};
}

namespace {

LaneCosts costs_with(const LaneShapes& shapes, llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan,
                     unsigned width, unsigned lanes, Increments increments, const llvm::TargetTransformInfo& target,
                     const LaneTarget& prices) {
    const LaneShapes guesses = shapes_of(loop, loops, plan, LaneShapes::Certainty::likely, lanes, increments);
    LaneAccesses accesses(shapes, guesses, width, target, prices.permutes, prices.gathers);
    return costs_of(plan, shapes, accesses, width, prices);
}

}  // namespace

Increments increments_that_pay(llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan, unsigned width,
                               const llvm::TargetTransformInfo& target, const LaneTarget& prices) {
    if (!have_increments(plan.blocks))
        return Increments::any;
    const auto pays = [&](Increments increments) {
        const LaneShapes shapes = shapes_of(loop, loops, plan, LaneShapes::Certainty::certain, width, increments);
        if (increments == Increments::one && shapes.assumed_one().empty())
            return false;
        return costs_with(shapes, loop, loops, plan, width, width, increments, target, prices).gain() > 0;
    };
    return pays(Increments::one) && !pays(Increments::any) ? Increments::one : Increments::any;
}

unsigned lanes_of_blocks_that_pay(llvm::Loop& loop, const llvm::LoopInfo& loops, const LanePlan& plan, unsigned width,
                                  Increments increments, const llvm::TargetTransformInfo& target,
                                  const LaneTarget& prices) {
    if (!have_divisions_into_blocks(plan.blocks))
        return width;
    const auto shapes_for = [&](unsigned lanes) {
        return shapes_of(loop, loops, plan, LaneShapes::Certainty::certain, lanes, increments);
    };
    const auto gain_of = [&](const LaneShapes& shapes, unsigned lanes) {
        return costs_with(shapes, loop, loops, plan, width, lanes, increments, target, prices).gain();
    };
    const LaneShapes of_blocks = shapes_for(width);
    if (!of_blocks.depends_on_lanes())
        return width;
    // What is certain needs no other outcome, which would be compiled as well.
    constexpr double part_enough = 0.9;
    return gain_of(of_blocks, width) >= part_enough * gain_of(shapes_for(0), 0) ? width : 0;
}

}  // namespace polder::compiler::workgroup
