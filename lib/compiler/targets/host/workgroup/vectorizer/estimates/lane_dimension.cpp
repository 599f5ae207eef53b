// For each dimension, class Steps computes how each value changes from one work-item to the next, as lane_shape does after the
// choice but more simply, since a wrong result only costs time. The dimension with the lowest estimated cost is chosen.
#include "lane_dimension.h"

#include "lane_cost.h"
#include "targets/host/workgroup/frame/abi.h"
#include "targets/host/workgroup/frame/accumulators.h"
#include "targets/host/workgroup/vectorizer/analysis/block_accesses.h"
#include "targets/host/workgroup/work_items/work_item_functions.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/ADT/Sequence.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

namespace polder::compiler::workgroup {

namespace {

// How a value changes from one work-item to the next: by a constant, or in another way. `scaled`: by this constant times a number that all
// work-items have in common, such as the reciprocal of an image's width.
struct Step {
    enum class Kind : uint8_t { unknown, constant, scaled, other } kind = Kind::unknown;
    int64_t size = 0;

    friend bool operator==(const Step&, const Step&) = default;
};

constexpr Step no_step{Step::Kind::constant, 0};
constexpr Step other_step{Step::Kind::other, 0};

// The steps of all values of a function along one dimension. Assumes that clamps and rounding change nothing and that nothing overflows. Each element
// of a vector, such as one of two coordinates, has a step of its own.
class Steps {
public:
    Steps(llvm::ArrayRef<llvm::BasicBlock*> blocks, unsigned dimension) : dimension_(dimension) {
        for (bool changed = true; changed;) {
            changed = false;
            for (llvm::BasicBlock* block : blocks)
                for (llvm::Instruction& instruction : *block)
                    for (element_ = 0; element_ < elements_of(instruction); ++element_)
                        changed |= update(instruction);
        }
        element_ = 0;
    }

    // Of a vector, that of the element which is computed now.
    [[nodiscard]] Step of(const llvm::Value* value) const { return of(value, element_); }

private:
    static unsigned elements_of(const llvm::Value& value) {
        const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value.getType());
        return vector ? vector->getNumElements() : 1;
    }

    [[nodiscard]] Step of(const llvm::Value* value, unsigned element) const {
        return llvm::isa<llvm::Instruction>(value) ? steps_.lookup({value, std::min(element, elements_of(*value) - 1)})
                                                   : no_step;
    }

    // Whether all elements of a value are the same for all work-items.
    [[nodiscard]] bool is_same(const llvm::Value* value) const {
        return llvm::all_of(llvm::seq(elements_of(*value)),
                            [&](unsigned element) { return of(value, element) == no_step; });
    }

    bool update(llvm::Instruction& instruction) {
        const Step now = of(&instruction);
        const Step next = compute(instruction);
        if (next == now || next.kind == Step::Kind::unknown || now.kind == Step::Kind::other)
            return false;
        steps_[{&instruction, element_}] = now.kind == Step::Kind::unknown ? next : other_step;
        return true;
    }

