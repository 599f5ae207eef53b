// Whether numbers that the work-items of a whole loop compute in floating point are a row, such as the coordinates of neighbouring elements of an
// image. Only the first and the last work-item's are computed, once before the loop: no conversion, division and comparison for each vector of lanes.
//
// The numbers begin with integers that are one apart, and every operation on them keeps their order, rounding included. So bounds that neither
// end exceeds are exceeded by no work-item. That all between the ends are a row needs more than the order: row_ends.cpp.
//
// An object examines one access. What it adds before the loop has no effects, and is removed where nothing uses it.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <optional>

namespace polder::compiler::workgroup {

// The work-items of a loop: where code before it is added, and the index of the first one and of the one behind the last.
struct WorkItemRow {
    llvm::Instruction* before = nullptr;
    llvm::Value *begin = nullptr, *end = nullptr;
};

class RowEnds {
public:
    RowEnds(const WorkItemRow& row, const LaneShapes& shapes, const llvm::Loop& loop)
        : row_(row), shapes_(shapes), loop_(loop), builder_(row.before) {}

    // The first work-item's number, and a condition that is true only if every work-item's is `step` more than the one before. Neither is poison.
    struct Row {
        llvm::Value *first, *condition;
    };
    // Of an integer that was a floating-point number. Nothing where an operation is not known.
    [[nodiscard]] std::optional<Row> row_of(llvm::Value* number, int64_t step);
    // A value that is true only if `condition` is true for all work-items, never poison. Null where an operation is not known.
    [[nodiscard]] llvm::Value* all_true(llvm::Value* condition);

private:
    // What the numbers may differ from real arithmetic by.
    enum class Error : uint8_t {
        none,
        relative,  // a few units in the last place
        of_fraction,  // a few such units of 4: the fraction of a number from -2 to 3
        absolute,  // a few such units of 2^15
    };
    struct Ends {
        llvm::Value* values = nullptr;  // two floats
        Error error = Error::none;
        unsigned roundings = 0;  // at most: sums without an error are counted, too
        bool is_floor = false;  // the number is the greatest integer that is not above
    };
    std::optional<Ends> ends_of(llvm::Value* value);
    std::optional<Ends> compute(llvm::Instruction& instruction);
    std::optional<Ends> converted(llvm::CastInst& cast);
    std::optional<Ends> sum(std::optional<Ends> ends, llvm::Instruction::BinaryOps how, llvm::Value* summand);
    std::optional<Ends> product(std::optional<Ends> ends, llvm::Instruction::BinaryOps how, llvm::Value* factor);
    std::optional<Ends> fraction(llvm::BinaryOperator& difference);
    std::optional<Ends> magnitude(llvm::Value* number);
    std::optional<Ends> bounded(std::optional<Ends> ends, llvm::CmpInst::Predicate how, llvm::Value* bound);
    std::optional<Ends> chosen(llvm::SelectInst& choice);
    std::optional<Ends> operated(llvm::IntrinsicInst& call);
    std::optional<Ends> with_common(llvm::Instruction& instruction,
                                    llvm::function_ref<std::optional<Ends>(std::optional<Ends>, llvm::Value*)> form);

    // What is the same for all work-items, computed before the loop. Null where that is not possible.
    llvm::Value* common(llvm::Value* value);
    llvm::Value* both(llvm::Value* value) { return builder_.CreateVectorSplat(2, value); }
    void require(llvm::Value* condition) { conditions_.push_back(condition); }
    void require_magnitude(llvm::Value* factor, float least, float most);
    llvm::Value* required();
    llvm::Value* distance() {
        return builder_.CreateSub(builder_.CreateSub(row_.end, row_.begin), builder_.getInt64(1));
    }

    const WorkItemRow& row_;
    const LaneShapes& shapes_;
    const llvm::Loop& loop_;
    llvm::IRBuilder<> builder_;
    llvm::DenseMap<llvm::Value*, std::optional<Ends>> known_;
    llvm::DenseMap<llvm::Value*, llvm::Value*> common_;
    llvm::SmallVector<llvm::Value*> conditions_;  // of both ends or of one
};

}  // namespace polder::compiler::workgroup
