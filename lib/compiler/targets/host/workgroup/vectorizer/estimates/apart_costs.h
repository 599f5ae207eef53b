// What a load or store costs when its lanes access addresses without a constant step: a gather or a scatter. The unit is that of lane_cost.
//
// On a processor with quick gathers, the cost depends on what the lanes access. A gather of 16 elements in the first-level cache takes 8 to 12
// cycles, hardly more than 16 loads. It is slow when cache lines displace each other, as where each lane has its own row of a matrix and rows
// are a power of two bytes apart (decision 148). It also waits until an earlier scatter to its elements has been written to the cache.
#pragma once

#include "targets/host/workgroup/vectorizer/analysis/lane_plan.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_shape.h"
#include "targets/host/workgroup/vectorizer/analysis/lane_target.h"

#include <cstdint>
#include <optional>

namespace polder::compiler::workgroup {

// The cost of a load or store of all lanes at any addresses. A masked one cannot be split into one access for each lane.
[[nodiscard]] double cost_of_access_apart(unsigned lanes, bool is_masked);

// Whether a load or store may access memory other than private and local variables.
[[nodiscard]] bool is_in_buffer(const llvm::Instruction& access);

// The costs in one loop over work-items. The loop must not change while this object lives.
class ApartCosts {
public:
    ApartCosts(const LanePlan& plan, const LaneShapes& shapes, Gathers gathers)
        : plan_(plan), shapes_(shapes), gathers_(gathers) {}

    [[nodiscard]] double of(const llvm::Instruction& access, unsigned lanes);

    // Whether the access is in a loop of the kernel that lanes leave at different times.
    [[nodiscard]] bool is_left_one_by_one(const llvm::Instruction& access) const;

private:
    [[nodiscard]] bool is_linear(const llvm::Value* value);
    [[nodiscard]] std::optional<int64_t> distance_of(const llvm::Value& value, unsigned depth = 0) const;
    [[nodiscard]] bool has_linear_operands(const llvm::Instruction& instruction);
    [[nodiscard]] bool is_row_of_its_own(const llvm::Instruction& access);
    [[nodiscard]] bool is_row_read_once(const llvm::Instruction& access);
    [[nodiscard]] bool is_read_and_written_in_turns(const llvm::Instruction& access) const;
    [[nodiscard]] bool is_quicker_one_by_one(const llvm::Instruction& access, unsigned lanes);
    [[nodiscard]] bool is_crowded(const llvm::BasicBlock& block, unsigned lanes);

    const LanePlan& plan_;
    const LaneShapes& shapes_;
    const Gathers gathers_;
    llvm::DenseMap<const llvm::Value*, bool> linear_;
    llvm::DenseMap<const llvm::BasicBlock*, bool> crowded_;
};

}  // namespace polder::compiler::workgroup
