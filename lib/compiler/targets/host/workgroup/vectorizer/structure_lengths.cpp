// An address is written as a base plus terms, each a value times a number of bytes, plus a constant. Accesses whose bases and terms agree are those of
// one structure. Its length is found in the term that is a product of a number that follows the work-item and one that all work-items share: the
// length. Wrapping around is ignored, because this only decides which copies there are: each copy is right for its length.
#include "structure_lengths.h"

#include "lane_access.h"
#include "length_copies.h"
#include "prepared_loop.h"
#include "targets/host/workgroup/frame/abi.h"
#include "vectorizer.h"

#include <llvm/ADT/STLExtras.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <optional>

namespace polder::compiler::workgroup {

namespace {

constexpr size_t copied_instructions_max = 1500;
constexpr size_t copied_twice_max = 500;  // long loops take long to compile: they have one copy
constexpr unsigned steps_max = 32;  // of a walk over operands

struct Term {
    const llvm::Value* value = nullptr;
    int64_t bytes = 0;
    friend bool operator==(const Term&, const Term&) = default;
};

struct Sum {
    const llvm::Value* base = nullptr;
    llvm::SmallVector<Term, 4> terms;
    int64_t offset = 0;
};

// The elements of one structure that a work-item accesses.
struct Structure {
    Sum place;
    int64_t element_bytes = 0;
    llvm::SmallVector<int64_t, 8> offsets;
};

// The number that an integer outside of the loop extends or truncates.
llvm::Value* root_of(llvm::Value* value) {
    while (llvm::isa<llvm::SExtInst, llvm::ZExtInst, llvm::TruncInst>(value))
        value = llvm::cast<llvm::CastInst>(value)->getOperand(0);
    return value;
}

// How many of the elements are side by side, at most.
int64_t longest_run(const Structure& structure) {
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

class StructureLengths {
public:
    explicit StructureLengths(const llvm::Loop& loop) : loop_(loop) {}

    // Nothing when the loop accesses no such structures, or is too long to be copied.
    std::optional<Lengths> find() {
        size_t size = 0;
        bool has_product = false;
        for (const llvm::BasicBlock* block : loop_.blocks()) {
            size += block->size();
            has_product |=
                llvm::any_of(*block, [&](const llvm::Instruction& one) { return factor_of(one) != nullptr; });
        }
        if (!has_product || size > copied_instructions_max)
            return std::nullopt;
        for (llvm::BasicBlock* block : loop_.blocks())
            for (llvm::Instruction& instruction : *block)
                if (is_simple_access(instruction))
                    add_access(instruction);
        std::optional<Lengths> found = lengths();
        if (found && size > copied_twice_max)
            found->likely.resize(1);
        return found;
    }

private:
    // Of a product of a number that follows the work-item and one that does not change in the loop: the latter; else null.
    [[nodiscard]] llvm::Value* factor_of(const llvm::Value& value) const {
        const auto* const product = llvm::dyn_cast<llvm::BinaryOperator>(&value);
        if (product == nullptr || product->getOpcode() != llvm::Instruction::Mul || !product->getType()->isIntegerTy())
            return nullptr;
        llvm::Value *one = product->getOperand(0), *other = product->getOperand(1);
        if (loop_.isLoopInvariant(one))
            std::swap(one, other);
        unsigned steps = steps_max;
        const bool is_length = !llvm::isa<llvm::Constant>(other) && loop_.isLoopInvariant(other);
        return is_length && follows_work_item(*one, steps) ? other : nullptr;
    }

    // Whether the value is computed from the loop's counter, without what the work-item reads.
    [[nodiscard]] bool follows_work_item(const llvm::Value& value, unsigned& steps) const {
        const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (steps == 0 || instruction == nullptr || !loop_.contains(instruction))
            return false;
        --steps;
        if (llvm::isa<llvm::PHINode>(instruction))
            return instruction->getParent() == loop_.getHeader();
        if (instruction->mayReadOrWriteMemory() ||
            (llvm::isa<llvm::CallBase>(instruction) && !llvm::isa<llvm::MinMaxIntrinsic>(instruction)))
            return false;
        return llvm::any_of(instruction->operands(),
                            [&](const llvm::Use& use) { return follows_work_item(*use.get(), steps); });
    }

    // Adds `value` times `bytes` to the sum.
    void add(llvm::Value& value, int64_t bytes, Sum& sum) const {
        constexpr size_t terms_max = 8;
        constexpr unsigned index_bits = 31;
        if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(&value);
            constant && constant->getBitWidth() <= 64) {
            sum.offset += constant->getSExtValue() * bytes;
            return;
        }
        auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        const bool is_in_loop = instruction != nullptr && loop_.contains(instruction) && sum.terms.size() < terms_max;
        const auto operand = [&](unsigned number) -> llvm::Value& { return *instruction->getOperand(number); };
        const auto* const constant =
            is_in_loop && instruction->getNumOperands() == 2 ? llvm::dyn_cast<llvm::ConstantInt>(&operand(1)) : nullptr;
        switch (is_in_loop ? instruction->getOpcode() : 0U) {
        case llvm::Instruction::SExt:
        case llvm::Instruction::ZExt:
        case llvm::Instruction::Trunc: return add(operand(0), bytes, sum);
        case llvm::Instruction::Add: add(operand(0), bytes, sum); return add(operand(1), bytes, sum);
        case llvm::Instruction::Sub: add(operand(0), bytes, sum); return add(operand(1), -bytes, sum);
        case llvm::Instruction::Or:
            if (!llvm::cast<llvm::PossiblyDisjointInst>(instruction)->isDisjoint())
                break;
            add(operand(0), bytes, sum);
            return add(operand(1), bytes, sum);
        case llvm::Instruction::And:
            if (constant == nullptr || constant->getValue().countr_one() < index_bits)
                break;
            return add(operand(0), bytes, sum);
        case llvm::Instruction::Shl:
            if (constant == nullptr || constant->getValue().uge(index_bits))
                break;
            return add(operand(0), bytes << constant->getZExtValue(), sum);
        default: break;
        }
        auto* const same = llvm::find_if(sum.terms, [&](const Term& term) { return term.value == &value; });
        if (same != sum.terms.end())
            same->bytes += bytes;
        else
            sum.terms.push_back({&value, bytes});
    }

    void add_access(llvm::Instruction& access) {
        const llvm::DataLayout& layout = access.getDataLayout();
        llvm::Type* const type = llvm::getLoadStoreType(&access);
        Sum place;
        llvm::Value* address = llvm::getLoadStorePointerOperand(&access);
        while (const auto* part = llvm::dyn_cast<llvm::Instruction>(address)) {
            const auto* const step = llvm::dyn_cast<llvm::GetElementPtrInst>(part);
            if (!loop_.contains(part) || (step == nullptr && !llvm::isa<llvm::AddrSpaceCastInst>(part)))
                break;
            address = part->getOperand(0);
            if (step == nullptr)
                continue;
            constexpr unsigned address_bits = 64;
            llvm::SmallMapVector<llvm::Value*, llvm::APInt, 4> indices;
            llvm::APInt distance(address_bits, 0);
            if (!step->collectOffset(layout, address_bits, indices, distance))
                return;
            for (const auto& [index, bytes] : indices)
                add(*index, bytes.getSExtValue(), place);
            place.offset += distance.getSExtValue();
        }
        place.base = address;
        llvm::sort(place.terms, [](const Term& one, const Term& other) { return one.value < other.value; });
        const auto bytes = static_cast<int64_t>(layout.getTypeStoreSize(type->getScalarType()).getFixedValue());
        const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
        const int64_t elements = vector != nullptr ? vector->getNumElements() : 1;
        auto* same = llvm::find_if(structures_, [&](const Structure& structure) {
            return structure.element_bytes == bytes && structure.place.base == place.base &&
                   structure.place.terms == place.terms;
        });
        if (same == structures_.end())
            same = &structures_.emplace_back(Structure{.place = place, .element_bytes = bytes, .offsets = {}});
        for (int64_t element = 0; element < elements; ++element)
            same->offsets.push_back(place.offset + element * bytes);
    }

    // The term whose factor is the structure's length. Elements side by side in rows that a loop of the kernel walks, or in which a work-item has its own
    // place, are no structure: the other terms are products or offsets that arguments decide.
    [[nodiscard]] const Term* product_in(const Structure& structure) const {
        const Term* found = nullptr;
        for (const Term& term : structure.place.terms) {
            unsigned steps = steps_max, its_steps = steps_max;
            const bool is_product = factor_of(*term.value) != nullptr;
            if (is_product ? found != nullptr
                           : follows_work_item(*term.value, steps) || !is_from_arguments(*term.value, its_steps))
                return nullptr;
            if (is_product)
                found = &term;
        }
        return found != nullptr && found->bytes > 0 ? found : nullptr;
    }

    // Whether each summand of the value is an argument, or a product with one.
    [[nodiscard]] bool is_from_arguments(const llvm::Value& value, unsigned& steps) const {
        const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (instruction == nullptr || steps == 0)
            return instruction == nullptr;
        --steps;
        const auto is_argument = [&](const llvm::Use& use) { return is_from_arguments(*use.get(), steps); };
        switch (instruction->getOpcode()) {
        case llvm::Instruction::Load: {
            const llvm::Value* const place = llvm::getUnderlyingObject(instruction->getOperand(0));
            return place == instruction->getFunction()->getArg(abi::args);
        }
        case llvm::Instruction::Mul:
            return llvm::any_of(instruction->operands(), [&](const llvm::Use& use) {
                return !llvm::isa<llvm::Constant>(use.get()) && is_argument(use);
            });
        case llvm::Instruction::Add:
        case llvm::Instruction::Sub:
        case llvm::Instruction::Or:
        case llvm::Instruction::Shl:
        case llvm::Instruction::SExt:
        case llvm::Instruction::ZExt:
        case llvm::Instruction::Trunc:
        case llvm::Instruction::Freeze: return llvm::all_of(instruction->operands(), is_argument);
        default: return false;
        }
    }

    [[nodiscard]] std::optional<Lengths> lengths() const {
        struct Candidate {
            llvm::Value* root = nullptr;
            int64_t elements = 0;
            int64_t units = 0;  // of the length for each element
            size_t accesses = 0;
        };
        llvm::SmallVector<Candidate, 2> candidates;
        for (const Structure& structure : structures_) {
            const int64_t elements = longest_run(structure);
            const Term* const product = elements >= 2 && elements <= lane_step_max ? product_in(structure) : nullptr;
            if (product == nullptr || structure.element_bytes % product->bytes != 0)
                continue;
            llvm::Value* const root = root_of(factor_of(*product->value));
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
            return std::nullopt;
        const Candidate& most = *llvm::max_element(
            candidates, [](const Candidate& one, const Candidate& other) { return one.accesses < other.accesses; });
        Lengths result{.root = most.root, .likely = {}};
        if (most.elements == 3)
            result.likely.push_back(4 * most.units);
        result.likely.push_back(most.elements * most.units);
        return result;
    }

    const llvm::Loop& loop_;
    llvm::SmallVector<Structure> structures_;
};

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
                          [](const llvm::Loop* loop) { return StructureLengths(*loop).find().has_value(); }))
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
            const auto lengths = StructureLengths(*loop).find();
            if (!lengths)
                continue;
            prepare_loop(*loop);
            is_changed |= copy_for_lengths(*loop, *lengths, loops, dominators);
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
