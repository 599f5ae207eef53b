// How a value differs between neighbouring work-items (lanes): the analysis behind the vectorizer.
//
// Lattice: unknown (not reached yet) > strided with one constant stride > varying. Stride 0 is uniform. The analysis begins with
// unknown and repeats until nothing changes. Kind and stride of a value only move down, at most twice; lane_shape.cpp has the rules.
//
// Strided means: lane i has the first lane's value plus i * stride, modulo 2^bits. After an extension to more bits this need not be
// true any more, since a lane may have wrapped around. Two exactness bits say that none has: is_exact_signed (no lane's sum leaves the
// signed range) and is_exact_unsigned (the unsigned range). They hold for the lanes that execute the instruction.
//
// Exactness comes from LLVM's flags, which hold for the lanes that execute an instruction: LLVM often derived them from a guard before
// it (nuw of i - n from i >= n). The first lane may be masked and wrap around, and the others are computed from it. So LaneCode
// computes an extended value from extended operands, where nothing wraps around, and drops the flags from copies of sums.
//
// An index of 32 bits that is a base plus the work-item's index, or a small multiple of it, needs no flag: the base is checked before the loop
// (assumed_small), and the scalar loop runs if a lane would wrap around. Bases are negative in kernels that look at neighbours (`x - 1`): this is allowed
// where an index is not extended as an unsigned number, or only used behind a comparison with a bound (asked_bounds.h), which the code checks, too.
//
// In a work-group of a known size, the index has few bits (differing_bits). An `or` or a sum with a number that has zeros there cannot
// carry, so it keeps the stride without flags and without a check. Quotients by powers of two: item_blocks.cpp.
#pragma once

#include "index_bases.h"
#include "private_variables.h"
#include "targets/host/workgroup/work_items/sub_group_functions.h"

#include <cstdint>
#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SetVector.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Instructions.h>
#include <optional>
#include <utility>

namespace llvm {
class Loop;
class LoopInfo;
}  // namespace llvm

namespace polder::compiler::workgroup {

struct LaneShape {
    // scaled: a step that is the same between all neighbours, but whose size is not known, as of normalized coordinates. Only a guess.
    enum class Kind : uint8_t { unknown, strided, scaled, varying } kind = Kind::unknown;
    int64_t stride = 0;  // of integers, or bytes of pointers; 0: uniform. Of what is scaled: before it was.
    // The strides hold after sign or zero extension too: no lane that executes the value wraps around.
    bool is_exact_signed = false;
    bool is_exact_unsigned = false;
    // Not null: the value is `base` plus stride times the work-item's index, and base is computed outside of the loop.
    llvm::Value* base = nullptr;
    // Not 0: only this many low bits differ between lanes. They hold the stride times the index; no sum carries into the bits above.
    unsigned differing_bits = 0;

    [[nodiscard]] bool is_uniform() const { return kind == Kind::strided && stride == 0; }
    [[nodiscard]] bool is_strided() const { return kind == Kind::strided; }
    friend bool operator==(const LaneShape&, const LaneShape&) = default;

    static constexpr LaneShape strided(int64_t stride) {
        return {Kind::strided, stride, stride == 0, stride == 0, nullptr, 0};
    }
    static constexpr LaneShape scaled(int64_t stride) { return {Kind::scaled, stride, false, false, nullptr, 0}; }
    static constexpr LaneShape varying() { return {Kind::varying, 0, false, false, nullptr, 0}; }
    // Where one of two values is the same for all lanes: the shape of the other one.
    static LaneShape of_one_that_varies(const LaneShape& left, const LaneShape& right) {
        if (left.kind == Kind::unknown || right.kind == Kind::unknown)
            return {};
        return left.is_uniform() ? right : right.is_uniform() ? left : varying();
    }
};

// What is assumed of arguments that ids are multiplied by to index buffers, such as BLAS's increments of vectors. `one`: the code checks
// before the loop that they are 1 (assumed_one).
enum class Increments : uint8_t { any, one };

class LaneShapes {
public:
    // `proven`: always right. `certain`: right when the assumptions in assumed_small hold, which the code checks once before the
    // loop. `likely`: assumes in addition that clamps change nothing and sums do not overflow; the code checks each use.
    enum class Certainty : uint8_t { proven, certain, likely };

    // `lanes`: of a vector, a power of two, which begins at a multiple of it; 0 when this is not known.
    // `blocks`: the loop's, in reverse post-order. `masked`: those that run under a mask. `divergent`: those that end with a divergent branch.
    LaneShapes(const llvm::Loop& loop, const llvm::LoopInfo& loops, llvm::PHINode& index,
               llvm::ArrayRef<llvm::BasicBlock*> blocks, const llvm::SmallPtrSetImpl<llvm::BasicBlock*>& masked,
               const llvm::SmallPtrSetImpl<const llvm::BasicBlock*>& divergent, const PrivateVariables& privates,
               Certainty certainty = Certainty::certain, unsigned lanes = 0, Increments increments = Increments::any);

