// For each masked access without an instruction: a lane's address is selected between its own and a stack variable by the lane's
// mask bit, then the lane is accessed unconditionally. Where the processor gathers words, a gather of bytes or shorts gathers the aligned
// words that contain them: an aligned word does not cross the end of a page.
#include "masked_memory.h"

#include "targets/host/workgroup/vectorizer/analysis/lane_of_addresses.h"

#include <bit>
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

bool is_of_bytes_of_all_lanes(const MaskedAccess& access) {
    constexpr unsigned byte_bits = 8;
    return access.type()->getScalarSizeInBits() == byte_bits &&
           llvm::PatternMatch::match(access.mask, llvm::PatternMatch::m_AllOnes());
}

class Lowering {
public:
    explicit Lowering(llvm::Function& function) : function_(function) {}

    void gather_words(const MaskedAccess& access) {
        llvm::IRBuilder<> builder(&access.call);
        const auto vector_of = [&](unsigned bits) {
            return llvm::FixedVectorType::get(builder.getIntNTy(bits), access.type()->getNumElements());
        };
        const auto index = narrow_index_of(access);
        const WordPlaces places = index ? places_of_narrow(*index, builder) : places_of_wide(access, builder);
        llvm::Value* const words =
            builder.CreateMaskedGather(vector_of(word_bits), places.addresses, llvm::Align(word_bytes), access.mask);
        llvm::Value* const first_bit = builder.CreateShl(
            builder.CreateAnd(places.bytes, llvm::ConstantInt::get(words->getType(), word_bytes - 1)), uint64_t{3});
        llvm::Value* loaded =
            builder.CreateTrunc(builder.CreateLShr(words, first_bit), vector_of(access.type()->getScalarSizeInBits()));
        replace(access, builder.CreateBitCast(loaded, access.type()), builder);
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
    // The aligned word of each lane, and numbers of 32 bits whose last two bits are the element's byte in it.
    struct WordPlaces {
        llvm::Value* addresses;
        llvm::Value* bytes;
    };

    static WordPlaces places_of_wide(const MaskedAccess& access, llvm::IRBuilder<>& builder) {
        const auto lanes = access.type()->getElementCount();
        auto* const places = llvm::VectorType::get(builder.getIntNTy(place_bits), lanes);
        llvm::Value* const mask = llvm::ConstantInt::get(places, ~uint64_t{word_bytes - 1});
        llvm::Value* const addresses = builder.CreateIntrinsic(
            llvm::Intrinsic::ptrmask, {access.address->getType(), places}, {access.address, mask});
        return {addresses, builder.CreateTrunc(builder.CreatePtrToInt(access.address, places),
                                               llvm::VectorType::get(builder.getInt32Ty(), lanes))};
    }

    // An address that all lanes share, plus elements that are counted with 32 bits.
    struct NarrowIndex {
        llvm::Value* base;
        llvm::Value* index;
        bool is_signed;
        unsigned element_bytes;
    };

    std::optional<NarrowIndex> narrow_index_of(const MaskedAccess& access) const {
        using namespace llvm::PatternMatch;
        auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(access.address);
        if (address == nullptr || address->getNumIndices() != 1 ||
            address->getPointerOperand()->getType()->isVectorTy())
            return std::nullopt;
        const uint64_t bytes = size_of(*address->getSourceElementType());
        llvm::Value* index = nullptr;
        const bool is_signed = match(address->getOperand(1), m_SExt(m_Value(index)));
        if ((!is_signed && !match(address->getOperand(1), m_ZExt(m_Value(index)))) || !index->getType()->isVectorTy() ||
            index->getType()->getScalarSizeInBits() != word_bits || bytes == 0 || bytes > word_bytes / 2)
            return std::nullopt;
        return NarrowIndex{address->getPointerOperand(), index, is_signed, static_cast<unsigned>(bytes)};
    }

    static void set_behind(llvm::IRBuilder<>& builder, llvm::Value& value, llvm::IRBuilder<>& otherwise) {
        builder.SetInsertPoint(otherwise.GetInsertBlock(), otherwise.GetInsertPoint());
        if (auto* const argument = llvm::dyn_cast<llvm::Argument>(&value))
            builder.SetInsertPoint(argument->getParent()->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
        else if (auto* const instruction = llvm::dyn_cast<llvm::Instruction>(&value))
            if (const auto behind = instruction->getInsertionPointAfterDef())
                builder.SetInsertPoint(*behind);
    }

    // In 32 bits, of which one register holds twice as many as of addresses. The index is taken apart before the base's last bits are added, so
    // that no sum wraps around.
    static WordPlaces places_of_narrow(const NarrowIndex& from, llvm::IRBuilder<>& builder) {
        auto* const type = llvm::cast<llvm::VectorType>(from.index->getType());
        const auto number = [&](uint64_t value) { return llvm::ConstantInt::get(type, value); };
        const unsigned in_a_word = word_bytes / from.element_bytes;
        auto* const place = builder.getIntNTy(place_bits);
        llvm::IRBuilder<> before(builder.getContext());  // in no loop that does not make the base
        set_behind(before, *from.base, builder);
        llvm::Value* const base =
            before.CreateIntrinsic(llvm::Intrinsic::ptrmask, {from.base->getType(), place},
                                   {from.base, llvm::ConstantInt::get(place, ~uint64_t{word_bytes - 1})});
        llvm::Value* const base_bytes = before.CreateVectorSplat(
            type->getElementCount(),
            before.CreateAnd(before.CreateTrunc(before.CreatePtrToInt(from.base, place), before.getInt32Ty()),
                             word_bytes - 1));
        llvm::Value* const element = builder.CreateAnd(from.index, number(in_a_word - 1));
        llvm::Value* const bytes =
            builder.CreateAdd(builder.CreateShl(element, number(std::countr_zero(from.element_bytes))), base_bytes);
        llvm::Value* const words = number(std::countr_zero(in_a_word));
        llvm::Value* const index = builder.CreateAdd(from.is_signed ? builder.CreateAShr(from.index, words)
                                                                    : builder.CreateLShr(from.index, words),
                                                     builder.CreateLShr(bytes, number(std::countr_zero(word_bytes))));
        llvm::Value* const wide = builder.CreateSExt(index, llvm::VectorType::get(place, type->getElementCount()));
        return {builder.CreateGEP(builder.getInt32Ty(), base, wide), bytes};
    }

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
            addresses.push_back(lane_of_addresses(builder, *all, lane));
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

void lower_masked_memory(llvm::Function& function, const llvm::TargetTransformInfo& target, ByteGathers bytes) {
    // A stored value may have been loaded by another of these accesses, which was replaced meanwhile, so each is examined again.
    llvm::SmallVector<llvm::Instruction*, 16> lowered;
    for (llvm::Instruction& instruction : llvm::instructions(function))
        if (const std::optional<MaskedAccess> access = access_of(instruction); access && is_lowered(target, *access))
            lowered.push_back(&instruction);
    Lowering lowering(function);
    for (llvm::Instruction* instruction : lowered)
        if (const std::optional<MaskedAccess> access = access_of(*instruction)) {
            if (is_gathered_in_words(target, *access) &&
                !(bytes == ByteGathers::one_by_one && is_of_bytes_of_all_lanes(*access)))
                lowering.gather_words(*access);
            else
                lowering.lower(*access);
        }
}

}  // namespace polder::compiler
