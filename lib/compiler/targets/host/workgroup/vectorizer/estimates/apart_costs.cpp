// See apart_costs.h. Whether an address is linear in the lane's number follows from its operands, and from lane_shape where that has found
// a constant stride. The other properties are read from the loops around the access.
#include "apart_costs.h"

#include "lane_cost.h"
#include "registers_alive.h"
#include "skipped_code.h"
#include "targets/host/workgroup/frame/abi.h"

#include <algorithm>
#include <cstdlib>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/GetElementPtrTypeIterator.h>
#include <llvm/IR/IntrinsicInst.h>

namespace polder::compiler::workgroup {

namespace {

llvm::SmallVector<const llvm::Value*> objects_of(const llvm::Instruction& access) {
    llvm::SmallVector<const llvm::Value*> objects;
    llvm::getUnderlyingObjects(llvm::getLoadStorePointerOperand(&access), objects, nullptr, 0);
    return objects;
}

// Whether the block both loads from this address and stores to it.
bool is_changed_in_place(const llvm::Instruction& access) {
    const llvm::Value* const place = llvm::getLoadStorePointerOperand(&access);
    return llvm::any_of(*access.getParent(), [&](const llvm::Instruction& other) {
        return llvm::getLoadStorePointerOperand(&other) == place &&
               llvm::isa<llvm::StoreInst>(other) != llvm::isa<llvm::StoreInst>(access);
    });
}

}  // namespace

bool is_in_buffer(const llvm::Instruction& access) {
    const llvm::Argument* const local_memory = access.getFunction()->getArg(abi::local_memory);
    return llvm::any_of(objects_of(access), [&](const llvm::Value* object) {
        return object != local_memory && !llvm::isa<llvm::AllocaInst>(object);
    });
}

double cost_of_access_apart(unsigned lanes, bool is_masked) {
    constexpr double gather_per_lane = 6, access_per_lane = 3;
    return lanes * (!is_masked && lanes <= accessed_one_by_one_max ? access_per_lane : gather_per_lane);
}

double ApartCosts::of(const llvm::Instruction& access, unsigned lanes) {
    // Where lanes leave a loop at different times, most lanes of a gather may be inactive. Examples are the product with a sparse matrix by rows
    // and a breadth-first search.
    constexpr double quick_per_lane = 2, masked_per_lane = 3, left_per_lane = 4, crowded_per_lane = 6;
    const bool is_masked = plan_.masked.contains(const_cast<llvm::BasicBlock*>(access.getParent()));
    constexpr double read_once_per_lane = 14;
    if (is_row_read_once(access))
        return lanes * read_once_per_lane;
    constexpr double in_turns_under_mask_per_lane = 10;
    if (is_masked && is_changed_in_place(access) && is_read_and_written_in_turns(access))
        return lanes * in_turns_under_mask_per_lane;
    // A load with its insertion takes the time of a load of one work-item.
    constexpr double loaded_per_lane = 1.1, question = 4;
    if (is_quicker_one_by_one(access, lanes))
        return lanes * loaded_per_lane + (is_masked ? question : 0);
    // Bytes and shorts are gathered as the 32-bit words around them (masked_memory.h). They cannot be scattered so.
    constexpr unsigned least_bits = 32;
    constexpr double part_of_word_per_lane = 1;
    const bool is_part_of_word =
        access.getDataLayout().getTypeSizeInBits(llvm::getLoadStoreType(&access)).getFixedValue() < least_bits;
    const bool has_instruction = !is_part_of_word || llvm::isa<llvm::LoadInst>(access);
    const bool is_quick = gathers_ == Gathers::quick ||
                          (gathers_ == Gathers::quick_for_all && !is_masked && llvm::isa<llvm::LoadInst>(access));
    if (!is_quick || !has_instruction || (!is_masked && lanes <= accessed_one_by_one_max) ||
        is_row_of_its_own(access) || is_read_and_written_in_turns(access))
        return cost_of_access_apart(lanes, is_masked);
    const double unmasked_per_lane = gathers_ == Gathers::quick_for_all && is_crowded(*access.getParent(), lanes)
                                         ? crowded_per_lane
                                         : quick_per_lane;
    const double all_per_lane = is_masked ? masked_per_lane : unmasked_per_lane;
    return lanes * ((is_left_one_by_one(access) ? left_per_lane : all_per_lane) +
                    (is_part_of_word ? part_of_word_per_lane : 0));
}

// Whether all lanes load their elements one by one, at known distances from each other (are_quicker_one_by_one), and find them in the cache. Stores are
// left out: lanes that only move elements would pay.
bool ApartCosts::is_quicker_one_by_one(const llvm::Instruction& access, unsigned lanes) {
    const llvm::BasicBlock& block = *access.getParent();
    const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&access);
    return load && lanes > accessed_one_by_one_max &&
           are_quicker_one_by_one(gathers_, *load->getType(), shapes_.of(load->getPointerOperand())) &&
           !is_left_one_by_one(access) && !is_row_of_its_own(access) && !is_read_and_written_in_turns(access) &&
           !is_crowded(block, lanes) && !has_partial_mask(block, plan_, shapes_);
}