    [[nodiscard]] LaneShape of(const llvm::Value* value) const;
    [[nodiscard]] const PrivateVariables& privates() const { return privates_; }
    // A base whose sums with `stride` times the index must not overflow 32 bits in any work-item; else shapes are wrong.
    // (A 64-bit base that is truncated: all sums must be below 2^31.)
    struct SmallBase {
        llvm::Value* base = nullptr;
        bool may_be_negative = false;
        int64_t stride =
            1;  // -1: the index is subtracted from the base. Others are positive, and their bases are not negative
        friend bool operator==(const SmallBase&, const SmallBase&) = default;
    };
    [[nodiscard]] llvm::ArrayRef<SmallBase> assumed_small() const { return assumed_small_; }
    // A base that must be a multiple of the lanes times `stride`; else shapes are wrong. Vectors of more lanes than `lanes_max` have other shapes.
    struct AlignedBase {
        llvm::Value* base = nullptr;
        uint64_t stride = 1;
        friend bool operator==(const AlignedBase&, const AlignedBase&) = default;
    };
    [[nodiscard]] llvm::ArrayRef<AlignedBase> assumed_aligned() const { return assumed_aligned_; }
    [[nodiscard]] uint64_t lanes_max() const { return lanes_max_; }
    [[nodiscard]] bool depends_on_lanes() const { return lanes_max_ < any_lanes; }
    [[nodiscard]] llvm::ArrayRef<llvm::Value*> assumed_one() const { return assumed_one_; }
    // Bounds of indices, which must be at most 2^31 - 1; else shapes are wrong.
    [[nodiscard]] llvm::ArrayRef<llvm::Value*> assumed_bounds() const { return assumed_bounds_.getArrayRef(); }
    // Of an index that a shift up and a shift back extend: the first work-item's, `base << up`. The base is null for other values.
    struct ExtendedBase {
        llvm::Value* base = nullptr;
        unsigned up = 0;
    };
    [[nodiscard]] ExtendedBase extended_base(const llvm::Value* shift) const { return extended_bases_.lookup(shift); }

private:
    LaneShape compute(llvm::Instruction& instruction);
    LaneShape of_sub_group(llvm::CallBase& call, const SubGroupOperation& operation) const;
    LaneShape guessed(llvm::Instruction& instruction) const;
    LaneShape divided(llvm::BinaryOperator& division);
    LaneShape quotient(llvm::Instruction& instruction);
    LaneShape low_bits(llvm::BinaryOperator& mask);
    LaneShape computed(llvm::BinaryOperator& operation);
    std::optional<LaneShape> in_block(llvm::BinaryOperator& division);
    LaneShape phi(llvm::PHINode& phi);
    [[nodiscard]] bool is_left_in_turns(const llvm::Value& value, const llvm::PHINode& node, unsigned depth = 3) const;
    LaneShape sum(llvm::BinaryOperator& sum);
    LaneShape complement(llvm::BinaryOperator& op);
    llvm::Value* difference(llvm::Instruction& op, llvm::Value& minuend, llvm::Value& base);
    LaneShape sum_above(llvm::BinaryOperator& sum, const LaneShape& value, llvm::Value* other);
    LaneShape with_base(LaneShape shape, llvm::BinaryOperator& operation, const LaneShape& value);
    LaneShape scaled(llvm::BinaryOperator& product);
    LaneShape shifted_back(llvm::BinaryOperator& shift);
    std::optional<LaneShape> shifted_back_above(llvm::BinaryOperator& shift);
    [[nodiscard]] std::optional<LaneShape> shifted_below(llvm::BinaryOperator& op) const;
    LaneShape truncated(llvm::TruncInst& cast);
    LaneShape extended(llvm::CastInst& cast);
    LaneShape address(llvm::GetElementPtrInst& address);
    std::optional<LaneShape> incremented(llvm::BinaryOperator& product);
    bool assume_small(llvm::Value* base, bool may_be_negative = false, int64_t stride = 1);
    bool assume_asked(const llvm::Instruction& index, llvm::Value& base);
    std::optional<LaneShape> asked_half(llvm::BinaryOperator& mask, const LaneShape& value);
    bool assume_aligned(const llvm::Value& number, int64_t stride, uint64_t lanes_in_block, bool must_be_positive);
    [[nodiscard]] std::optional<std::pair<const llvm::Value*, const llvm::Value*>>
    summands_of(const llvm::Value& number) const;
    [[nodiscard]] uint64_t lanes_of_zeros(const llvm::Value& number, uint64_t stride) const;
    [[nodiscard]] llvm::Value* base_of_low_bits(const llvm::Value* number) const;
    llvm::Value* sum_of(llvm::Value& base, llvm::Value& other);
    llvm::Value* times_constant(llvm::Instruction& product, const LaneShape& value, int64_t factor);
    [[nodiscard]] bool is_masked_edge(const llvm::BasicBlock* from) const;

    [[nodiscard]] bool is_guess() const { return certainty_ == Certainty::likely; }

    const Certainty certainty_;
    const unsigned lanes_;
    const Increments increments_;
    const llvm::Loop& loop_;
    const llvm::LoopInfo& loops_;
    const llvm::SmallPtrSetImpl<llvm::BasicBlock*>& masked_;
    const llvm::SmallPtrSetImpl<const llvm::BasicBlock*>& divergent_;
    const PrivateVariables& privates_;
    llvm::DenseMap<const llvm::Value*, LaneShape> shapes_;
    llvm::SmallVector<SmallBase> assumed_small_;
    llvm::SmallVector<AlignedBase> assumed_aligned_;
    static constexpr uint64_t any_lanes = uint64_t{1} << 31;
    uint64_t lanes_max_ = any_lanes;
    llvm::SmallVector<llvm::Value*> assumed_one_;
    llvm::SmallSetVector<llvm::Value*, 4> assumed_bounds_;
    llvm::SmallPtrSet<const llvm::Instruction*, 8> asked_;  // extensions with the sign, by assumption
    llvm::DenseMap<const llvm::Value*, llvm::Value*> bases_;
    llvm::DenseMap<const llvm::Value*, ExtendedBase> extended_bases_;
    IndexBases index_bases_;
};

}  // namespace polder::compiler::workgroup
