// A structure's length is found in the term of its place that is a product of a number that follows the work-item and one that all work-items share: the
// length. Which copies there are is a guess: each is right for its numbers.
#include "structure_lengths.h"

#include "asked_divisors.h"
#include "clipped_loops.h"
#include "element_strides.h"
#include "length_copies.h"
#include "prepared_loop.h"
#include "targets/host/workgroup/vectorizer/analysis/access_places.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_access.h"
#include "targets/host/workgroup/vectorizer/analysis/marks.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace polder::compiler::workgroup {

namespace {

constexpr size_t copied_instructions_max = 1500;
constexpr size_t copied_twice_max = 500;  // long loops take long to compile: they have one copy

// How many of the elements are side by side, at most.
int64_t longest_run(const PlacedAccesses& structure) {
    llvm::SmallVector<int64_t, 8> offsets(structure.offsets);
    llvm::sort(offsets);
    int64_t longest = 0, length = 0;
    for (const auto [number, offset] : llvm::enumerate(offsets)) {
        const int64_t distance = number == 0 ? -1 : offset - offsets[number - 1];
        if (distance != 0)
            length = distance == structure.element_bytes ? length + 1 : 1;
        longest = std::max(longest, length);
    }
    return longest;
}

// The term whose factor is the structure's length. Elements side by side in rows that a loop of the kernel walks, or in which a work-item has its own
// place, are no structure: the other terms are products or offsets that arguments decide.
const Term* product_in(const PlacedAccesses& structure, const AccessPlaces& places) {
    const Term* found = nullptr;
    for (const Term& term : structure.place.terms) {
        const bool is_product = places.factor_of(*term.value) != nullptr;
        if (is_product ? found != nullptr
                       : places.follows_work_item(*term.value) || !AccessPlaces::is_from_arguments(*term.value))
            return nullptr;
        if (is_product)
            found = &term;
    }
    return found != nullptr && found->bytes > 0 ? found : nullptr;
}

// The likely lengths of those structures that most accesses are to; none when there are no structures.
llvm::SmallVector<KnownNumbers, 2> lengths_of(llvm::ArrayRef<PlacedAccesses> accesses, const AccessPlaces& places) {
    struct Candidate {
        llvm::Value* root = nullptr;
        int64_t elements = 0;
        int64_t units = 0;  // of the length for each element
        size_t accesses = 0;
    };
    llvm::SmallVector<Candidate, 2> candidates;
    for (const PlacedAccesses& structure : accesses) {
        const int64_t elements = longest_run(structure);
        const Term* const product =
            elements >= 2 && elements <= lane_step_max ? product_in(structure, places) : nullptr;
        if (product == nullptr || structure.element_bytes % product->bytes != 0)
            continue;
        llvm::Value* const root = root_of(places.factor_of(*product->value));
        auto* known = llvm::find_if(candidates, [&](const Candidate& one) { return one.root == root; });
        if (known == candidates.end())
            known = &candidates.emplace_back(Candidate{.root = root});
        known->accesses += structure.offsets.size();
        if (elements > known->elements) {
            known->elements = elements;
            known->units = structure.element_bytes / product->bytes;
        }
    }
    if (candidates.empty())
        return {};
    const Candidate& most = *llvm::max_element(
        candidates, [](const Candidate& one, const Candidate& other) { return one.accesses < other.accesses; });
    llvm::SmallVector<KnownNumbers, 2> result;
    if (most.elements == 3)
        result.push_back({{.root = most.root, .value = 4 * most.units}});
    result.push_back({{.root = most.root, .value = most.elements * most.units}});
    return result;
}

// The numbers of each copy of the loop; nothing when it accesses no such structures and elements, or is too long to be copied.
llvm::SmallVector<KnownNumbers, 2> copies_for(const llvm::Loop& loop) {
    const AccessPlaces places(loop);
    size_t size = 0;
    bool has_product = false;
    for (const llvm::BasicBlock* block : loop.blocks()) {
        size += block->size();
        has_product |=
            llvm::any_of(*block, [&](const llvm::Instruction& one) { return places.factor_of(one) != nullptr; });
    }
    if (!has_product || size > copied_instructions_max)
        return {};
    const auto accesses = places.find();
    auto copies = lengths_of(accesses, places);
    if (copies.empty())
        if (KnownNumbers strides = element_strides(accesses, places); !strides.empty())
            copies.push_back(std::move(strides));
    if (copies.empty())
        if (KnownNumbers strides = clipped_strides(loop, places); !strides.empty())
            copies.push_back(std::move(strides));
    if (copies.empty())
        if (KnownNumbers divisors = asked_divisors(loop); !divisors.empty())
            copies.push_back(std::move(divisors));
    if (size > copied_twice_max && copies.size() > 1)
        copies.resize(1);
    return copies;
}

llvm::SmallVector<llvm::Loop*> loops_over_work_items(const llvm::LoopInfo& loops) {
    llvm::SmallVector<llvm::Loop*> found;
    llvm::copy_if(loops.getLoopsInPreorder(), std::back_inserter(found), [](const llvm::Loop* loop) {
        return llvm::findOptionMDForLoop(loop, work_item_loop_tag) != nullptr;
    });
    return found;
}

// Removes what the lengths exclude, as `if (channels > 3)`.
void fold_branches(llvm::Function& function) {
    for (llvm::BasicBlock& block : function)
        if (!block.getTerminator()->hasMetadata(llvm::LLVMContext::MD_loop))
            llvm::ConstantFoldTerminator(&block, /*DeleteDeadConditions=*/true);
    llvm::removeUnreachableBlocks(function);
}

}  // namespace

void separate_structure_lengths(llvm::Function& function, llvm::FunctionAnalysisManager& analyses) {
    {
        const llvm::DominatorTree dominators(function);
        const llvm::LoopInfo loops(dominators);
        if (llvm::none_of(loops_over_work_items(loops),
                          [](const llvm::Loop* loop) { return !copies_for(*loop).empty(); }))
            return;
    }
    llvm::FunctionPassManager before;
    before.addPass(llvm::LoopSimplifyPass());
    before.addPass(llvm::LCSSAPass());
    before.run(function, analyses);
    bool is_changed = false;
    {
        llvm::DominatorTree dominators(function);
        llvm::LoopInfo loops(dominators);
        for (llvm::Loop* loop : loops_over_work_items(loops)) {
            const auto copies = copies_for(*loop);
            if (copies.empty())
                continue;
            prepare_loop(*loop);
            is_changed |= copy_for_numbers(*loop, copies, loops, dominators);
        }
    }
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
    if (!is_changed)
        return;
    llvm::FunctionPassManager after;
    after.addPass(llvm::InstCombinePass());
    after.run(function, analyses);
    fold_branches(function);
    analyses.invalidate(function, llvm::PreservedAnalyses::none());
}

}  // namespace polder::compiler::workgroup
