// Sums, differences, shifts and extensions of indices are taken apart into terms; what is computed outside of the loop is one term.
#include "access_places.h"

#include "block_accesses.h"
#include "targets/host/workgroup/frame/abi.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Operator.h>

namespace polder::compiler::workgroup {

namespace {

constexpr size_t operands_max = 32;  // of a walk over operands

using Visited = llvm::SmallPtrSet<const llvm::Value*, 16>;

bool follows(const llvm::Loop& loop, const llvm::Value& value, Visited& visited) {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || !loop.contains(instruction) || visited.size() == operands_max ||
        !visited.insert(instruction).second)
        return false;
    if (llvm::isa<llvm::PHINode>(instruction) && instruction->getParent() == loop.getHeader())
        return true;
    if (instruction->mayReadOrWriteMemory() ||
        (llvm::isa<llvm::CallBase>(instruction) && !llvm::isa<llvm::MinMaxIntrinsic>(instruction)))
        return false;
    return llvm::any_of(instruction->operands(),
                        [&](const llvm::Use& use) { return follows(loop, *use.get(), visited); });
}

bool is_of_arguments(const llvm::Value& value, unsigned& steps) {
    const auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    if (instruction == nullptr || steps == 0)
        return instruction == nullptr;
    --steps;
    const auto is_argument = [&](const llvm::Use& use) { return is_of_arguments(*use.get(), steps); };
    switch (instruction->getOpcode()) {
    case llvm::Instruction::Load: return AccessPlaces::is_argument(*instruction);
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

}  // namespace

llvm::Value* root_of(llvm::Value* value) {
    while (llvm::isa<llvm::SExtInst, llvm::ZExtInst, llvm::TruncInst>(value))
        value = llvm::cast<llvm::CastInst>(value)->getOperand(0);
    return value;
}

bool AccessPlaces::follows_work_item(const llvm::Value& value) const {
    Visited visited;
    return follows(loop_, value, visited);
}

bool AccessPlaces::is_argument(const llvm::Value& value) {
    const auto* const load = llvm::dyn_cast<llvm::LoadInst>(&value);
    return load != nullptr && load->isSimple() &&
           llvm::getUnderlyingObject(load->getPointerOperand()) == load->getFunction()->getArg(abi::args);
}

bool AccessPlaces::is_from_arguments(const llvm::Value& value) {
    unsigned steps = operands_max;
    return is_of_arguments(value, steps);
}

llvm::Value* AccessPlaces::factor_of(const llvm::Value& value) const {
    const auto* const product = llvm::dyn_cast<llvm::BinaryOperator>(&value);
    if (product == nullptr || product->getOpcode() != llvm::Instruction::Mul || !product->getType()->isIntegerTy())
        return nullptr;
    llvm::Value *one = product->getOperand(0), *other = product->getOperand(1);
    const auto is_common = [&](llvm::Value* operand) {
        return loop_.isLoopInvariant(operand) || is_argument(*root_of(operand));
    };
    if (is_common(one))
        std::swap(one, other);
    return is_common(other) && !llvm::isa<llvm::Constant>(other) && follows_work_item(*one) ? other : nullptr;
}

// Adds `value` times `bytes`.
void AccessPlaces::add(llvm::Value& value, int64_t bytes, AddressSum& place) const {
    constexpr size_t terms_max = 8;
    constexpr unsigned index_bits = 31, shift_max = 32;
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(&value); constant && constant->getBitWidth() <= 64) {
        place.offset += constant->getSExtValue() * bytes;
        return;
    }
    auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value);
    const bool is_in_loop = instruction != nullptr && loop_.contains(instruction) && place.terms.size() < terms_max;
    const auto operand = [&](unsigned number) -> llvm::Value& { return *instruction->getOperand(number); };
    const auto* const constant =
        is_in_loop && instruction->getNumOperands() == 2 ? llvm::dyn_cast<llvm::ConstantInt>(&operand(1)) : nullptr;
    switch (is_in_loop ? instruction->getOpcode() : 0U) {
    case llvm::Instruction::SExt:
    case llvm::Instruction::ZExt:
    case llvm::Instruction::Trunc: return add(operand(0), bytes, place);
    case llvm::Instruction::Add: add(operand(0), bytes, place); return add(operand(1), bytes, place);
    case llvm::Instruction::Sub: add(operand(0), bytes, place); return add(operand(1), -bytes, place);
    case llvm::Instruction::Or:
        if (!llvm::cast<llvm::PossiblyDisjointInst>(instruction)->isDisjoint())
            break;
        add(operand(0), bytes, place);
        return add(operand(1), bytes, place);
    case llvm::Instruction::And:
        if (constant == nullptr || constant->getValue().countr_one() < index_bits)
            break;
        return add(operand(0), bytes, place);
    case llvm::Instruction::Shl:
        if (constant == nullptr || constant->getValue().ugt(shift_max) || std::abs(bytes) >> index_bits != 0)
            break;
        return add(operand(0), bytes * (int64_t{1} << constant->getZExtValue()), place);
    case llvm::Instruction::AShr:
        if (constant != nullptr && add_shifted(operand(0), constant->getZExtValue(), bytes, place))
            return;
        break;
    default: break;
    }
    add_term(value, bytes, place);
}

// Adds the value shifted down by `bits`, times `bytes`: LLVM extends the lower half of a sum, and scales it, by shifts up and down. False when the sum is
// not such a half.
bool AccessPlaces::add_shifted(llvm::Value& value, uint64_t bits, int64_t bytes, AddressSum& place) const {
    constexpr uint64_t half_bits = 32;
    if (bits > half_bits)
        return false;
    AddressSum half;
    add(value, 1, half);
    const int64_t unit = int64_t{1} << bits;
    const auto is_whole = [&](const Term& term) { return term.bytes % unit == 0; };
    if (half.offset % unit != 0 || !llvm::all_of(half.terms, is_whole))
        return false;
    place.offset += half.offset / unit * bytes;
    for (const Term& term : half.terms)
        add_term(*term.value, term.bytes / unit * bytes, place);
    return true;
}

void AccessPlaces::add_term(llvm::Value& value, int64_t bytes, AddressSum& place) {
    auto* const same = llvm::find_if(place.terms, [&](const Term& term) { return term.value == &value; });
    if (same != place.terms.end())
        same->bytes += bytes;
    else
        place.terms.push_back({&value, bytes});
}

void AccessPlaces::add_access(llvm::Instruction& access, llvm::SmallVectorImpl<PlacedAccesses>& found) const {
    const llvm::DataLayout& layout = access.getDataLayout();
    llvm::Type* const type = llvm::getLoadStoreType(&access);
    AddressSum place;
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
    auto* same = llvm::find_if(found, [&](const PlacedAccesses& known) {
        return known.element_bytes == bytes && known.place.base == place.base && known.place.terms == place.terms;
    });
    if (same == found.end())
        same = &found.emplace_back(PlacedAccesses{.place = place, .element_bytes = bytes, .offsets = {}});
    for (int64_t element = 0; element < elements; ++element)
        same->offsets.push_back(place.offset + element * bytes);
}

llvm::SmallVector<PlacedAccesses> AccessPlaces::find() const {
    llvm::SmallVector<PlacedAccesses> found;
    for (llvm::BasicBlock* block : loop_.blocks())
        for (llvm::Instruction& instruction : *block)
            if (is_simple_access(instruction))
                add_access(instruction, found);
    return found;
}

}  // namespace polder::compiler::workgroup
