// Values that live across a cut, and where they are kept. A uniform value is in a register (with sub-groups: in a variable that the lanes
// share). Private variables and varying values are in arrays over the work-items in `scratch`. A cheap value is computed again.
#pragma once

#include "liveness.h"
#include "region.h"
#include "targets/host/workgroup/frame/lowering.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/ValueMapper.h>

namespace polder::compiler::workgroup {

// Memory that the loops over work-items need.
struct RegionStatistics {
    uint64_t scratch_bytes_per_work_item = 0;
    uint64_t private_bytes_per_work_item = 0;
};

class CarriedValues {
public:
    // Assigns a place to each value; the addresses are computed in the prologue.
    CarriedValues(const LoweredKernel& kernel, const Uniformity& uniformity, const Cuts& cuts, const Regions& regions);

    [[nodiscard]] const RegionStatistics& statistics() const { return statistics_; }
    [[nodiscard]] llvm::SmallVector<llvm::Instruction*> live_in(const llvm::BasicBlock& block) const {
        return liveness_.live_in(block);
    }
    // The private variables whose contents live across a cut. `stays`: whether `variable` is one whose contents do not.
    [[nodiscard]] llvm::ArrayRef<llvm::AllocaInst*> crossing() const { return crossing_.getArrayRef(); }
    [[nodiscard]] bool stays(const llvm::AllocaInst* variable) const { return stays_.contains(variable); }
    [[nodiscard]] bool has_staying() const { return !stays_.empty(); }
    // One byte per work-item: 1 until the work-item returns. Null when none can return early.
    [[nodiscard]] llvm::Value* alive() const { return alive_; }

    // The register of a uniform value that lives across a cut, or null.
    [[nodiscard]] llvm::AllocaInst* uniform_slot(const llvm::Value* value) const {
        return uniform_slots_.lookup(value);
    }
    // Makes a variable of the function. The caller promotes all `registers` to SSA values at the end.
    llvm::AllocaInst* make_register(llvm::Type* type, const llvm::Twine& name);
    // The same in memory, for loops whose lanes share it.
    llvm::AllocaInst& make_shared(llvm::Type* type, const llvm::Twine& name);
    [[nodiscard]] llvm::ArrayRef<llvm::AllocaInst*> registers() const { return registers_; }

    // Whether `value` can be computed again in any region, in a few cheap instructions.
    bool is_recomputable(const llvm::Value* value);
    // Values recomputed at a region's entry are kept apart from `map`: the region may define them again.
    llvm::Value* recompute(llvm::IRBuilder<>& at, llvm::Instruction& value, const llvm::ValueToValueMapTy& map);

    // The address, a load and a store of `value` for the work-item `index`.
    llvm::Value* item_address(llvm::IRBuilder<>& at, const llvm::Value* value, llvm::Value* index);
    llvm::Value* load_item(llvm::IRBuilder<>& at, const llvm::Value* value, llvm::Value* index);
    void store_item(llvm::IRBuilder<>& at, const llvm::Value* value, llvm::Value* here, llvm::Value* index);

private:
    struct Array {
        uint64_t item_bytes = 0;
        llvm::Align alignment;
        llvm::Value* base = nullptr;
    };

    void place();
    void place_arrays(llvm::SmallVector<llvm::Instruction*, 16> values);
    void answer_scratch_bytes(llvm::IRBuilder<>& at);
    // Whether the contents of `variable` may live across a cut: it is used in two regions, in one that may
    // be entered again, or its address escapes.
    bool crosses_cut(const llvm::AllocaInst& variable) const;
    // The number of instructions, or -1.
    int recompute_cost(const llvm::Value* value);

    const LoweredKernel& kernel_;
    llvm::Function& function_;
    const Uniformity& uniformity_;
    const Cuts& cuts_;
    const Regions& regions_;
    Liveness liveness_;
    const llvm::DataLayout& layout_;

    llvm::DenseMap<const llvm::Value*, llvm::AllocaInst*> uniform_slots_;
    llvm::DenseMap<const llvm::Value*, Array> arrays_;
    llvm::SmallSetVector<llvm::AllocaInst*, 8> crossing_;
    llvm::SmallPtrSet<const llvm::AllocaInst*, 8> stays_;
    llvm::SmallPtrSet<const llvm::AllocaInst*, 16> made_here_;
    llvm::SmallVector<llvm::AllocaInst*> registers_;
    llvm::DenseMap<const llvm::Value*, int> recomputable_;  // cost, or -1
    llvm::Value* alive_ = nullptr;
    RegionStatistics statistics_;
};

}  // namespace polder::compiler::workgroup
