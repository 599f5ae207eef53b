// The regions of a kernel: the code between cuts.
//
// A region is all code that is reachable from one entry (the kernel's, or a successor of a cut) without passing a cut. A
// block may be in several regions. The blocks are not copied here: they belong to the kernel.
#pragma once

#include "cuts.h"

#include <vector>

namespace polder::compiler::workgroup {

// All that is reachable from `entry` up to the next cuts.
struct Region {
    llvm::BasicBlock* entry = nullptr;
    llvm::SmallSetVector<llvm::BasicBlock*, 16> blocks;
    llvm::SmallSetVector<llvm::BasicBlock*, 4> exits;  // cuts
    bool returns = false;
    llvm::BasicBlock* preheader = nullptr;  // of the work-item loops; where control enters the region

    // Some work-items may return while others continue to a cut.
    [[nodiscard]] bool is_mixed() const { return returns && !exits.empty(); }
};

class Regions {
public:
    // The regions of a kernel whose first block is `entry`, after `place_cuts`.
    Regions(llvm::BasicBlock& entry, const Cuts& cuts);

    [[nodiscard]] std::vector<Region>& all() { return all_; }
    [[nodiscard]] const std::vector<Region>& all() const { return all_; }
    [[nodiscard]] Region& entered_at(const llvm::BasicBlock* entry) { return all_[region_of_.lookup(entry)]; }
    [[nodiscard]] bool has_early_return() const { return has_early_return_; }
    // Whether work-items may enter `from` again after leaving it.
    [[nodiscard]] bool reaches_itself(const Region& from) const;

private:
    void add_region(llvm::BasicBlock* entry);

    const Cuts& cuts_;
    std::vector<Region> all_;  // the kernel's entry first
    llvm::DenseMap<const llvm::BasicBlock*, size_t> region_of_;  // by entry
    bool has_early_return_ = false;
};

}  // namespace polder::compiler::workgroup
