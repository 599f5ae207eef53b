// Weights of the instructions on explicit vectors, from the IR of the kernel before its work-items become lanes: what they save, and which size is most frequent.
#include "explicit_vectors.h"

#include "lane_cost.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_types.h"
#include "targets/host/workgroup/vectorizer/analysis/shuffled_elements.h"
#include "window_loops.h"

#include <algorithm>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/bit.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Support/MathExtras.h>
#include <map>

namespace polder::compiler::workgroup {

namespace {

// Vectors of at least this size stay whole: split, each element would be a gather.
constexpr unsigned wide_vector_elements_min = 8;

// The vector type that an instruction operates on; null when there is none.
const llvm::FixedVectorType* vector_type_of(const llvm::Instruction& instruction) {
    const llvm::Type* type = llvm::isa<llvm::StoreInst>(instruction) || llvm::isa<llvm::CmpInst>(instruction)
                                 ? instruction.getOperand(0)->getType()
                                 : instruction.getType();
    return llvm::dyn_cast<llvm::FixedVectorType>(type);
}

// The lowest element of a register can be used as a scalar without an instruction.
bool is_first_element(const llvm::Value* index) {
    const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(index);
    return constant != nullptr && constant->isZero();
}

}  // namespace

bool only_moves_elements(const llvm::Instruction& instruction) {
    if (const auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction))
        return !is_first_element(extract->getIndexOperand());
    if (const auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(&instruction))
        return !is_first_element(insert->getOperand(2)) || !llvm::isa<llvm::UndefValue>(insert->getOperand(0));
    // Adding or dropping a fourth element is free: a vector of three elements is kept as one of four.
    const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction);
    return shuffle != nullptr && !shuffle->isIdentity() && !shuffle->isIdentityWithExtract() &&
           !shuffle->isIdentityWithPadding();
}

double moves_in_lanes(const llvm::Instruction& instruction, unsigned lanes, Permutes permutes) {
    if (const auto instructions = instructions_of_shuffle(instruction, lanes, permutes))
        return *instructions;
    if (const auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&instruction);
        extract && !llvm::isa<llvm::ConstantInt>(extract->getIndexOperand()))
        return 2.0 * elements_of_lane(*extract->getVectorOperandType());
    if (llvm::isa<llvm::InsertElementInst>(instruction))
        return llvm::isa<llvm::UndefValue>(instruction.getOperand(0)) ? 0 : 2;
    const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&instruction);
    return shuffle && (shuffle->isIdentity() || shuffle->isIdentityWithExtract() || shuffle->isIdentityWithPadding())
               ? 0
               : 1;
}

namespace {

// Which elements of the vectors of a function have an effect. An image with one channel is read as (x, 0, 0, 1), and often only x is used: such a
// vector is a number.
class NeededElements {
public:
    explicit NeededElements(const llvm::Function& function) {
        for (const llvm::Instruction& instruction : llvm::instructions(function))
            if (instruction.isTerminator() || instruction.mayHaveSideEffects())
                need(instruction, all);
        while (!changed_.empty()) {
            const llvm::Instruction& user = *changed_.pop_back_val();
            need_operands(user, needed_.lookup(&user));
        }
    }

    [[nodiscard]] unsigned of(const llvm::Instruction& instruction) const {
        return static_cast<unsigned>(llvm::popcount(needed_.lookup(&instruction)));
    }

private:
    using Elements = uint64_t;  // one bit each; a number has one element
    static constexpr Elements all = ~Elements{0};

    void need(const llvm::Value& value, Elements elements) {
        const auto* instruction = llvm::dyn_cast<llvm::Instruction>(&value);
        if (instruction == nullptr)
            return;
        const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value.getType());
        const unsigned count = vector ? vector->getNumElements() : 1;
        if (count < 64)
            elements = vector ? elements & ((Elements{1} << count) - 1) : Elements{elements != 0};
        Elements& known = needed_[instruction];
        if ((elements & ~known) == 0)
            return;
        known |= elements;
        changed_.push_back(instruction);
    }