    Step compute(llvm::Instruction& instruction) const {
        if (const auto dimension = local_id_dimension(instruction))
            return *dimension == dimension_ ? Step{Step::Kind::constant, 1} : no_step;
        if (const auto* phi = llvm::dyn_cast<llvm::PHINode>(&instruction))
            return common(phi->incoming_values());
        if (llvm::isa<llvm::AllocaInst>(instruction))
            return no_step;
        if (llvm::isa<llvm::InsertElementInst, llvm::ExtractElementInst, llvm::ShuffleVectorInst>(instruction))
            return moved(instruction);
        for (const llvm::Use& operand : instruction.operands())
            if (of(operand.get()).kind == Step::Kind::unknown)
                return {};
        switch (instruction.getOpcode()) {
        case llvm::Instruction::Add:
        case llvm::Instruction::FAdd:
        case llvm::Instruction::Or: return sum(of(instruction.getOperand(0)), of(instruction.getOperand(1)), 1);
        case llvm::Instruction::Sub:
        case llvm::Instruction::FSub: return sum(of(instruction.getOperand(0)), of(instruction.getOperand(1)), -1);
        case llvm::Instruction::FMul: return product(*instruction.getOperand(0), *instruction.getOperand(1));
        case llvm::Instruction::FDiv: return product_with(of(instruction.getOperand(0)), *instruction.getOperand(1));
        case llvm::Instruction::Mul:
        case llvm::Instruction::Shl: return scaled(instruction);
        case llvm::Instruction::AShr:
        case llvm::Instruction::LShr: return shifted_back(instruction);
        case llvm::Instruction::UDiv:
        case llvm::Instruction::SDiv: return divided(instruction, no_step);
        case llvm::Instruction::URem:
        case llvm::Instruction::SRem: return divided(instruction, of(instruction.getOperand(0)));
        case llvm::Instruction::SExt:
        case llvm::Instruction::ZExt:
        case llvm::Instruction::Trunc:
        case llvm::Instruction::SIToFP:
        case llvm::Instruction::UIToFP:
        case llvm::Instruction::Freeze: return of(instruction.getOperand(0));
        case llvm::Instruction::FPToSI:
        case llvm::Instruction::FPToUI: return rounded(of(instruction.getOperand(0)), other_step);
        case llvm::Instruction::GetElementPtr: return address(llvm::cast<llvm::GetElementPtrInst>(instruction));
        default: break;
        }
        if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(&instruction))
            return clamped(*select->getTrueValue(), *select->getFalseValue());
        if (const auto* minimum = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&instruction))
            return clamped(*minimum->getLHS(), *minimum->getRHS());
        if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
            if (const auto step = of_coordinate(*call))
                return *step;
        return masked(instruction);
    }

    // Of an instruction that moves elements.
    Step moved(const llvm::Instruction& move) const {
        if (const auto* shuffle = llvm::dyn_cast<llvm::ShuffleVectorInst>(&move)) {
            const int place = shuffle->getMaskValue(element_);
            const auto count = static_cast<int>(elements_of(*shuffle->getOperand(0)));
            if (place < 0)
                return no_step;
            return of(shuffle->getOperand(place < count ? 0 : 1), static_cast<unsigned>(place % count));
        }
        const bool inserts = llvm::isa<llvm::InsertElementInst>(move);
        const auto* place = llvm::dyn_cast<llvm::ConstantInt>(move.getOperand(inserts ? 2 : 1));
        if (!place)
            return other_step;
        const auto element = static_cast<unsigned>(place->getZExtValue());
        if (!inserts)
            return of(move.getOperand(0), element);
        return element == element_ ? of(move.getOperand(1)) : of(move.getOperand(0));
    }

    // Of the functions with which image coordinates are computed.
    std::optional<Step> of_coordinate(const llvm::IntrinsicInst& call) const {
        switch (call.getIntrinsicID()) {
        case llvm::Intrinsic::fabs: return of(call.getArgOperand(0));
        case llvm::Intrinsic::floor:
        case llvm::Intrinsic::ceil:
        case llvm::Intrinsic::trunc:
        case llvm::Intrinsic::rint: return rounded(of(call.getArgOperand(0)), no_step);
        case llvm::Intrinsic::minnum:
        case llvm::Intrinsic::maxnum:
        case llvm::Intrinsic::minimumnum:
        case llvm::Intrinsic::maximumnum: return clamped(*call.getArgOperand(0), *call.getArgOperand(1));
        case llvm::Intrinsic::fma:
        case llvm::Intrinsic::fmuladd:
            return sum(product(*call.getArgOperand(0), *call.getArgOperand(1)), of(call.getArgOperand(2)), 1);
        default: return std::nullopt;
        }
    }

    // `scaled`: the step of a scaled number when it is rounded. In the copy of a repeated image that the coordinates are in it is 0.
    static Step rounded(const Step& step, const Step& scaled) {
        return step.kind == Step::Kind::scaled ? scaled : step;
    }

    Step product(const llvm::Value& left, const llvm::Value& right) const {
        return of(&right) == no_step ? product_with(of(&left), right) : product_with(of(&right), left);
    }

    // A product with the factor, or a quotient by it. The next one with a factor that is no constant undoes it: x / width * width.
    Step product_with(const Step& step, const llvm::Value& factor) const {
        if (of(&factor) != no_step || step.kind == Step::Kind::other)
            return other_step;
        if (step == no_step)
            return no_step;
        const bool is_undone = step.kind == Step::Kind::scaled && !llvm::isa<llvm::Constant>(factor);
        return {is_undone ? Step::Kind::constant : Step::Kind::scaled, step.size};
    }

    template <class Values>
    Step common(const Values& values) const {
        Step result;
        for (const llvm::Value* value : values) {
            const Step step = of(value);
            if (step.kind == Step::Kind::unknown)
                continue;
            if (result.kind != Step::Kind::unknown && step != result)
                return other_step;
            result = step;
        }
        return result;
    }

    static Step sum(const Step& left, const Step& right, int sign) {
        if (left.kind == Step::Kind::scaled && right == no_step)
            return left;
        if (right.kind == Step::Kind::scaled && left == no_step)
            return {Step::Kind::scaled, sign * right.size};
        if (left.kind != Step::Kind::constant || right.kind != Step::Kind::constant)
            return other_step;
        return {Step::Kind::constant, left.size + sign * right.size};
    }

    Step scaled(const llvm::Instruction& op) const {
        const llvm::Value *value = op.getOperand(0), *factor = op.getOperand(1);
        if (llvm::isa<llvm::ConstantInt>(value))
            std::swap(value, factor);
        const Step step = of(value);
        if (step == no_step && of(factor) == no_step)
            return no_step;
        const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(factor);
        if (step.kind != Step::Kind::constant || !constant || constant->getValue().getSignificantBits() > 32)
            return other_step;
        const bool is_shift = op.getOpcode() == llvm::Instruction::Shl;
        if (is_shift && constant->getZExtValue() > 32)
            return other_step;
        const int64_t times = is_shift ? int64_t{1} << constant->getZExtValue() : constant->getSExtValue();
        return {Step::Kind::constant, step.size * times};
    }

    // (x << 32) >> n: x truncated, extended again and scaled.
    Step shifted_back(const llvm::Instruction& op) const {
        const Step step = of(op.getOperand(0));
        if (step == no_step && of(op.getOperand(1)) == no_step)
            return no_step;
        const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(op.getOperand(1));
        if (step.kind != Step::Kind::constant || !constant || constant->getValue().ugt(32))
            return other_step;
        const int64_t times = int64_t{1} << constant->getZExtValue();
        if (step.size % times == 0)
            return Step{Step::Kind::constant, step.size / times};
        return is_within(step, times) ? no_step : other_step;
    }

    // Whether the lanes of a vector most often lie between two neighbouring multiples of `period`, such as the ends of a row.
    static bool is_within(const Step& step, int64_t period) {
        constexpr int64_t lanes = 16;
        return step.kind == Step::Kind::constant && std::abs(step.size) <= period / lanes;
    }

    // A quotient or remainder. `within`: its step where no lane passes a multiple of the divisor. One that is no constant, such as the
    // width of an image, is assumed to be large.
    Step divided(const llvm::Instruction& division, const Step& within) const {
        const llvm::Value& divisor = *division.getOperand(1);
        const Step step = of(division.getOperand(0));
        if (of(&divisor) != no_step || step.kind != Step::Kind::constant)
            return other_step;
        const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(&divisor);
        if (step == no_step || !constant)
            return within;
        return constant->getValue().getActiveBits() <= 32 && is_within(step, constant->getSExtValue()) ? within
                                                                                                       : other_step;
    }

    Step address(llvm::GetElementPtrInst& gep) const {
        const llvm::DataLayout& layout = gep.getModule()->getDataLayout();
        Step result = of(gep.getPointerOperand());
        for (auto at = llvm::gep_type_begin(gep); at != llvm::gep_type_end(gep); ++at) {
            const Step index = of(at.getOperand());
            if (index.kind == Step::Kind::other || result.kind == Step::Kind::other)
                return other_step;
            if (index.size != 0)
                result.size += index.size * static_cast<int64_t>(at.getSequentialElementStride(layout).getFixedValue());
        }
        return result;
    }

    Step clamped(const llvm::Value& left, const llvm::Value& right) const {
        if (of(&left) == of(&right))
            return of(&left);
        return of(&left) == no_step ? of(&right) : of(&right) == no_step ? of(&left) : other_step;
    }

    // An `and` that keeps 31 or more low bits is a conversion to int and back, and keeps the step. So does one that keeps fewer if the lanes of a
    // vector differ in these: a remainder. One that clears them gives a multiple, which is the same for all lanes. Any other instruction has the step 0 if all its operands have.
    Step masked(const llvm::Instruction& instruction) const {
        const auto is_operand_same = [this](const llvm::Use& operand) { return is_same(operand.get()); };
        if (llvm::all_of(instruction.operands(), is_operand_same) && !instruction.isAtomic())
            return no_step;
        const auto* mask = instruction.getOpcode() == llvm::Instruction::And
                               ? llvm::dyn_cast<llvm::ConstantInt>(instruction.getOperand(1))
                               : nullptr;
        if (!mask || mask->getValue().getActiveBits() > 64)
            return other_step;
        const Step step = of(instruction.getOperand(0));
        const unsigned kept = mask->getValue().countr_one(), cleared = mask->getValue().countr_zero();
        if (kept >= 31 || is_within(step, int64_t{1} << kept))
            return step;
        return is_within(step, int64_t{1} << std::min(cleared, 62U)) ? no_step : other_step;
    }

    const unsigned dimension_;
    unsigned element_ = 0;
    llvm::DenseMap<std::pair<const llvm::Value*, unsigned>, Step> steps_;
};

