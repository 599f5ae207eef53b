// For each masked access without an instruction: a lane's address is selected between its own and a stack variable by the lane's
// mask bit, then the lane is accessed unconditionally. Where the processor gathers words, a gather of bytes or shorts gathers the aligned
// words that contain them: an aligned word does not cross the end of a page.
#include "masked_memory.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

namespace polder::compiler {
namespace {

// A masked load, store, gather or scatter. LLVM has no class for the four.
struct MaskedAccess {
    llvm::IntrinsicInst& call;
    llvm::Value* stored = nullptr;  // of stores
    llvm::Value* address;  // one pointer, or one for each lane
    llvm::Value* mask;
    llvm::Value* otherwise = nullptr;  // of loads: the lanes that are masked off

    llvm::FixedVectorType* type() const {
        return llvm::dyn_cast<llvm::FixedVectorType>(stored ? stored->getType() : call.getType());
    }
    unsigned address_operand() const { return stored ? 1 : 0; }
    llvm::Align alignment() const { return call.getParamAlign(address_operand()).valueOrOne(); }
};

// The place on the stack for lanes that are masked off holds any number or pointer.
constexpr unsigned place_bits = 64;

std::optional<MaskedAccess> access_of(llvm::Instruction& instruction) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
    if (call == nullptr)
        return std::nullopt;
    switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::masked_load:
    case llvm::Intrinsic::masked_gather:
        return MaskedAccess{.call = *call,
                            .address = call->getArgOperand(0),
                            .mask = call->getArgOperand(1),
                            .otherwise = call->getArgOperand(2)};
    case llvm::Intrinsic::masked_store:
    case llvm::Intrinsic::masked_scatter:
        return MaskedAccess{.call = *call,
                            .stored = call->getArgOperand(0),
                            .address = call->getArgOperand(1),
                            .mask = call->getArgOperand(2)};
    default: return std::nullopt;
    }
}

bool is_instruction_of(const llvm::TargetTransformInfo& target, const MaskedAccess& access) {
    llvm::FixedVectorType* type = access.type();
    const llvm::Align alignment = access.alignment();
    const unsigned space = access.address->getType()->getScalarType()->getPointerAddressSpace();
    switch (access.call.getIntrinsicID()) {
    case llvm::Intrinsic::masked_load: return target.isLegalMaskedLoad(type, alignment, space);
    case llvm::Intrinsic::masked_store: return target.isLegalMaskedStore(type, alignment, space);
    case llvm::Intrinsic::masked_gather:
        return target.isLegalMaskedGather(type, alignment) && !target.forceScalarizeMaskedGather(type, alignment);
    default:
        return target.isLegalMaskedScatter(type, alignment) && !target.forceScalarizeMaskedScatter(type, alignment);
    }
}

bool is_lowered(const llvm::TargetTransformInfo& target, const MaskedAccess& access) {
    const llvm::FixedVectorType* type = access.type();
    return type != nullptr && type->getScalarSizeInBits() <= place_bits && !is_instruction_of(target, access);
}

constexpr unsigned word_bits = 32, word_bytes = 4;

// Whether each lane's element lies in one aligned word, and the processor gathers words.
bool is_gathered_in_words(const llvm::TargetTransformInfo& target, const MaskedAccess& access) {
    if (access.call.getIntrinsicID() != llvm::Intrinsic::masked_gather)
        return false;
    llvm::FixedVectorType* const type = access.type();
    const unsigned bits = type->getScalarSizeInBits();
    constexpr unsigned byte_bits = 8, short_bits = 16;
    if (bits != byte_bits && (bits != short_bits || access.alignment() < llvm::Align(short_bits / byte_bits)))
        return false;
    auto* const words = llvm::FixedVectorType::get(llvm::Type::getInt32Ty(type->getContext()), type->getNumElements());
    const llvm::Align alignment(word_bytes);
    return target.isLegalMaskedGather(words, alignment) && !target.forceScalarizeMaskedGather(words, alignment);
}

class Lowering {
public:
    explicit Lowering(llvm::Function& function) : function_(function) {}