// Whether most of the block's values have no register, so that loads and stores of them wait for the gathers, which are loads, too.
bool ApartCosts::is_crowded(const llvm::BasicBlock& block, unsigned lanes) {
    constexpr size_t register_bits = 512, registers = 32;
    if (const auto known = crowded_.find(&block); known != crowded_.end())
        return known->second;
    const auto filled = [&](const llvm::Value& value) -> size_t {
        if (!llvm::isa<llvm::Instruction>(value) || shapes_.of(&value).is_strided())
            return 0;
        return llvm::divideCeil(lanes * value.getType()->getPrimitiveSizeInBits().getFixedValue(), register_bits);
    };
    return crowded_[&block] = registers_alive(block, filled) > 2 * registers;
}

// Whether lane i accesses row i or n * i of a buffer, and the distance of the rows is larger than a cache line, or known only at the launch.
bool ApartCosts::is_row_of_its_own(const llvm::Instruction& access) {
    constexpr int64_t line_bytes = 64;
    const llvm::Value* const address = llvm::getLoadStorePointerOperand(&access);
    if (const auto distance = distance_of(*address); distance && *distance <= line_bytes)
        return false;
    const llvm::Argument* const scratch = access.getFunction()->getArg(abi::scratch);  // private variables
    return is_in_buffer(access) && !llvm::is_contained(objects_of(access), scratch) && is_linear(address);
}

// How far the values of neighbouring lanes are apart at most, in bytes for pointers; nothing where that is not known. A clamped or reflected index moves
// by what its operands move.
std::optional<int64_t> ApartCosts::distance_of(const llvm::Value& value, unsigned depth) const {
    constexpr unsigned depth_max = 8;
    constexpr int64_t distance_max = 4096;  // no overflow
    if (const LaneShape shape = shapes_.of(&value); shape.is_strided())
        return std::abs(shape.stride) <= distance_max ? std::optional(std::abs(shape.stride)) : std::nullopt;
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || depth > depth_max)
        return std::nullopt;
    const auto of = [&](unsigned operand) { return distance_of(*instruction->getOperand(operand), depth + 1); };
    const auto both = [&](auto combine) {
        const auto left = of(0), right = of(1);
        return left && right ? std::optional<int64_t>(combine(*left, *right)) : std::nullopt;
    };
    if (llvm::isa<llvm::MinMaxIntrinsic>(instruction))
        return both([](int64_t left, int64_t right) { return std::max(left, right); });
    if (const auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(instruction)) {
        auto distance = of(0);
        for (auto part = llvm::gep_type_begin(address); distance && part != llvm::gep_type_end(address); ++part) {
            if (part.isStruct())
                continue;
            const auto index = distance_of(*part.getOperand(), depth + 1);
            const auto bytes = static_cast<int64_t>(part.getSequentialElementStride(address->getDataLayout()));
            distance = index && bytes <= distance_max ? std::optional(*distance + *index * bytes) : std::nullopt;
        }
        return distance;
    }
    switch (instruction->getOpcode()) {
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub: return both([](int64_t left, int64_t right) { return left + right; });
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::Freeze: return of(0);
    default: return std::nullopt;
    }
}