LanePlaces places_of(const llvm::Instruction& access, const Steps& steps) {
    const Step step = steps.of(llvm::getLoadStorePointerOperand(&access));
    if (step == no_step)
        return LanePlaces::same;
    const auto size = static_cast<int64_t>(
        access.getModule()->getDataLayout().getTypeStoreSize(llvm::getLoadStoreType(&access)).getFixedValue());
    return step == Step{Step::Kind::constant, size} ? LanePlaces::consecutive : LanePlaces::apart;
}

// The factor for accesses to a buffer whose lanes are apart. Each lane then uses a cache line of its own. Work-items next to them in the other
// dimension use the same lines, but later, after a whole column. When rows are a power of two bytes apart, few of these lines are in the cache
// together. A convolution of columns with its tile in local memory took 2.8 times as long with lanes along the columns (decision 148).
constexpr double far = 4;

// Whether no two lanes share a cache line. Structures in a row, such as an image's elements of several channels, do share them.
bool are_far(const llvm::Instruction& access, const Steps& steps) {
    constexpr int64_t cache_line = 64;
    const Step step = steps.of(llvm::getLoadStorePointerOperand(&access));
    return is_in_buffer(access) && (step.kind != Step::Kind::constant || std::abs(step.size) >= cache_line);
}

// The cost of a load or store of all lanes.
double cost_of_access(llvm::Instruction& access, const Steps& steps, const BlockAccesses& block, unsigned lanes) {
    const LanePlaces places = places_of(access, steps);
    if (places != LanePlaces::apart)
        return cost_of_access(places, lanes);
    const double distance = are_far(access, steps) ? far : 1;
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&access))
        if (const size_t elements = block.structure_of(*load).size();
            is_loaded_at_once(*load->getType(), elements, lanes))
            return distance * cost_of_structure_element(*load->getType(), elements, lanes);
    return distance * cost_of_access(places, lanes);
}