    void need_operands(const llvm::Instruction& user, Elements elements) {
        if (const auto* extract = llvm::dyn_cast<llvm::ExtractElementInst>(&user)) {
            const auto* place = llvm::dyn_cast<llvm::ConstantInt>(extract->getIndexOperand());
            need(*extract->getIndexOperand(), all);
            return need(*extract->getVectorOperand(), place ? bit(place->getZExtValue()) : all);
        }
        if (const auto* insert = llvm::dyn_cast<llvm::InsertElementInst>(&user)) {
            const auto* place = llvm::dyn_cast<llvm::ConstantInt>(insert->getOperand(2));
            const Elements inserted = place ? bit(place->getZExtValue()) : 0;
            need(*insert->getOperand(0), elements & ~inserted);
            if (!place || (elements & inserted) != 0)
                need(*insert->getOperand(1), all);
            return need(*insert->getOperand(2), all);
        }
        if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&user))
            return need_shuffled(*shuffle, elements);
        const bool is_by_element = is_for_each_element(user);
        for (const llvm::Use& operand : user.operands())
            need(*operand, is_by_element && operand->getType()->isVectorTy() ? elements : all);
    }

    void need_shuffled(const llvm::ShuffleVectorInst& shuffle, Elements elements) {
        const auto count = llvm::cast<llvm::FixedVectorType>(shuffle.getOperand(0)->getType())->getNumElements();
        Elements first = 0, second = 0;
        for (const auto& [element, place] : llvm::enumerate(shuffle.getShuffleMask()))
            if (place >= 0 && (elements & bit(element)) != 0)
                (static_cast<unsigned>(place) < count ? first : second) |= bit(static_cast<unsigned>(place) % count);
        need(*shuffle.getOperand(0), first);
        need(*shuffle.getOperand(1), second);
    }

    // Vectors of more than 64 elements share their bits.
    static Elements bit(uint64_t element) { return Elements{1} << (element % 64); }

    static bool is_for_each_element(const llvm::Instruction& user) {
        if (const auto* cast = llvm::dyn_cast<llvm::CastInst>(&user))
            return !llvm::isa<llvm::BitCastInst>(cast);
        if (const auto* call = llvm::dyn_cast<llvm::CallInst>(&user))
            return llvm::isTriviallyVectorizable(call->getIntrinsicID());
        return llvm::isa<llvm::PHINode, llvm::BinaryOperator, llvm::UnaryOperator, llvm::CmpInst, llvm::SelectInst,
                         llvm::FreezeInst>(user);
    }

    llvm::DenseMap<const llvm::Instruction*, Elements> needed_;
    llvm::SmallVector<const llvm::Instruction*> changed_;
};

double saved_by(const llvm::Instruction& instruction, const LaneTarget& target) {
    if (const auto saved = saved_by_whole_shuffle(instruction, target.permutes))
        return *saved;
    if (only_moves_elements(instruction))
        return -1;
    if (llvm::isa<llvm::ExtractElementInst>(instruction) || llvm::isa<llvm::InsertElementInst>(instruction) ||
        llvm::isa<llvm::ShuffleVectorInst>(instruction))
        return 0;
    const llvm::FixedVectorType* type = vector_type_of(instruction);
    if (type == nullptr || llvm::isa<llvm::PHINode>(instruction))
        return 0;
    const unsigned elements = type->getNumElements();
    const auto registers = llvm::divideCeil(elements * std::max(type->getScalarSizeInBits(), 8U) / 8,
                                            target.register_words * sizeof(uint32_t));
    return elements - static_cast<double>(std::max<uint64_t>(registers, 1));
}

}  // namespace

namespace {

// The instructions of a loop over work-items that differ between them, by what they are computed from.
llvm::DenseSet<const llvm::Instruction*> of_each_item(const llvm::Loop& loop) {
    llvm::DenseSet<const llvm::Instruction*> all;
    llvm::SmallVector<const llvm::Instruction*> ahead;
    const auto add = [&](const llvm::Instruction& instruction) {
        if (loop.contains(&instruction) && all.insert(&instruction).second)
            ahead.push_back(&instruction);
    };
    for (const llvm::PHINode& counter : loop.getHeader()->phis())
        add(counter);
    while (!ahead.empty())
        for (const llvm::User* user : ahead.pop_back_val()->users())
            add(*llvm::cast<llvm::Instruction>(user));
    return all;
}

// Private variables, and constants: the tables of built-in functions.
bool is_of_function(const llvm::Value& object) {
    const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(&object);
    return llvm::isa<llvm::AllocaInst>(object) || (variable && variable->isConstant());
}

}  // namespace

