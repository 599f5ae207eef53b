// The operations of a sub-group whose work-items are the lanes of one vector. Reductions and scans take log2(size) steps of
// one vector operation; shuffles are permutations of vectors. Lanes that do not take part have the operation's
// neutral element.
#include "lane_code.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <numeric>

namespace polder::compiler::workgroup {

namespace {

using Kind = SubGroupOperation::Kind;
using Combine = SubGroupOperation::Combine;
using Indices = llvm::SmallVector<int, sub_group_size_max>;

llvm::Value* combine(llvm::IRBuilder<>& at, const SubGroupOperation& operation, llvm::Value* before,
                     llvm::Value* after) {
    const bool is_floating = after->getType()->isFPOrFPVectorTy();
    const auto choose = [&](llvm::Value* is_after) { return at.CreateSelect(is_after, after, before); };
    const auto less = [&](llvm::Value* a, llvm::Value* b) {
        if (is_floating)
            return at.CreateFCmpOLT(a, b);
        return operation.is_unsigned ? at.CreateICmpULT(a, b) : at.CreateICmpSLT(a, b);
    };
    switch (operation.combine) {
    case Combine::add: return is_floating ? at.CreateFAdd(before, after) : at.CreateAdd(before, after);
    case Combine::multiply: return is_floating ? at.CreateFMul(before, after) : at.CreateMul(before, after);
    case Combine::min: return choose(less(after, before));
    case Combine::max: return choose(less(before, after));
    case Combine::bit_and: return at.CreateAnd(before, after);
    case Combine::bit_or: return at.CreateOr(before, after);
    case Combine::bit_xor: return at.CreateXor(before, after);
    case Combine::none: break;
    }
    llvm_unreachable("nothing to combine with");
}

// Halves the vector until one value is left.
llvm::Value* reduce(llvm::IRBuilder<>& at, const SubGroupOperation& operation, llvm::Value* lanes, unsigned count) {
    while (count > 1) {
        count /= 2;
        Indices low(count), high(count);
        std::iota(low.begin(), low.end(), 0);
        std::iota(high.begin(), high.end(), static_cast<int>(count));
        lanes = combine(at, operation, at.CreateShuffleVector(lanes, low), at.CreateShuffleVector(lanes, high));
    }
    return at.CreateExtractElement(lanes, uint64_t{0});
}

// Lane i gets the value of lane i - distance; the first lanes get `fill`.
llvm::Value* shift_up(llvm::IRBuilder<>& at, llvm::Value* lanes, llvm::Value* fill, unsigned count, unsigned distance) {
    Indices indices(count);
    for (unsigned i = 0; i < count; ++i)
        indices[i] = static_cast<int>(i < distance ? count : i - distance);
    return at.CreateShuffleVector(lanes, fill, indices);
}

llvm::Value* scan(llvm::IRBuilder<>& at, const SubGroupOperation& operation, llvm::Value* lanes, llvm::Value* identity,
                  unsigned count) {
    for (unsigned distance = 1; distance < count; distance *= 2)
        lanes = combine(at, operation, shift_up(at, lanes, identity, count, distance), lanes);
    return operation.kind == Kind::scan_exclusive ? shift_up(at, lanes, identity, count, 1) : lanes;
}

// Butterfly: neighbours exchange their values, then pairs of neighbours, and so on.
llvm::Value* reduce_clusters(llvm::IRBuilder<>& at, const SubGroupOperation& operation, llvm::Value* lanes,
                             llvm::Value* size, unsigned count) {
    for (unsigned distance = 1; distance < count; distance *= 2) {
        Indices others(count);
        for (unsigned i = 0; i < count; ++i)
            others[i] = static_cast<int>(i ^ distance);
        llvm::Value* both = combine(at, operation, lanes, at.CreateShuffleVector(lanes, others));
        llvm::Value* is_within = at.CreateICmpUGT(size, llvm::ConstantInt::get(size->getType(), distance));
        lanes = at.CreateSelect(is_within, both, lanes);
    }
    return lanes;
}

// Moves whole lanes by indices. Indices that are known only at run time need a permutation instruction of the processor, or memory. Where the code that
// computes them was skipped they are poison, which LLVM may take for any place in memory, also behind the operation that keeps the places small.
class Permutation {
public:
    Permutation(llvm::IRBuilder<>& at, llvm::Function& function, const SubGroupLanes& lanes, llvm::Value* indices)
        : at_(at), function_(function), count_(lanes.size), permutes_words_(lanes.permutes != Permutes::none),
          indices_(at.CreateAnd(at.CreateZExtOrTrunc(frozen(at, indices), vector_of(at.getInt32Ty(), count_)),
                                at.CreateVectorSplat(count_, at.getInt32(count_ - 1)))) {}