// The cost of one work-item when `lanes` (two or more) neighbours in the dimension of `steps` run together.
double cost_of(llvm::ArrayRef<llvm::BasicBlock*> blocks, const llvm::LoopInfo& loops, const Steps& steps,
               unsigned lanes) {
    double cost = 0;
    for (llvm::BasicBlock* block : blocks) {
        if (block->isEntryBlock() || is_in_fallback_loop(loops, block))
            continue;  // runs once for the group, or rarely
        const double weight = weight_of_block(loops.getLoopDepth(block));
        const BlockAccesses accesses(*block);
        for (llvm::Instruction& instruction : *block) {
            if (local_id_dimension(instruction))
                continue;
            if (llvm::getLoadStorePointerOperand(&instruction))
                cost += weight / lanes * cost_of_access(instruction, steps, accesses, lanes);
            else
                cost += weight / (is_vector_instruction(instruction) ? lanes : 1);
        }
    }
    return cost;
}

bool uses_id(llvm::Function& function, unsigned dimension) {
    return llvm::any_of(llvm::instructions(function), [&](const llvm::Instruction& instruction) {
        return local_id_dimension(instruction) == dimension;
    });
}

// Work-groups of unknown size are more often wide in x than in y or z. So y or z must be cheaper by this factor to become lanes.
constexpr double doubt = 2;

}  // namespace

LoopOrder choose_loop_order(llvm::Function& function, const Extent& local_size, unsigned lanes_max) {
    llvm::DominatorTree dominators(function);
    const llvm::LoopInfo loops(dominators);
    const llvm::ReversePostOrderTraversal<llvm::Function*> order(&function);
    const llvm::SmallVector<llvm::BasicBlock*> blocks(order.begin(), order.end());
    unsigned best = 0, with_known_size = 0;
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double least = infinity, least_with_known_size = infinity;
    for (unsigned d = 0; d < 3; ++d) {
        const auto* size = llvm::dyn_cast<llvm::ConstantInt>(local_size[d]);
        const uint64_t items = size ? size->getZExtValue() : uses_id(function, d) ? lanes_max : 1;
        const auto lanes = static_cast<unsigned>(std::min<uint64_t>(lanes_max, std::bit_floor(items)));
        if (lanes < 2)
            continue;
        const Steps steps(blocks, d);
        const double cost = cost_of(blocks, loops, steps, lanes) * (size || d == 0 ? 1 : doubt);
        if (cost < least) {
            least = cost;
            best = d;
        }
        if (size || d == 0 || lanes < rows_for_lanes)
            continue;
        if (const double known = cost_of(blocks, loops, steps, rows_for_lanes); known < least_with_known_size) {
            least_with_known_size = known;
            with_known_size = d;
        }
    }
    if (best == 0)
        return {{0, 1, 2}, least_with_known_size < least ? with_known_size : 0};
    return {best == 1 ? std::array{1U, 0U, 2U} : std::array{2U, 0U, 1U}};
}

}  // namespace polder::compiler::workgroup