    void gather_words(const MaskedAccess& access) {
        llvm::IRBuilder<> builder(&access.call);
        llvm::FixedVectorType* const type = access.type();
        const auto vector_of = [&](unsigned bits) {
            return llvm::FixedVectorType::get(builder.getIntNTy(bits), type->getNumElements());
        };
        llvm::FixedVectorType* const places = vector_of(place_bits);
        llvm::Value* const mask = llvm::ConstantInt::get(places, ~uint64_t{word_bytes - 1});
        llvm::Value* const addresses = builder.CreateIntrinsic(
            llvm::Intrinsic::ptrmask, {access.address->getType(), places}, {access.address, mask});
        llvm::Value* const words =
            builder.CreateMaskedGather(vector_of(word_bits), addresses, llvm::Align(word_bytes), access.mask);
        llvm::Value* first_bit = builder.CreateTrunc(builder.CreatePtrToInt(access.address, places), words->getType());
        first_bit = builder.CreateShl(
            builder.CreateAnd(first_bit, llvm::ConstantInt::get(words->getType(), word_bytes - 1)), uint64_t{3});
        llvm::Value* loaded =
            builder.CreateTrunc(builder.CreateLShr(words, first_bit), vector_of(type->getScalarSizeInBits()));
        replace(access, builder.CreateBitCast(loaded, type), builder);
    }

    void lower(const MaskedAccess& access) {
        llvm::IRBuilder<> builder(&access.call);
        llvm::FixedVectorType* type = access.type();
        llvm::Type* element = type->getElementType();
        // The alignment of a vector of pointers says little about single lanes.
        const llvm::Align alignment = access.address->getType()->isVectorTy()
                                          ? access.alignment()
                                          : commonAlignment(access.alignment(), size_of(*element));
        const llvm::SmallVector<llvm::Value*, 16> addresses = addresses_of(access, builder);
        llvm::Value* loaded = llvm::PoisonValue::get(type);
        for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
            if (access.stored)
                builder.CreateAlignedStore(builder.CreateExtractElement(access.stored, lane), addresses[lane],
                                           alignment);
            else
                loaded = builder.CreateInsertElement(
                    loaded, builder.CreateAlignedLoad(element, addresses[lane], alignment), lane);
        }
        if (access.stored)
            access.call.eraseFromParent();
        else
            replace(access, loaded, builder);
    }

private:
    static void replace(const MaskedAccess& access, llvm::Value* loaded, llvm::IRBuilder<>& builder) {
        if (!llvm::isa<llvm::UndefValue>(access.otherwise))
            loaded = builder.CreateSelect(access.mask, loaded, access.otherwise);
        access.call.replaceAllUsesWith(loaded);
        access.call.eraseFromParent();
    }

    uint64_t size_of(llvm::Type& type) const { return function_.getDataLayout().getTypeStoreSize(&type); }

    llvm::SmallVector<llvm::Value*, 16> addresses_of(const MaskedAccess& access, llvm::IRBuilder<>& builder) {
        llvm::FixedVectorType* type = access.type();
        llvm::Value* all = access.address;
        if (!all->getType()->isVectorTy()) {
            llvm::SmallVector<llvm::Constant*, 16> indices;
            for (unsigned lane = 0; lane < type->getNumElements(); ++lane)
                indices.push_back(builder.getInt64(lane));
            all = builder.CreateGEP(type->getElementType(), all, llvm::ConstantVector::get(indices));
        }
        if (!llvm::PatternMatch::match(access.mask, llvm::PatternMatch::m_AllOnes()))
            all = builder.CreateSelect(access.mask, all, builder.CreateVectorSplat(type->getNumElements(), place()));
        llvm::SmallVector<llvm::Value*, 16> addresses;
        for (unsigned lane = 0; lane < type->getNumElements(); ++lane)
            addresses.push_back(builder.CreateExtractElement(all, lane));
        return addresses;
    }

    // The stack variable that masked-off lanes access.
    llvm::Value* place() {
        if (place_ == nullptr) {
            llvm::IRBuilder<> builder(&*function_.getEntryBlock().getFirstInsertionPt());
            place_ = builder.CreateAlloca(builder.getIntNTy(place_bits), nullptr, "masked_off");
        }
        return place_;
    }

    llvm::Function& function_;
    llvm::AllocaInst* place_ = nullptr;
};

}  // namespace

void lower_masked_memory(llvm::Function& function, const llvm::TargetTransformInfo& target) {
    // A stored value may have been loaded by another of these accesses, which was replaced meanwhile, so each is examined again.
    llvm::SmallVector<llvm::Instruction*, 16> lowered;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (const std::optional<MaskedAccess> access = access_of(instruction); access && is_lowered(target, *access))
            lowered.push_back(&instruction);
    Lowering lowering(function);
    for (llvm::Instruction* instruction : lowered)
        if (const std::optional<MaskedAccess> access = access_of(*instruction)) {
            if (is_gathered_in_words(target, *access))
                lowering.gather_words(*access);
            else
                lowering.lower(*access);
        }
}

}  // namespace polder::compiler