    llvm::Value* apply(llvm::Value* lanes) {
        if (auto* constant = llvm::dyn_cast<llvm::Constant>(indices_))
            return at_.CreateShuffleVector(lanes, places(*constant));
        if (!permutes_words_)
            return through_memory(lanes);
        llvm::Type* element = llvm::cast<llvm::VectorType>(lanes->getType())->getElementType();
        const unsigned bits = element->getIntegerBitWidth();
        if (bits < 32)
            return at_.CreateTrunc(words(at_.CreateZExt(lanes, word_vector(count_))), lanes->getType());
        return bits == 32 ? words(lanes) : double_words(lanes);
    }

private:
    static constexpr unsigned part = 8;  // 32-bit words of a register that one instruction permutes

    static llvm::Value* frozen(llvm::IRBuilder<>& at, llvm::Value* indices) {
        return llvm::isa<llvm::Constant>(indices) ? indices : at.CreateFreeze(indices);
    }
    static llvm::FixedVectorType* vector_of(llvm::Type* element, unsigned count) {
        return llvm::FixedVectorType::get(element, count);
    }
    llvm::FixedVectorType* word_vector(unsigned count) { return vector_of(at_.getInt32Ty(), count); }

    Indices places(const llvm::Constant& constant) const {
        Indices result;
        for (unsigned i = 0; i < count_; ++i) {
            const auto* place = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant.getAggregateElement(i));
            result.push_back(place ? static_cast<int>(place->getZExtValue()) : 0);
        }
        return result;
    }

    llvm::Value* piece(llvm::Value* lanes, unsigned number) {
        Indices indices(part);
        for (unsigned i = 0; i < part; ++i)
            indices[i] = number * part + i < count_ ? static_cast<int>(number * part + i) : -1;
        return at_.CreateShuffleVector(lanes, indices);
    }

    llvm::Value* words(llvm::Value* lanes) {
        const unsigned pieces = std::max(count_ / part, 1U);
        llvm::SmallVector<llvm::Value*> results;
        for (unsigned to = 0; to < pieces; ++to) {
            llvm::Value* places = piece(indices_, to);
            llvm::Value* from = at_.CreateLShr(places, 3);
            llvm::Value* result = nullptr;
            for (unsigned i = 0; i < pieces; ++i) {
                llvm::Value* moved =
                    at_.CreateIntrinsic(llvm::Intrinsic::x86_avx2_permd, {}, {piece(lanes, i), places});
                llvm::Value* is_here = at_.CreateICmpEQ(from, at_.CreateVectorSplat(part, at_.getInt32(i)));
                result = result ? at_.CreateSelect(is_here, moved, result) : moved;
            }
            results.push_back(result);
        }
        return joined(results);
    }

    llvm::Value* joined(llvm::SmallVector<llvm::Value*>& pieces) {
        unsigned width = part;
        while (pieces.size() > 1) {
            Indices all(2 * static_cast<size_t>(width));
            std::iota(all.begin(), all.end(), 0);
            llvm::SmallVector<llvm::Value*> halves;
            for (size_t i = 0; i < pieces.size(); i += 2)
                halves.push_back(at_.CreateShuffleVector(pieces[i], pieces[i + 1], all));
            pieces = std::move(halves);
            width *= 2;
        }
        Indices used(count_);
        std::iota(used.begin(), used.end(), 0);
        return at_.CreateShuffleVector(pieces.front(), used);
    }

