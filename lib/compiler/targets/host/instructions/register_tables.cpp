// Each gather is examined alone. The bytes beside a table may belong to others, which may write them meanwhile: they are read, but no lane's
// index selects them.
#include "register_tables.h"

#include "targets/host/workgroup/vectorizer/analysis/permutations.h"

#include <algorithm>
#include <llvm/Analysis/Loads.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/KnownBits.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

namespace polder::compiler {
namespace {

constexpr unsigned byte_bits = 8, wide_bits = 512, narrow_bits = 128, registers_max = 4;
// Fewer lanes are loaded one by one as quickly; from one register of bytes, half as many.
constexpr unsigned lanes_min = 8, lanes_of_bytes_min = 4;
constexpr uint64_t page_bytes = 4096;

// A gather whose lanes have one base.
struct TableGather {
    llvm::IntrinsicInst* call = nullptr;
    llvm::Value* base = nullptr;
    int64_t offset = 0;  // in bytes, from the base to the table
    llvm::Value* index = nullptr;  // a vector, in elements
    unsigned registers = 0, register_bits = 0;

    llvm::FixedVectorType& type() const { return *llvm::cast<llvm::FixedVectorType>(call->getType()); }
    unsigned element_bits() const { return type().getScalarSizeInBits(); }
    uint64_t register_bytes() const { return register_bits / byte_bits; }
    uint64_t bytes() const { return registers * register_bytes(); }
};

bool permutes_narrow_bytes(const llvm::TargetMachine& machine) {
    return machine.getTargetTriple().isX86() && machine.getMCSubtargetInfo()->checkFeatures("+ssse3");
}

// The bytes of 16 lanes from registers of 16 bytes, with SSSE3. The instruction's result is 0 where the highest bit of a byte's index is set, and its lowest four bits
// choose otherwise. The sum of 0x70 and an index that is counted from the register's first byte has this bit unless the byte is in the register, if sums do not wrap around.
llvm::Value* chosen_bytes(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> registers, llvm::Value* indices) {
    constexpr unsigned bytes = narrow_bits / byte_bits;
    llvm::Type* const type = indices->getType();
    const auto permuted = [&](llvm::Value* table, llvm::Value* places) {
        return builder.CreateIntrinsic(type, llvm::Intrinsic::x86_ssse3_pshuf_b_128, {table, places});
    };
    if (registers.size() == 1)
        return permuted(registers[0], indices);
    llvm::Value* result = nullptr;
    for (size_t number = 0; number < registers.size(); ++number) {
        llvm::Value* const from_first = builder.CreateSub(indices, llvm::ConstantInt::get(type, number * bytes));
        llvm::Value* const places =
            builder.CreateBinaryIntrinsic(llvm::Intrinsic::uadd_sat, from_first, llvm::ConstantInt::get(type, 0x70));
        llvm::Value* const chosen = permuted(registers[number], places);
        result = result ? builder.CreateOr(result, chosen) : chosen;
    }
    return result;
}

// Those of any number of lanes.
llvm::Value* chosen_bytes_of_lanes(llvm::IRBuilder<>& builder, llvm::ArrayRef<llvm::Value*> registers,
                                   llvm::Value& indices) {
    constexpr unsigned part = narrow_bits / byte_bits;
    const unsigned lanes = llvm::cast<llvm::FixedVectorType>(indices.getType())->getNumElements();
    llvm::SmallVector<llvm::Value*, 4> parts;
    for (unsigned first = 0; first < lanes; first += part) {
        const unsigned count = std::min(lanes - first, part);
        llvm::Value* const some =
            builder.CreateShuffleVector(&indices, llvm::createSequentialMask(first, count, part - count));
        parts.push_back(builder.CreateShuffleVector(chosen_bytes(builder, registers, some),
                                                    llvm::createSequentialMask(0, count, 0)));
    }
    return llvm::concatenateVectors(builder, parts);
}

// How many registers a table has whose largest index is `last`: 1, 2 or 4, or 0 when it does not fit.
unsigned registers_for(const llvm::APInt& last, unsigned register_bits, unsigned element_bits) {
    for (unsigned registers = 1; registers <= registers_max; registers *= 2)
        if (last.ult(registers * register_bits / element_bits))
            return registers;
    return 0;
}

// The size of the registers in which elements of so many bits are permuted; 0: in none.
unsigned register_bits_for(const llvm::TargetMachine& machine, unsigned element_bits) {
    if (permutes_wide_registers(permutes_of(&machine), element_bits))
        return wide_bits;
    return element_bits == byte_bits && permutes_narrow_bytes(machine) ? narrow_bits : 0;
}

std::optional<TableGather> table_gather(llvm::Instruction& instruction, const llvm::TargetMachine& machine) {
    auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call == nullptr || call->getIntrinsicID() != llvm::Intrinsic::masked_gather)
        return std::nullopt;
    const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(call->getType());
    if (type == nullptr || type->getNumElements() < lanes_of_bytes_min || type->getElementType()->isPointerTy())
        return std::nullopt;
    const llvm::DataLayout& layout = call->getDataLayout();
    TableGather gather{.call = call, .register_bits = register_bits_for(machine, type->getScalarSizeInBits())};
    if (gather.register_bits == 0)
        return std::nullopt;
    const auto* address = llvm::dyn_cast<llvm::GEPOperator>(call->getArgOperand(0));
    llvm::APInt offset(layout.getIndexTypeSizeInBits(call->getArgOperand(0)->getType()->getScalarType()), 0);
    while (address != nullptr && address->getPointerOperandType()->isVectorTy() &&
           address->accumulateConstantOffset(layout, offset))
        address = llvm::dyn_cast<llvm::GEPOperator>(address->getPointerOperand());
    if (address == nullptr || address->getNumIndices() != 1 ||
        layout.getTypeAllocSizeInBits(address->getSourceElementType()) != type->getScalarSizeInBits())
        return std::nullopt;
    gather.offset = offset.getSExtValue();
    gather.base = const_cast<llvm::Value*>(address->getPointerOperand());
    if (gather.base->getType()->isVectorTy())
        gather.base = llvm::getSplatValue(gather.base);
    gather.index = *address->idx_begin();
    if (gather.base == nullptr || !gather.index->getType()->isVectorTy())
        return std::nullopt;
    gather.registers = registers_for(llvm::computeKnownBits(gather.index, layout).getMaxValue(), gather.register_bits,
                                     gather.element_bits());
    const bool is_one_of_bytes = gather.registers == 1 && gather.register_bits == narrow_bits;
    if (gather.registers == 0 || type->getNumElements() < (is_one_of_bytes ? lanes_of_bytes_min : lanes_min))
        return std::nullopt;
    return gather;
}

// A table that the same block writes to is not permuted: a load of 64 bytes waits until earlier stores of parts of them are in the cache.
bool is_written_beside(const TableGather& gather) {
    const llvm::Value* const table = llvm::getUnderlyingObject(gather.base);
    return llvm::any_of(*gather.call->getParent(), [&](const llvm::Instruction& instruction) {
        if (!instruction.mayWriteToMemory())
            return false;
        const llvm::Value* to = nullptr;
        if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
            to = store->getPointerOperand();
        else if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
                 call && (call->getIntrinsicID() == llvm::Intrinsic::masked_store ||
                          call->getIntrinsicID() == llvm::Intrinsic::masked_scatter))
            to = call->getArgOperand(1);
        if (to == nullptr)
            return false;
        if (const auto* address = llvm::dyn_cast<llvm::GEPOperator>(to); address && to->getType()->isVectorTy())
            to = address->getPointerOperand();
        return llvm::getUnderlyingObject(to) == table;
    });
}