// Whether each lane reads one element of its row. In loops along the rows a cache line serves several iterations.
bool ApartCosts::is_row_read_once(const llvm::Instruction& access) {
    return llvm::isa<llvm::LoadInst>(access) && plan_.loops->getLoopFor(access.getParent()) == plan_.loop &&
           kernel_loops_around(*plan_.loop) == 0 && is_row_of_its_own(access);
}

// Whether the values of neighbouring lanes differ by one number, the same for all lanes. The number may be unknown. Wrap-around is ignored,
// because the result only decides about costs.
bool ApartCosts::is_linear(const llvm::Value* value) {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(value);
    if (instruction == nullptr || shapes_.of(value).is_strided())
        return true;
    if (const auto known = linear_.find(value); known != linear_.end())
        return known->second;
    linear_[value] = true;  // in a cycle of phis the other operands decide
    return linear_[value] = has_linear_operands(*instruction);
}

bool ApartCosts::has_linear_operands(const llvm::Instruction& instruction) {
    const auto are_linear = [&] {
        return llvm::all_of(instruction.operands(), [&](const llvm::Use& operand) { return is_linear(operand.get()); });
    };
    switch (instruction.getOpcode()) {
    case llvm::Instruction::Mul:
    case llvm::Instruction::Shl:
        return are_linear() && (shapes_.of(instruction.getOperand(0)).is_uniform() ||
                                shapes_.of(instruction.getOperand(1)).is_uniform());
    case llvm::Instruction::Add:
    case llvm::Instruction::Sub:
    case llvm::Instruction::Or:
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::Trunc:
    case llvm::Instruction::Freeze:
    case llvm::Instruction::AddrSpaceCast:
    case llvm::Instruction::GetElementPtr: return are_linear();
    case llvm::Instruction::PHI:
        return llvm::all_of(llvm::cast<llvm::PHINode>(instruction).incoming_values(),
                            [&](const llvm::Use& incoming) { return is_linear(incoming.get()); });
    default: break;
    }
    const auto* const clamp = llvm::dyn_cast<llvm::MinMaxIntrinsic>(&instruction);
    return clamp != nullptr && is_linear(clamp->getLHS()) && is_linear(clamp->getRHS());
}

// Whether a loop of the kernel both gathers from and scatters to one buffer, at other addresses in each iteration, as a histogram does. Each
// gather waits for all scatters before it. A single work-item's load waits only for a store to the same address.
bool ApartCosts::is_read_and_written_in_turns(const llvm::Instruction& access) const {
    const llvm::Loop* around = plan_.loops->getLoopFor(access.getParent());
    if (around == plan_.loop)
        return false;
    while (around->getParentLoop() != plan_.loop)
        around = around->getParentLoop();
    const auto objects = objects_of(access);
    const bool is_store = llvm::isa<llvm::StoreInst>(access);
    const auto is_moving = [&](const llvm::Instruction& one) {
        const llvm::Value* const place = llvm::getLoadStorePointerOperand(&one);
        return place != nullptr && !shapes_.of(place).is_strided() && !around->isLoopInvariant(place);
    };
    if (!is_moving(access))
        return false;
    for (const llvm::BasicBlock* block : around->blocks())
        for (const llvm::Instruction& other : *block) {
            if (!is_moving(other) || llvm::isa<llvm::StoreInst>(other) == is_store)
                continue;
            if (llvm::any_of(objects_of(other),
                             [&](const auto* object) { return llvm::is_contained(objects, object); }))
                return true;
        }
    return false;
}

bool ApartCosts::is_left_one_by_one(const llvm::Instruction& access) const {
    const llvm::Loop* around = plan_.loops->getLoopFor(access.getParent());
    for (; around != plan_.loop; around = around->getParentLoop()) {
        llvm::SmallVector<llvm::BasicBlock*> exiting;
        around->getExitingBlocks(exiting);
        if (llvm::any_of(exiting, [&](const llvm::BasicBlock* block) { return plan_.divergent.contains(block); }))
            return true;
    }
    return false;
}

}  // namespace polder::compiler::workgroup