bool use_wide_vectors(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops) {
    double own = 0, others = 0;
    for (const llvm::Loop* loop : work_item_loops)
        for (const llvm::BasicBlock* block : loop->blocks())
            for (const llvm::Instruction& instruction : *block) {
                const llvm::Value* address = llvm::getLoadStorePointerOperand(&instruction);
                if (address == nullptr || is_of_function(*llvm::getUnderlyingObject(address)))
                    continue;
                const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(llvm::getLoadStoreType(&instruction));
                const bool is_wide = type != nullptr && type->getNumElements() >= wide_vector_elements_min;
                (is_wide ? own : others) += weight_of_block(loops.getLoopDepth(block) - 1);
            }
    return own > others;
}

unsigned lanes_of_whole_vectors(const llvm::Loop& work_item_loop, const llvm::LoopInfo& loops,
                                unsigned register_words) {
    constexpr unsigned word = 32;
    std::map<unsigned, double> weights;  // by size in bits
    for (const llvm::BasicBlock* block : work_item_loop.blocks())
        for (const llvm::Instruction& instruction : *block)
            if (const auto* type = vector_type_of(instruction); type && !moves_elements(instruction))
                weights[elements_of_lane(*type) * type->getScalarSizeInBits()] +=
                    weight_of_block(loops.getLoopDepth(block) - work_item_loop.getLoopDepth());
    const auto frequent = std::max_element(
        weights.begin(), weights.end(), [](const auto& one, const auto& other) { return one.second < other.second; });
    return frequent == weights.end() ? 0 : std::max(llvm::bit_floor(register_words * word / frequent->first), 1U);
}

SavedByVectors saved_by_vectors(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops,
                                const LaneTarget& target) {
    SavedByVectors saved;
    const NeededElements needed(*work_item_loops.front()->getHeader()->getParent());
    for (const llvm::Loop* loop : work_item_loops) {
        const double rounds = weight_of_block(kernel_loops_around(*loop));
        const auto own = of_each_item(*loop);
        const auto is_uniform = [&](const llvm::Instruction& value) { return !own.contains(&value); };
        for (const llvm::BasicBlock* block : loop->blocks()) {
            const double weight = rounds * weight_of_block(loops.getLoopDepth(block) - loop->getLoopDepth());
            double of_block = 0;
            for (const llvm::Instruction& instruction : *block)
                if (!instruction.getType()->isVectorTy() || needed.of(instruction) > 1)
                    of_block += weight * saved_by(instruction, target);
            saved.anywhere += of_block;
            saved.in_windows += of_block * part_of_windows(*block, loops, *loop, is_uniform);
        }
    }
    return {std::max(saved.anywhere, 0.0), std::max(saved.in_windows, 0.0)};
}

double added_by_plain_casts(llvm::ArrayRef<llvm::Loop*> work_item_loops, const llvm::LoopInfo& loops) {
    constexpr unsigned for_element = 4;  // it is taken, extended, shifted and added
    double added = 0;
    for (const llvm::Loop* loop : work_item_loops) {
        const double rounds = weight_of_block(kernel_loops_around(*loop));
        for (const llvm::BasicBlock* block : loop->blocks())
            for (const llvm::Instruction& instruction : *block) {
                const auto* const cast = llvm::dyn_cast<llvm::BitCastInst>(&instruction);
                const auto* const vector = cast ? llvm::dyn_cast<llvm::FixedVectorType>(cast->getSrcTy()) : nullptr;
                if (vector && !cast->getDestTy()->isVectorTy() && !is_cast_lane_by_lane(*cast))
                    added += rounds * weight_of_block(loops.getLoopDepth(block) - loop->getLoopDepth()) *
                             (for_element * vector->getNumElements() - 1);
            }
    }
    return added;
}

}  // namespace polder::compiler::workgroup