class Permutations {
public:
    explicit Permutations(llvm::LLVMContext& context) : builder_(context) {}

    void replace(const TableGather& gather) {
        llvm::IntrinsicInst& call = *gather.call;
        builder_.SetInsertPoint(&call);
        llvm::Value* const table =
            builder_.CreatePtrAdd(gather.base, builder_.getInt64(static_cast<uint64_t>(gather.offset)));
        auto* const whole = llvm::ArrayType::get(builder_.getInt8Ty(), gather.bytes());
        if (llvm::isDereferenceablePointer(table, whole, call.getDataLayout())) {
            call.replaceAllUsesWith(chosen(gather, table));
            call.eraseFromParent();
            return;
        }
        llvm::Value* const place = builder_.CreatePtrToInt(table, builder_.getInt64Ty());
        llvm::Value* is_readable = builder_.CreateICmpULE(builder_.CreateAnd(place, page_bytes - 1),
                                                          builder_.getInt64(page_bytes - gather.bytes()));
        if (llvm::Value* const mask = call.getArgOperand(1);
            !llvm::PatternMatch::match(mask, llvm::PatternMatch::m_AllOnes()))
            is_readable = builder_.CreateAnd(is_readable, builder_.CreateOrReduce(mask));
        llvm::Instruction *permuting = nullptr, *gathering = nullptr;
        llvm::SplitBlockAndInsertIfThenElse(is_readable, &call, &permuting, &gathering,
                                            llvm::MDBuilder(call.getContext()).createLikelyBranchWeights());
        llvm::BasicBlock* const done = call.getParent();
        builder_.SetInsertPoint(permuting);
        llvm::Value* const permuted = chosen(gather, table);
        call.moveBefore(gathering->getIterator());
        builder_.SetInsertPoint(done, done->begin());
        llvm::PHINode* const result = builder_.CreatePHI(call.getType(), 2);
        call.replaceAllUsesWith(result);
        result->addIncoming(permuted, permuting->getParent());
        result->addIncoming(&call, gathering->getParent());
    }

private:
    // The elements of all lanes; of those that are masked off, what the gather has there.
    llvm::Value* chosen(const TableGather& gather, llvm::Value* table) {
        llvm::FixedVectorType& type = gather.type();
        llvm::Type* const element = builder_.getIntNTy(gather.element_bits());
        const unsigned lanes = type.getNumElements(), part = gather.register_bits / gather.element_bits();
        auto* const of_register = llvm::FixedVectorType::get(element, part);
        llvm::SmallVector<llvm::Value*, registers_max> parts;
        for (unsigned number = 0; number < gather.registers; ++number)
            parts.push_back(builder_.CreateAlignedLoad(
                of_register,
                builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), table, number * gather.register_bytes()),
                llvm::Align(1)));
        llvm::Value* const indices =
            builder_.CreateZExtOrTrunc(gather.index, llvm::FixedVectorType::get(element, lanes));
        llvm::Value* result = builder_.CreateBitCast(gather.register_bits == narrow_bits
                                                         ? chosen_bytes_of_lanes(builder_, parts, *indices)
                                                         : chosen_elements(builder_, parts, *indices),
                                                     &type);
        if (llvm::Value* const otherwise = gather.call->getArgOperand(2); !llvm::isa<llvm::UndefValue>(otherwise))
            result = builder_.CreateSelect(gather.call->getArgOperand(1), result, otherwise);
        return result;
    }

    llvm::IRBuilder<> builder_;
};

}  // namespace

void permute_small_tables(llvm::Function& function, const llvm::TargetMachine& machine) {
    llvm::SmallVector<llvm::Instruction*> gathers;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (const std::optional<TableGather> gather = table_gather(instruction, machine);
            gather && !is_written_beside(*gather))
            gathers.push_back(&instruction);
    Permutations permutations(function.getContext());
    for (llvm::Instruction* gather : gathers)
        if (const auto now = table_gather(*gather, machine))  // an index may be the result of one that was replaced
            permutations.replace(*now);
}

}  // namespace polder::compiler
