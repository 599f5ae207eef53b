#include "region.h"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Instructions.h>

namespace polder::compiler::workgroup {

Regions::Regions(llvm::BasicBlock& entry, const Cuts& cuts) : cuts_(cuts) {
    add_region(&entry);
    for (llvm::BasicBlock* cut : cuts_)
        for (llvm::BasicBlock* successor : llvm::successors(cut))
            if (!region_of_.contains(successor))
                add_region(successor);
    for (const Region& region : all_)
        has_early_return_ |= region.is_mixed();
}

void Regions::add_region(llvm::BasicBlock* entry) {
    Region region;
    region.entry = entry;
    region.blocks.insert(entry);
    for (size_t i = 0; i < region.blocks.size(); ++i) {
        llvm::BasicBlock* block = region.blocks[i];
        region.returns |= llvm::isa<llvm::ReturnInst>(block->getTerminator());
        for (llvm::BasicBlock* successor : llvm::successors(block))
            if (cuts_.contains(successor))
                region.exits.insert(successor);
            else
                region.blocks.insert(successor);
    }
    region_of_[entry] = all_.size();
    all_.push_back(std::move(region));
}

bool Regions::reaches_itself(const Region& from) const {
    llvm::SmallPtrSet<const Region*, 8> seen;
    llvm::SmallVector<const Region*> todo{&from};
    while (!todo.empty())
        for (llvm::BasicBlock* cut : todo.pop_back_val()->exits)
            for (llvm::BasicBlock* successor : llvm::successors(cut)) {
                const Region* next = &all_[region_of_.lookup(successor)];
                if (next == &from)
                    return true;
                if (seen.insert(next).second)
                    todo.push_back(next);
            }
    return false;
}

} // namespace polder::compiler::workgroup
