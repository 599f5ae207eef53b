// A block is long if it does not fit into what the processor looks ahead. For it the time in the order of the code is estimated as that of a processor with as many
// units as it needs, and compared to a bound for each order: the longest chain of dependent instructions, and the time for which the busiest unit is used. Only
// where the order of the code is clearly above that bound do both ends count, because values of interleaved parts need more registers.
#include "long_block_scheduler.h"

#include <algorithm>
#include <llvm/Config/abi-breaking.h>
#include <vector>

// Classes of these headers have fewer members with NDEBUG. LLVM was built with it, unless it has the checks that change its ABI.
#pragma push_macro("NDEBUG")
#undef NDEBUG
#if !LLVM_ENABLE_ABI_BREAKING_CHECKS
#define NDEBUG
#endif
#include <llvm/CodeGen/MachineFunction.h>
#include <llvm/CodeGen/MachineScheduler.h>
#include <llvm/CodeGen/MacroFusion.h>
#include <llvm/CodeGen/TargetInstrInfo.h>
#include <llvm/CodeGen/TargetSchedule.h>
#include <llvm/CodeGen/TargetSubtargetInfo.h>
#include <llvm/Target/TargetMachine.h>
#pragma pop_macro("NDEBUG")

namespace polder::compiler {
namespace {

// Of more than 200 kernels of the bench and of everyday ones, the estimate is at most 1.27 times the bound.
constexpr unsigned long_block_min = 256;
constexpr double waiting_min = 1.3;

unsigned most_of_unit(const llvm::ScheduleDAGMI& dag) {
    const llvm::TargetSchedModel& model = *dag.getSchedModel();
    if (!model.hasInstrSchedModel())
        return 0;
    std::vector<unsigned> used(model.getNumProcResourceKinds());
    for (const llvm::SUnit& unit : dag.SUnits) {
        const llvm::MCSchedClassDesc* const kind = model.resolveSchedClass(unit.getInstr());
        if (!kind->isValid())
            continue;
        for (auto use = model.getWriteProcResBegin(kind); use != model.getWriteProcResEnd(kind); ++use)
            used[use->ProcResourceIdx] += use->ReleaseAtCycle;
    }
    unsigned most = 0;
    for (unsigned resource = 1; resource < used.size(); ++resource)
        most = std::max(most, used[resource] / model.getProcResource(resource)->NumUnits);
    return most;
}

std::vector<BlockStep> steps_of(const llvm::ScheduleDAGMI& dag) {
    std::vector<BlockStep> steps(dag.SUnits.size());
    for (const llvm::SUnit& unit : dag.SUnits) {
        BlockStep& step = steps[unit.NodeNum];
        step.latency = unit.Latency;
        for (const llvm::SDep& input : unit.Preds)
            if (!input.getSUnit()->isBoundaryNode() && !input.isArtificial())
                step.inputs.push_back({.step = input.getSUnit()->NodeNum, .latency = input.getLatency()});
    }
    return steps;
}

bool is_waiting(const llvm::ScheduleDAGMI& dag) {
    const llvm::TargetSchedModel& model = *dag.getSchedModel();
    if (dag.SUnits.size() < long_block_min || model.getMicroOpBufferSize() == 0)
        return false;
    const std::vector<BlockStep> steps = steps_of(dag);
    const unsigned bound = std::max(longest_chain(steps), most_of_unit(dag));
    const LookAhead look_ahead{.steps = static_cast<unsigned>(model.getMicroOpBufferSize()),
                               .per_cycle = model.getIssueWidth()};
    return cycles_in_order(steps, look_ahead) > waiting_min * bound;
}

class LongBlockScheduler final : public llvm::GenericScheduler {
public:
    using GenericScheduler::GenericScheduler;

    // The graph of a block's dependencies is complete, and no instruction has a place yet.
    void initialize(llvm::ScheduleDAGMI* dag) override {
        GenericScheduler::initialize(dag);
        if (is_waiting(*dag))
            RegionPolicy.OnlyBottomUp = RegionPolicy.OnlyTopDown = false;
    }
};

// A comparison stays before the branch on it, so that the processor takes them as one.
bool is_comparison_and_branch(const llvm::TargetInstrInfo&, const llvm::TargetSubtargetInfo&,
                              const llvm::MachineInstr* first, const llvm::MachineInstr& second) {
    return second.isConditionalBranch() && (first == nullptr || first->isCompare());
}

bool has_long_block(const llvm::MachineFunction& function) {
    return std::ranges::any_of(function, [](const auto& block) { return block.size() >= long_block_min; });
}

}  // namespace

unsigned cycles_in_order(llvm::ArrayRef<BlockStep> steps, LookAhead look_ahead) {
    std::vector<unsigned> begun(steps.size()), complete(steps.size());
    for (unsigned i = 0; i < steps.size(); ++i) {
        begun[i] = i / look_ahead.per_cycle;
        if (i >= look_ahead.steps)
            begun[i] = std::max(begun[i], complete[i - look_ahead.steps]);
        for (const BlockStep::Input& input : steps[i].inputs)
            begun[i] = std::max(begun[i], begun[input.step] + input.latency);
        complete[i] = std::max(begun[i] + steps[i].latency, i == 0 ? 0 : complete[i - 1]);
    }
    return complete.empty() ? 0 : complete.back();
}

unsigned longest_chain(llvm::ArrayRef<BlockStep> steps) {
    const auto count = static_cast<unsigned>(steps.size());
    return cycles_in_order(steps, {.steps = count + 1, .per_cycle = count + 1});
}

llvm::ScheduleDAGInstrs* schedule_long_blocks(llvm::MachineSchedContext* context) {
    if (!has_long_block(*context->MF)) {
        llvm::ScheduleDAGInstrs* const of_target = context->TM->createMachineScheduler(context);
        return of_target != nullptr ? of_target : llvm::createSchedLive(context);
    }
    llvm::ScheduleDAGMILive* const scheduler = llvm::createSchedLive<LongBlockScheduler>(context);
    scheduler->addMutation(llvm::createMacroFusionDAGMutation({is_comparison_and_branch}, /*BranchOnly=*/true));
    return scheduler;
}

}  // namespace polder::compiler
