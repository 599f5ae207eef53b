// Atomics and fences (SPIR-V specification 3.49.18).
//
// Every operation gets the scope of all devices: LLVM's narrower synchronization scopes have no effect on the host.
#include "body.h"

#include <algorithm>
#include <array>
#include <llvm/IR/Constants.h>

namespace polder::compiler::spirv {
namespace {

using llvm::AtomicOrdering;
using llvm::Value;
using Operation = llvm::AtomicRMWInst::BinOp;

struct Update {
    spv::Op opcode;
    Operation operation;
    enum class Operand : uint8_t { given, one } operand = Operand::given;
    enum class Of : uint8_t { integers, floats, both } of = Of::integers;
};

constexpr std::array updates{
    Update{spv::OpAtomicExchange, Operation::Xchg, Update::Operand::given, Update::Of::both},
    Update{spv::OpAtomicIIncrement, Operation::Add, Update::Operand::one},
    Update{spv::OpAtomicIDecrement, Operation::Sub, Update::Operand::one},
    Update{spv::OpAtomicIAdd, Operation::Add},
    Update{spv::OpAtomicISub, Operation::Sub},
    Update{spv::OpAtomicSMin, Operation::Min},
    Update{spv::OpAtomicUMin, Operation::UMin},
    Update{spv::OpAtomicSMax, Operation::Max},
    Update{spv::OpAtomicUMax, Operation::UMax},
    Update{spv::OpAtomicAnd, Operation::And},
    Update{spv::OpAtomicOr, Operation::Or},
    Update{spv::OpAtomicXor, Operation::Xor},
    Update{spv::OpAtomicFAddEXT, Operation::FAdd, Update::Operand::given, Update::Of::floats},
    Update{spv::OpAtomicFMinEXT, Operation::FMin, Update::Operand::given, Update::Of::floats},
    Update{spv::OpAtomicFMaxEXT, Operation::FMax, Update::Operand::given, Update::Of::floats},
};

// Semantics that are not constant get the strongest order.
AtomicOrdering ordering(Body& body, const Instruction& instruction, size_t index) {
    const auto semantics = body.integer(instruction, index);
    if (!semantics || (*semantics & spv::MemorySemanticsSequentiallyConsistentMask) != 0)
        return AtomicOrdering::SequentiallyConsistent;
    const bool acquires = (*semantics & spv::MemorySemanticsAcquireMask) != 0;
    const bool releases = (*semantics & spv::MemorySemanticsReleaseMask) != 0;
    if ((*semantics & spv::MemorySemanticsAcquireReleaseMask) != 0 || (acquires && releases))
        return AtomicOrdering::AcquireRelease;
    return acquires ? AtomicOrdering::Acquire : releases ? AtomicOrdering::Release : AtomicOrdering::Monotonic;
}

AtomicOrdering for_load(AtomicOrdering order) {
    return order == AtomicOrdering::AcquireRelease ? AtomicOrdering::Acquire
           : order == AtomicOrdering::Release      ? AtomicOrdering::Monotonic
                                                   : order;
}

AtomicOrdering for_store(AtomicOrdering order) {
    return order == AtomicOrdering::AcquireRelease ? AtomicOrdering::Release
           : order == AtomicOrdering::Acquire      ? AtomicOrdering::Monotonic
                                                   : order;
}

bool is_object(Body& body, const Instruction& instruction, llvm::Type* type) {
    const unsigned bits = type->getScalarSizeInBits();
    const bool fits = body.value(instruction, 0)->getType()->isPointerTy() && !type->isVectorTy() &&
                      (type->isIntegerTy() || type->isFloatingPointTy()) && bits >= 8;
    if (!fits)
        body.refuse(instruction, "this is no pointer to an object that can be atomic");
    return fits;
}

llvm::MaybeAlign natural(llvm::Type* type) { return llvm::Align(type->getScalarSizeInBits() / 8); }

void update(Body& body, const Instruction& instruction, const Update& row) {
    llvm::Type* type = body.result_type(instruction);
    if (!is_object(body, instruction, type))
        return;
    const bool is_right = row.of == Update::Of::both || type->isIntegerTy() == (row.of == Update::Of::integers);
    Value* operand = row.operand == Update::Operand::one && type->isIntegerTy() ? llvm::ConstantInt::get(type, 1)
                                                                                : body.value(instruction, 3);
    if (!is_right || operand->getType() != type)
        return body.refuse(instruction, "the operand is not of the object's type");
    body.define(instruction, body.builder().CreateAtomicRMW(row.operation, body.value(instruction, 0), operand,
                                                            natural(type), ordering(body, instruction, 2)));
}

void compare_and_exchange(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    llvm::Type* type = body.result_type(instruction);
    Value* value = body.value(instruction, 4);
    Value* comparator = body.value(instruction, 5);
    if (!is_object(body, instruction, type))
        return;
    if (!type->isIntegerTy() || value->getType() != type || comparator->getType() != type)
        return body.refuse(instruction, "the operands are not of the object's type");
    Value* both = builder.CreateAtomicCmpXchg(body.value(instruction, 0), comparator, value, natural(type),
                                              ordering(body, instruction, 2), for_load(ordering(body, instruction, 3)));
    body.define(instruction, builder.CreateExtractValue(both, {0}));
}

void atomic_load(Body& body, const Instruction& instruction) {
    llvm::Type* type = body.result_type(instruction);
    if (!is_object(body, instruction, type))
        return;
    llvm::LoadInst* loaded = body.builder().CreateAlignedLoad(type, body.value(instruction, 0), natural(type));
    loaded->setAtomic(for_load(ordering(body, instruction, 2)));
    body.define(instruction, loaded);
}

void store(Body& body, const Instruction& instruction, Value* value, size_t semantics) {
    if (!is_object(body, instruction, value->getType()))
        return;
    body.builder()
        .CreateAlignedStore(value, body.value(instruction, 0), natural(value->getType()))
        ->setAtomic(for_store(ordering(body, instruction, semantics)));
}

void test_and_set(Body& body, const Instruction& instruction) {
    Builder& builder = body.builder();
    if (!is_object(body, instruction, builder.getInt32Ty()))
        return;
    Value* before = builder.CreateAtomicRMW(Operation::Xchg, body.value(instruction, 0), builder.getInt32(1),
                                            llvm::Align(4), ordering(body, instruction, 2));
    body.define(instruction, builder.CreateICmpNE(before, builder.getInt32(0)));
}

// OpenCL C's memory_order: C11's numbers, of which consume is left out.
uint32_t opencl_order(AtomicOrdering order) {
    switch (order) {
    case AtomicOrdering::Acquire: return 2;
    case AtomicOrdering::Release: return 3;
    case AtomicOrdering::AcquireRelease: return 4;
    case AtomicOrdering::SequentiallyConsistent: return 5;
    default: return 0;
    }
}

void fence(Body& body, const Instruction& instruction) {
    const std::string name = MangledName("atomic_work_item_fence", body.types())
                                 .add_code("j")
                                 .add_named("memory_order")
                                 .add_named("memory_scope")
                                 .text();
    body.call(name, body.builder().getVoidTy(),
              {opencl_fence_flags(body, instruction, 1),
               body.builder().getInt32(opencl_order(ordering(body, instruction, 1))),
               opencl_scope(body, instruction, 0)},
              Effect::any);
}

} // namespace

bool emit_atomic(Body& body, const Instruction& instruction) {
    switch (instruction.opcode) {
    case spv::OpAtomicLoad: atomic_load(body, instruction); return true;
    case spv::OpAtomicStore: store(body, instruction, body.value(instruction, 3), 2); return true;
    case spv::OpAtomicCompareExchange:
    case spv::OpAtomicCompareExchangeWeak: compare_and_exchange(body, instruction); return true;
    case spv::OpAtomicFlagTestAndSet: test_and_set(body, instruction); return true;
    case spv::OpAtomicFlagClear: store(body, instruction, body.builder().getInt32(0), 2); return true;
    case spv::OpMemoryBarrier: fence(body, instruction); return true;
    default: break;
    }
    const auto* const found = std::find_if(updates.begin(), updates.end(),
                                           [&](const Update& each) { return each.opcode == instruction.opcode; });
    if (found == updates.end())
        return false;
    update(body, instruction, *found);
    return true;
}

} // namespace polder::compiler::spirv