    llvm::Value* double_words(llvm::Value* lanes) {
        llvm::Value* all = at_.CreateBitCast(lanes, word_vector(2 * count_));
        Indices low, high, together;
        for (unsigned i = 0; i < count_; ++i) {
            low.push_back(static_cast<int>(2 * i));
            high.push_back(static_cast<int>(2 * i + 1));
            together.push_back(static_cast<int>(i));
            together.push_back(static_cast<int>(count_ + i));
        }
        llvm::Value* moved_low = words(at_.CreateShuffleVector(all, low));
        llvm::Value* moved_high = words(at_.CreateShuffleVector(all, high));
        return at_.CreateBitCast(at_.CreateShuffleVector(moved_low, moved_high, together), lanes->getType());
    }

    llvm::Value* through_memory(llvm::Value* lanes) {
        llvm::IRBuilder<> at_entry(&*function_.getEntryBlock().begin());
        llvm::AllocaInst* memory = at_entry.CreateAlloca(lanes->getType());
        at_.CreateStore(lanes, memory);
        llvm::Type* element = llvm::cast<llvm::VectorType>(lanes->getType())->getElementType();
        llvm::Value* result = llvm::PoisonValue::get(lanes->getType());
        for (unsigned i = 0; i < count_; ++i) {
            llvm::Value* place = at_.CreateZExt(at_.CreateExtractElement(indices_, i), at_.getInt64Ty());
            llvm::Value* moved = at_.CreateLoad(element, at_.CreateInBoundsGEP(element, memory, place));
            result = at_.CreateInsertElement(result, moved, i);
        }
        return result;
    }

    llvm::IRBuilder<>& at_;
    llvm::Function& function_;
    const unsigned count_;
    const bool permutes_words_;
    llvm::Value* indices_;
};

}  // namespace

llvm::Value* LaneCode::emit_shuffle(llvm::CallBase& call) {
    llvm::Value* value = call.getArgOperand(0);
    llvm::Value* index = call.getArgOperand(1);
    if (shapes_.of(value).is_uniform())
        return scalar(value);
    if (shapes_.of(index).is_uniform()) {
        llvm::Value* place = scalar(index);
        return builder_.CreateExtractElement(
            vector(value), builder_.CreateAnd(place, llvm::ConstantInt::get(place->getType(), width_ - 1)));
    }
    return Permutation(builder_, function_, *sub_group_, vector(index)).apply(vector(value));
}

llvm::Value* LaneCode::emit_ballot(llvm::CallBase& call, llvm::Value* mask) {
    llvm::Value* predicate = vector(call.getArgOperand(0));
    llvm::Value* lanes = builder_.CreateICmpNE(predicate, llvm::Constant::getNullValue(predicate->getType()));
    if (mask)
        lanes = builder_.CreateAnd(lanes, mask);
    return builder_.CreateZExt(builder_.CreateBitCast(lanes, builder_.getIntNTy(width_)), builder_.getInt64Ty());
}

llvm::Value* LaneCode::emit_combination(llvm::CallBase& call, const SubGroupOperation& operation, llvm::Value* mask) {
    llvm::Value* lanes = vector(call.getArgOperand(0));
    llvm::Value* identity = builder_.CreateVectorSplat(width_, identity_of(operation, *call.getType()));
    if (mask)
        lanes = builder_.CreateSelect(mask, lanes, identity);
    switch (operation.kind) {
    case Kind::reduce: return reduce(builder_, operation, lanes, width_);
    case Kind::clustered: {
        llvm::Value* size = call.getArgOperand(1);
        return reduce_clusters(builder_, operation, lanes, shapes_.of(size).is_uniform() ? scalar(size) : vector(size),
                               width_);
    }
    default: return scan(builder_, operation, lanes, identity, width_);
    }
}

void LaneCode::emit_sub_group(llvm::CallBase& call, const SubGroupOperation& operation, llvm::Value* mask) {
    switch (operation.kind) {
    case Kind::synchronize: return;  // lanes run in step
    case Kind::shuffle: made(&call) = emit_shuffle(call); return;
    case Kind::ballot: made(&call) = emit_ballot(call, mask); return;
    default: made(&call) = emit_combination(call, operation, mask);
    }
}

}  // namespace polder::compiler::workgroup
